"""Stage what the new readings, and the passing of time, change in the published tables."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import TABLES
from spark_jobs.runtime import changes, ledger, measures, reference, staging
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.job import job
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run
from spark_jobs.transforms import alerts


@job
def derive_tables(run: Run, lake: Lake) -> None:
    lake.expect_rows(ledger.unbooked(lake, run).lines_read)
    changed = changes.since_publication(lake, run.published)
    derived = Derivation(lake, run.clock(lake.settings), changed, reference.load(lake.spark, lake.settings), run.published)

    staging.start(lake, run)
    staged = {
        "sensor_stores": staging.stage(lake, run, "sensor_stores", _plain("sensor_stores", derived.sensor_stores, lake)),
        "store_minutes": staging.stage(lake, run, "store_minutes", _minutes(derived)),
        "outages": staging.stage(lake, run, "outages", staging.difference("outages", *derived.outages, TABLES["outages"].names)),
        "alerts": staging.stage(lake, run, "alerts", _alerts(derived, run)),
        "heartbeats": staging.stage(lake, run, "heartbeats", _plain("heartbeats", derived.heartbeats(), lake)),
    }
    notes = {**measures.take(lake, derived, staged), "versions": {"readings": changed.version}}
    staging.write_notes(lake, run, "measures", notes)


def _plain(table: str, fresh: DataFrame, lake: Lake) -> DataFrame:
    return staging.difference(table, fresh, lake.read(table), TABLES[table].names)


def _minutes(derived: Derivation) -> DataFrame:
    """A final row that changes takes the next revision; one that was not final yet keeps it."""
    content = [name for name in TABLES["store_minutes"].names if name != "revision"]
    changed = staging.difference("store_minutes", *derived.store_minutes(), content, deletes=derived.is_whole)
    return changed.withColumn("revision", F.coalesce(F.col("old_revision"), F.lit(0)) + F.when(F.col("was_final"), 1).otherwise(0))


def _alerts(derived: Derivation, run: Run) -> DataFrame:
    changed = staging.difference("alerts", *derived.alerts(), list(alerts.CONTENT), deletes=False)
    return changed.withColumn("revision", F.coalesce(F.col("old_revision") + 1, F.lit(0).cast("bigint"))).withColumn(
        "run_id", F.lit(run.run_id)
    )


if __name__ == "__main__":
    derive_tables()
