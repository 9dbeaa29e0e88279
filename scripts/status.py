"""How the lake is doing, at a glance: python -m scripts.status (make status). Reads the published tables; starts no Spark, changes nothing."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.dataset as ds
from deltalake.exceptions import TableNotFoundError

from include.acknowledged import said_of
from include.settings import SettingError, Settings, iso
from include.wording import lasted
from published.snapshot import opened
from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Stop

RUNS = 5
Row = dict[str, Any]


def of_lake(settings: Settings, now: datetime) -> str:
    storage.check(settings.lake)
    parts = {"Lake": [settings.lake], "Lease": [lease(settings, now)]}
    runs = _last_runs(settings)
    if not runs:
        return _drawn(parts | {"Runs": ["none yet; make run, or make pass"]})
    parts |= {"Runs": [_run(row, now) for row in runs[: -RUNS - 1 : -1]], "Held": _held(runs[-1])}
    published = [row for row in runs if row["status"] == "published"]
    if published:
        beats = _rows(settings, "heartbeats")
        parts["Fresh"] = [_fresh(settings, beats, published[-1], now)]
        parts["Sensors"] = [_sensors(beats)]
        parts["Alerts"] = [_alerts(_rows(settings, "alerts", ds.field("status") == "open"), _rows(settings, "acknowledgements"))]
    return _drawn(parts)


def _last_runs(settings: Settings) -> list[Row]:
    """The last few, and the last published one, which may be older: a year has tens of thousands of them."""
    known = sorted(_rows(settings, "runs", columns=["number", "status"]), key=lambda row: row["number"])
    wanted = known[-RUNS:] + [row for row in known if row["status"] == "published"][-1:]
    return sorted(_rows(settings, "runs", ds.field("number").isin([row["number"] for row in wanted])), key=lambda row: row["number"])


def lease(settings: Settings, now: datetime) -> str:
    text = storage.read_text(f"{settings.lake}/control/lease.json")
    found = json.loads(text) if text else {"is_given_back": True}
    if found.get("is_given_back"):
        return "free"
    left = found["expires_at"] - now.timestamp()
    who = f"{found['holder']} (process {found['pid']} on {found['host'][0]})"
    if left > 0:
        return f"{who} is writing; {left:.0f} s more unless it renews it"
    return f"run out {lasted(timedelta(seconds=-left))} ago, left by {who}; the next run takes it over"


def _run(row: Row, now: datetime) -> str:
    told = f"{row['readings_new']:,} new readings, {row['duplicates']:,} duplicates, {row['quarantined']:,} quarantined"
    line = f"{row['run_id']}: {row['status']} {lasted(now - row['finished_at'])} ago, as of {iso(row['as_of'])}: {told}"
    return f"{line}; {row['note']}" if row["note"] else line


def _held(last: Row) -> list[str]:
    if last["status"] != "held":
        return ["no"]
    return [
        "YES: people see the tables of the last published run.",
        f"Remove the cause and let the next run publish, or: make accept run={last['run_id']} by=… why=…",
    ]


def _fresh(settings: Settings, beats: list[Row], last: Row, now: datetime) -> str:
    """By the run's own clock, which may be another one than ours: how old the newest reading was when it was published, and how long ago that is."""
    limit = timedelta(seconds=settings.stale_after_s)
    seen = max((row["last_seen_at"] for row in beats if row["last_seen_at"]), default=None)
    newest = "no sensor has ever reported"
    if seen is not None:
        behind = last["as_of"] - seen
        newest = f"newest reading {iso(seen)}, {lasted(behind)} before that run's clock" + (" (OLD)" if behind > limit else "")
    since = now - last["finished_at"]
    return f"published {lasted(since)} ago{' (OLD)' if since > limit else ''}; {newest}"


def _sensors(beats: list[Row]) -> str:
    kinds = Counter(f"{row['status']} ({row['cause']})" if row["cause"] else row["status"] for row in beats)
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common()) or "none"


def _alerts(is_open: list[Row], said: list[Row]) -> str:
    if not is_open:
        return "none open"
    grave = Counter(row["severity"] for row in is_open)
    listed = ", ".join(f"{grave[name]:,} {name}" for name in ("critical", "warning", "info") if grave[name])
    return f"{listed} open; {sum(not said_of(row, said) for row in is_open):,} not yet acknowledged"


def _rows(settings: Settings, table: str, where: Any = None, columns: list[str] | None = None) -> list[Row]:
    try:
        return list(opened(settings.lake, table).to_pyarrow_dataset().to_table(columns=columns, filter=where).to_pylist())
    except TableNotFoundError:
        return []


def _drawn(parts: dict[str, list[str]]) -> str:
    return "\n".join(f"{'' if number else name:<8} {line}" for name, lines in parts.items() for number, line in enumerate(lines))


def main() -> int:
    try:
        print(of_lake(Settings.from_env(), datetime.now(UTC)))
    except (Stop, SettingError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
