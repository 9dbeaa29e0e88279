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
    derived = Derivation(lake, run.clock(lake.settings), changed, reference.load(lake.settings), run.published)

    staging.start(lake, run)
    staged = {"store_minutes": staging.stage(lake, run, "store_minutes", _minutes(derived))}
    if derived.outages is not None:
        staged["outages"] = staging.stage(lake, run, "outages", _outages(*derived.outages))
    if derived.outages is not None or not derived.is_quiet:
        staged["alerts"] = staging.stage(lake, run, "alerts", _alerts(derived, run))
    small = {"heartbeats": derived.heartbeats(), "sensor_stores": derived.sensor_stores()}
    for table, rows in small.items():
        staging.stage_rows(lake, run, table, rows)
    notes = {**measures.take(lake, derived, staged, small), "versions": {"readings": changed.version}}
    staging.write_notes(lake, run, "measures", notes)


def _outages(fresh: DataFrame, published: DataFrame) -> DataFrame:
    return staging.difference("outages", fresh, published, TABLES["outages"].names)


def _minutes(derived: Derivation) -> DataFrame:
    """A final row that changes takes the next revision; one that was not final yet keeps it."""
    content = [name for name in TABLES["store_minutes"].names if name != "revision"]
    changed = staging.difference("store_minutes", *derived.store_minutes(), content, deletes=derived.is_whole)
    return changed.withColumn("revision", F.coalesce(F.col("old_revision"), F.lit(0)) + F.when(F.col("was_final"), 1).otherwise(0))


def _alerts(derived: Derivation, run: Run) -> DataFrame:
    changed = staging.difference("alerts", *derived.alerts(), list(alerts.CONTENT), deletes=False)
    revision = F.coalesce(F.col("old_revision") + 1, F.lit(0).cast("bigint"))
    return changed.withColumns({"revision": revision, "run_id": F.lit(run.run_id)})


if __name__ == "__main__":
    derive_tables()
