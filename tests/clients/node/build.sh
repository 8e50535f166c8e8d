#!/bin/sh
# Build FOLDER/kafkajs: build.sh FOLDER. The status is 3 where its packages can't be had.
set -eu
cd "$(dirname "$0")"
mkdir -p "$1/node"
cp ./*.js package.json package-lock.json "$1/node"
npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$1/node" >&2 || exit 3
printf '#!/bin/sh\nexec node "%s/node/compat.js" "$@"\n' "$1" >"$1/kafkajs"
chmod +x "$1/kafkajs"
