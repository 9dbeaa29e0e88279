"""Make the published tables anew for some days, beside the live ones; show what differs, and swap it in: make rebuild from=… to=… [apply=1]"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pyarrow.compute as pc

from include.settings import SettingError, Settings, iso
from include.tables import PUBLISHED, TABLES
from spark_jobs.check_quality import check_quality
from spark_jobs.publish_tables import publish_tables
from spark_jobs.runtime import acceptance, changes, derived_tables, ledger, reference, staging
from spark_jobs.runtime import run as runs
from spark_jobs.runtime.derivation import Days, Derivation
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.job import opened, program
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run

DAY = timedelta(days=1)


def rebuild_tables(lake: Lake, first: str, last: str, is_applied: bool, is_told: bool) -> int:
    """How many rows differ."""
    reference.check(lake.settings)
    run = _new_run(lake, is_applied)
    assert run.published is not None
    days = _days(lake, first, last, is_told)
    version = run.published.versions["readings"]
    lake.expect_rows(lake.count("readings", version, (pc.field("event_ts") >= days.start) & (pc.field("event_ts") < days.end)))
    print(f"{_said(days)} as of {run.as_of}, beside the published tables …", flush=True)
    run = staging.start(lake, run)
    derived_tables.stage(Derivation(lake, run, changes.nothing(lake, version), reference.load(lake.settings), days))
    count = 0
    for table, differing, shown in _differences(lake, run):
        count += differing
        print(f"  {table:<14} {differing:>8,} rows differ" + (f"; the first: {shown}" if differing else ""), flush=True)
    if count == 0:
        print("The published tables are as a rebuild makes them: nothing to swap in.")
    elif is_applied:
        check_quality(run, lake)
        publish_tables(run, lake)
        print(f"published {run.run_id}", flush=True)
    else:
        print("Nothing was changed. To swap it in: the same command with apply=1")
    return count


def _new_run(lake: Lake, is_applied: bool) -> Run:
    left = runs.under_way(lake)
    past = runs.history(lake, left.number if left else 0)
    if left and left.is_publishing and not past.has_ended:
        raise Stop(f"run {left.run_id} died while it was publishing: run a pass first, it finishes that.")
    if is_applied and (held := acceptance.held_runs(lake)):
        raise Stop(f"run {held[-1]['run_id']} is held: accept it, or let a pass publish it, before anything is swapped in.")
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


def _differences(lake: Lake, run: Run) -> Iterator[tuple[str, int, str]]:
    for table in PUBLISHED:
        if TABLES[table].is_small:
            key = TABLES[table].key
            now, before = (
                {tuple(row[name] for name in key): row for row in rows}
                for rows in (staging.staged_rows(lake, run, table), lake.rows(table))
            )
            differing = [name for name in sorted(now.keys() | before.keys()) if now.get(name) != before.get(name)]
            yield table, len(differing), f"{' '.join(differing[0])}" if differing else ""
        elif table != "alert_events":
            staged = staging.staged_table(lake, run, table)
            rows = [] if staged is None else staged.sort_by([(name, "ascending") for name in TABLES[table].key]).slice(0, 1).to_pylist()
            yield table, 0 if staged is None else len(staged), _shown(table, rows[0]) if rows else ""


def _shown(table: str, row: dict[str, Any]) -> str:
    names = ("rule", "sensor_id", "store_id", "window_start", "started_at", "ended_at", "status")
    told = (iso(row[name]) if isinstance(row[name], datetime) else str(row[name]) for name in names if row.get(name) is not None)
    return f"{row['action']} {' '.join(told)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--from", dest="first", default="", metavar="DAY", help="the first day, UTC, like 2025-11-08; empty: that of the first reading"
    )
    parser.add_argument("--to", dest="last", default="", metavar="DAY", help="the last day, inside; empty: that of the last reading")
    parser.add_argument("--apply", choices=["", "0", "1"], default="", help="1: check what differs and swap it in")
    parser.add_argument("--tell", choices=["", "0", "1"], default="", help="1: alert events go out as new ones, not as history")
    given = parser.parse_args()
    settings = replace(Settings.from_env(), run_id="")
    with opened(settings, "make rebuild") as lake:
        rebuild_tables(lake, given.first, given.last, given.apply == "1", given.tell == "1")


if __name__ == "__main__":
    sys.exit(program(main))
