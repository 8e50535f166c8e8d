#!/bin/sh
# The scenarios with Kafka's Java client: compat.sh BOOTSTRAP FEATURE. Builds first what isn't built yet.
# The status is 0 for a pass, 1 for what is missing in the broker, 2 where it can't be built.
set -eu
cd "$(dirname "$0")"
if [ -z "$(find target/built -newer pom.xml 2>/dev/null)" ] || [ -n "$(find src -newer target/built)" ]; then
    mvn -q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=target/libs >&2 || exit 2
    javac -cp 'target/libs/*' -d target/classes src/*.java || exit 2
    touch target/built
fi
exec java -cp 'target/classes:target/libs/*' Compat "$@"
