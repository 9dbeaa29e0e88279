"""Move the staged changes into the published tables; the row in `runs`, written last, is the moment of publication."""

from __future__ import annotations

from spark_jobs.runtime import acceptance, publication
from spark_jobs.runtime.job import job
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run


@job
def publish_tables(run: Run, lake: Lake) -> Run:
    publication.publish(lake, run, note=acceptance.note(lake))
    return run


if __name__ == "__main__":
    publish_tables()
