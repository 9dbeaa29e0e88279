"""Stage what the new readings, and the passing of time, change in the published tables."""

from __future__ import annotations

from spark_jobs.runtime import changes, derived_tables, ledger, reference, staging
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.job import job
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run


@job
def derive_tables(run: Run, lake: Lake) -> Run:
    lake.expect_rows(ledger.unbooked(lake, run).lines_read)
    changed = changes.since_publication(lake, run.published)
    run = staging.start(lake, run)
    derived_tables.stage(Derivation(lake, run, changed, reference.load(lake.settings)))
    return run


if __name__ == "__main__":
    derive_tables()
