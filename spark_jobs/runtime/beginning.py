"""How a run begins: reference files checked before anything is written, what the last run left half done is finished or booked."""

from __future__ import annotations

from spark_jobs.runtime import acceptance, ledger, publication, reference
from spark_jobs.runtime import run as runs
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run


def begin_or_resume(lake: Lake) -> Run:
    """A new run, or the one under way where Airflow tries its first task again."""
    reference.check(lake.settings)
    lake.create_missing_tables()
    left = runs.under_way(lake)
    past = runs.history(lake, left.number if left else 0, lake.settings.run_id)
    if left is None or past.has_ended:
        return runs.begin(lake, past)
    if left.is_publishing:
        print(f"run {left.run_id} died while it was publishing: that is finished first.", flush=True)
        publication.publish(lake, left, note=acceptance.note(lake))
    elif lake.settings.run_id and left.asked_as == lake.settings.run_id:
        return left
    else:
        ledger.book_dead(lake, left, "it ended before it was published; the next run books its lines")
    return runs.begin(lake, runs.history(lake, run_id=lake.settings.run_id))
