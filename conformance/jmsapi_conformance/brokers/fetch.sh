#!/bin/bash
# Artemis's distribution and Classic's jars from Maven into a folder (default: the cache); nothing is fetched twice.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); cache=${1:-${BROKER_CACHE:-$HOME/.cache/jmsapi-brokers}}; mkdir -p "$cache"
ARTEMIS=${ARTEMIS_VERSION:-2.56.0}; CLASSIC=${CLASSIC_VERSION:-6.3.1}
exec 9>"$cache/fetch.lock"; flock 9   # two at once would unpack over each other; a killed one lets go
# Each is made under another name and moved at the end, so that a folder under its own name is whole.
if [ ! -d "$cache/apache-artemis-$ARTEMIS" ]; then
  part="$cache/artemis.part"; rm -rf "$part"; mkdir "$part"
  mvn -q -B -Dstyle.color=never dependency:copy -Dartifact="org.apache.artemis:apache-artemis:$ARTEMIS:tar.gz:bin" -DoutputDirectory="$part"
  tar -C "$part" -xzf "$part/apache-artemis-$ARTEMIS-bin.tar.gz"
  mv "$part/apache-artemis-$ARTEMIS" "$cache/"; rm -rf "$part"
fi
if [ ! -d "$cache/classic-$CLASSIC" ]; then   # no distribution of Classic 6 is on Maven: its jars are
  part="$cache/classic.part"; rm -rf "$part"
  mvn -q -B -Dstyle.color=never -f "$here/classic-pom.xml" dependency:copy-dependencies -Dclassic.version="$CLASSIC" -DincludeScope=runtime -DoutputDirectory="$part/lib"
  mv "$part" "$cache/classic-$CLASSIC"
fi
