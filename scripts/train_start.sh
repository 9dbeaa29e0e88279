#!/usr/bin/env bash
# Run one small pass and let the JVM write down which classes it loaded.
set -euo pipefail
local_folder=$1
unset "${!COLDSTORE_@}" # it is a pass over a lake of its own: nobody's landing folder, archive or cluster
lake=$(mktemp -d)
trap 'rm -rf "$lake"' EXIT

"$local_folder/spark/bin/python" -m simulator --lake "$lake" --stores 2 --sensors 4 --hours 1 > "$lake/as_of"
pass() {
  COLDSTORE_LAKE=$lake COLDSTORE_AS_OF=$(sed -n 's/^as_of=//p' "$lake/as_of") PYSPARK_PYTHON="$local_folder/spark/bin/python" \
    "$local_folder/spark/bin/spark-submit" --properties-file "$local_folder/spark-defaults.conf" "$@" spark_jobs/run_pass.py
}
pass --driver-java-options "-XX:ArchiveClassesAtExit=$local_folder/spark.jsa.new -Xlog:cds=off -Xlog:cds+dynamic=off -Dlog4j2.configurationFile=file:spark_jobs/log4j2.properties" > "$local_folder/train.log" 2>&1 \
  || { tail -3 "$local_folder/train.log" >&2; echo "the first small pass failed; all of its output is in $local_folder/train.log" >&2; exit 1; }
[ -s "$local_folder/spark.jsa.new" ] || { echo "the JVM wrote no archive; see $local_folder/train.log" >&2; exit 1; }
mv "$local_folder/spark.jsa.new" "$local_folder/spark.jsa"
