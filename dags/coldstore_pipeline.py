"""
### What
One pass over the lake: take every new line of the landing folder, and of the Kafka topic if one is set, stage what it (and the passing of
time) changes in the tables, check the staged changes, and publish them. Analysts see the last good state until then. At last what changed in
the alerts is sent to the webhook and to Kafka, where these are set.

### When
Every 10 minutes, one run at a time. The run's clock, `as_of`, is the end of its data interval. A run triggered by hand may name its own
`as_of`; without one, and without a data interval, it takes the moment it was due. The clock never goes back: an earlier `as_of` than the
last published one is replaced by that one, and the log says so. Missed intervals are not caught up: the next run takes what has arrived.

### Inputs and outputs
In: `<lake>/landing` (`.jsonl`, `.jsonl.gz`, `.jsonl.zst`), the topic `COLDSTORE_KAFKA_TOPIC` and `<lake>/reference/*.csv`. Out: the tables under `<lake>/tables`, the results
of the checks in `quality_results`, one row in `runs`; a POST per alert event to `COLDSTORE_WEBHOOK_URL`,
a message per alert event to `COLDSTORE_KAFKA_ALERTS_TOPIC`. `COLDSTORE_LAKE` and the other `COLDSTORE_` settings come from the environment that
Airflow was started in; where Spark runs is the connection `coldstore_spark`.

### How to recover
Every job may be killed at any point and started again, nothing is lost or doubled.

- **ingest_readings, derive_tables, publish_tables** retry twice by themselves. The end of the log says what happened and what to do; then clear
  the task, or let the next run take what is left.
- **check_quality failed**: the run is *held*; its data are safe, but not published. Remove the cause and let the next run publish both, or accept
  the run (`make accept run=… by=… why=…`). Clearing the task would only find the same.
- **deliver_alerts failed**: the run *is* published; the end of the log says why events wait. They go out with the next run, or when the task is
  cleared. It is *skipped* where alerts go nowhere.
- **"a later one has taken its place"**: a newer run went on; nothing is left to do here.
- **Queued for long**: another writer has the one slot of the pool `lake_writer`, or the DAG is paused.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from dags.lake_job import QualityCheck
from dags.spark_tasks import DEFAULTS, MACROS, require_receiver, spark_task

TIME = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)"

with DAG(
    dag_id="coldstore_pipeline",
    description="Landing files and Kafka messages to published tables and alerts: ingest, derive, check, publish, deliver",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("*/10 * * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=DEFAULTS,
    user_defined_macros=MACROS,
    params={
        "as_of": Param(
            "",
            type=["string", "null"],
            pattern=f"^({TIME})?$",
            title="As of",
            description="The run's clock, like 2025-11-08T16:00:00Z (with Z or an offset). Empty: the end of the data interval.",
        )
    },
    tags=["coldstore", "lake"],
) as dag:
    ingest = spark_task("ingest_readings", "Takes every new line once: into `readings`, `quarantine` or the count of duplicates.")
    derive = spark_task("derive_tables", "Stages what changed in windows, outages and alerts; the tables people read stay as they are.")
    check = spark_task(
        "check_quality", "Judges the staged changes. It fails when the run is held: see *How to recover*.", operator=QualityCheck, retries=0
    )
    publish = spark_task("publish_tables", "Moves the checked changes into the tables people read; its row in `runs` is the moment.")
    deliver = spark_task(
        "deliver_alerts", "Sends what changed in the alerts to the webhook and to Kafka.", requires=require_receiver, retries=1
    )
    ingest >> derive >> check >> publish >> deliver
