#!/usr/bin/env bash
# One broker that is its own controller (KRaft). Its folder is formatted when it is new, and left alone ever after.
set -euo pipefail
properties=docker/kafka.properties
data=$(sed -n 's/^log\.dirs=//p' "$properties")
broker() { exec java -Xmx"${KAFKA_MEMORY:-512m}" -cp '.local/jars/kafka-broker/*' "$@"; }

if [ ! -s "$data/meta.properties" ]; then
  id=$(broker kafka.tools.StorageTool random-uuid | tail -1)
  (broker kafka.tools.StorageTool format --standalone --cluster-id "$id" --config "$properties")
fi
broker kafka.Kafka "$properties"
