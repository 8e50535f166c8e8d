#!/bin/sh
# Build FOLDER/java-4.4 and FOLDER/java-2.1: build.sh FOLDER. The status is 3 where the clients can't be had.
set -eu
cd "$(dirname "$0")"

# SERIES VERSION FOLDER: what differs between versions of the client is in src/SERIES.
build() {
    series=$1 home=$3/java-$1.d
    mvn -q -B -Dkafka.version="$2" -DincludeScope=runtime -DoutputDirectory="$home/libs" dependency:copy-dependencies >&2 || exit 3
    javac -cp "$home/libs/*" -d "$home/classes" src/*.java "src/$series"/*.java
    printf '#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp "%s/classes:%s/libs/*" Compat "$@"\n' "$home" "$home" >"$3/java-$series"
    chmod +x "$3/java-$series"
}

build 4.4 4.4.0 "$1"
build 2.1 2.1.1 "$1"
