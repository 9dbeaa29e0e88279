"""The published tables of some days anew, beside the live ones: compared with them, and swapped in (P22)."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pyarrow.compute as pc

from include.settings import SettingError
from spark_jobs.check_quality import check_quality
from spark_jobs.runtime import acceptance, changes, derived_tables, ledger, publication, reference, staging
from spark_jobs.runtime import run as runs
from spark_jobs.runtime.comparison import Comparison, compared
from spark_jobs.runtime.derivation import Days, Derivation
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run

DAY = timedelta(days=1)


def rebuilt(lake: Lake, first: str, last: str, is_applied: bool, is_told: bool = False, gives_way: bool = False) -> tuple[Run, Comparison]:
    """A run that has staged these days, both inside, and how they differ from what is published.

    One that is to be swapped in takes the place of a run that is under way, or gives way to one of Airflow's.
    """
    reference.check(lake.settings)
    run = _new_run(lake, is_applied, gives_way)
    assert run.published is not None
    days = _days(lake, first, last, is_told)
    version = run.published.versions["readings"]
    lake.expect_rows(lake.count("readings", version, (pc.field("event_ts") >= days.start) & (pc.field("event_ts") < days.end)))
    print(f"{_said(days)} as of {run.as_of}, beside the published tables …", flush=True)
    run = staging.start(lake, run)
    derived_tables.stage(Derivation(lake, run, changes.nothing(lake, version), reference.load(lake.settings), days))
    comparison = compared(lake, run)
    for difference in comparison.tables:
        print(f"  {difference}", flush=True)
    if comparison.rows == 0:
        print("The published tables are as a rebuild makes them: nothing to swap in.")
    return run, comparison


def swap_in(lake: Lake, run: Run, note: str = "") -> None:
    """What was staged, once it is checked."""
    check_quality(run, lake)
    publication.publish(lake, run, note)
    print(f"published {run.run_id}", flush=True)


def _new_run(lake: Lake, is_applied: bool, gives_way: bool) -> Run:
    left = runs.under_way(lake)
    past = runs.history(lake, left.number if left else 0)
    if left and left.is_publishing and not past.has_ended:
        raise Stop(f"run {left.run_id} died while it was publishing: run a pass first, it finishes that.")
    if is_applied and (held := acceptance.held_runs(lake)):
        raise Stop(f"run {held[-1]['run_id']} is held: accept it, or let a pass publish it, before anything is swapped in.")
    if gives_way and left and left.asked_as and not past.has_ended:
        raise Stop(
            f"run {left.run_id} is under way, between two of its tasks: nothing was changed. This is tried again until it has ended."
        )
    if is_applied and left and not past.has_ended:
        ledger.book_dead(lake, left, "a rebuild took its place; the next run books its lines")
        past = runs.history(lake)
    return runs.rebuild(past)


def _days(lake: Lake, first: str, last: str, is_told: bool) -> Days:
    """Both days inside; without one, from the first or to the last reading."""
    stays = lake.rows("sensor_stores")
    if not stays:
        raise Stop("no reading is published yet, so there is nothing to rebuild.")
    start = _day(first) if first else min(row["first_seen_at"] for row in stays).date()
    end = _day(last) if last else max(row["last_seen_at"] for row in stays).date()
    if end < start:
        raise Stop(f"to={end} lies before from={start}; nothing was changed.")
    return Days(datetime.combine(start, time(), UTC), datetime.combine(end, time(), UTC) + DAY, is_told)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SettingError(f"{text!r} is not a day; write one like 2025-11-08.") from None


def _said(days: Days) -> str:
    start, last = days.start.date(), (days.end - DAY).date()
    return f"Rebuilding {start}" if start == last else f"Rebuilding {start} to {last}"
