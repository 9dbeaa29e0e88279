"""May the staged changes be seen? Great Expectations judges what the run touched; a critical failure holds the run."""

from __future__ import annotations

from typing import Any

import expectations
from expectations import Result
from spark_jobs.runtime import acceptance, docs_folder, ledger, notices, staging
from spark_jobs.runtime.errors import Held, Stop
from spark_jobs.runtime.job import job
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.ledger import Books
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row


@job
def check_quality(run: Run, lake: Lake) -> Run:
    books, waiting = ledger.unbooked(lake, run), acceptance.waiting(lake, run)
    measures = staging.read_notes(lake, run, "measures")
    del measures["versions"]
    measures["runs"] = {"imbalance": _imbalance(run, books, waiting), "topic_losses": len(notices.unpublished(lake, run))}
    measures["quarantine"] = _quarantine(lake, books, waiting)
    measures["readings"]["late_share"] = books.late_rows / books.readings_new if books.readings_new > 0 else None
    with lake.lasting("the Data Docs"), docs_folder.opened(lake.place("data_docs")) as folder:
        results = expectations.judge(measures, lake.settings, run.run_id, folder)
    _record(lake, run, results)
    failed = [result for result in results if result.severity == "critical" and not result.success and not _is_accepted(lake, run, result)]
    if failed:
        reasons = "; ".join(f"{result.table}: {result.expectation} (seen {result.observed}, allowed {result.limit})" for result in failed)
        if run.is_rebuild:
            raise Stop(f"{reasons}. Nothing was swapped in: the published tables stay as they were.")
        ledger.book(lake, run, books, "held", {}, note=reasons)
        raise Held(f"{reasons}. {HOW_TO_GO_ON.format(run_id=run.run_id)}")
    return run


HOW_TO_GO_ON = (
    "The published tables stay as they were and nothing is lost. Once the cause is gone the next run publishes this one's data too; "
    "to publish it all the same: make accept run={run_id} by=… why=…"
)


def _imbalance(run: Run, books: Books, waiting: list[Row]) -> int:
    """A line that a held run lost is still lost when the next one balances. A rebuild books nothing and answers for no other run."""
    return books.imbalance + (0 if run.is_rebuild else sum(ledger.imbalance(row) for row in waiting))


def _quarantine(lake: Lake, books: Books, waiting: list[Row]) -> dict[str, Any]:
    """The share of bad lines that is judged: the run's own where it shows that input is good again, else that of everything
    that waits to be published, but for what a person accepted."""
    own = _share(books.refused, books.lines_read)
    if books.lines_read > 0 and own is not None and own <= lake.settings.quarantine_critical:
        return {"share": own, "lines": books.lines_read}
    lines = books.lines_read + sum(row["lines_read"] for row in waiting)
    return {"share": _share(books.quarantined + sum(row["quarantined"] for row in waiting), lines), "lines": lines}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None


def _record(lake: Lake, run: Run, results: list[Result]) -> None:
    rows = [{"run_id": run.run_id, **result.__dict__} for result in results]
    lake.add_rows("quality_results", rows, run.write("quality_results"))


def _is_accepted(lake: Lake, run: Run, result: Result) -> bool:
    """A person has accepted a held run that failed the same check. Bad lines are not accepted in advance: `_quarantine` counts them."""
    known = acceptance.accepted(lake)
    notes = [row["note"] for row in acceptance.held_runs(lake) if row["run_id"] in known]
    return result.table != "quarantine" and any(f"{result.table}: {result.expectation}" in note for note in notes)


if __name__ == "__main__":
    check_quality()
