#!/bin/sh
# Build FOLDER/franz-go and FOLDER/sarama: build.sh FOLDER. The status is 3 where their modules can't be had.
set -eu
cd "$(dirname "$0")"
go mod download >&2 || exit 3
go build -buildvcs=false -o "$1/franz-go" ./franz
go build -buildvcs=false -o "$1/sarama" ./sarama
