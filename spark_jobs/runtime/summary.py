"""What a run did, for a person to read; from the published tables, without Spark."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from include.acknowledged import said_of
from include.settings import Settings, iso
from spark_jobs.runtime.small_tables import Row, SmallTables

MOST = 8  # rows of a list that people read before they stop


def of_run(settings: Settings, run_id: str = "") -> str:
    """The run of that id; without one, the last."""
    runs = _rows(
        settings,
        "runs",
        ["run_id", "number", "as_of", "status", "lines_read", "readings_new", "duplicates", "quarantined", "blank", "late_rows", "note"],
    )
    if not runs:
        return f"There is no run in {settings.lake} yet. Try: make run"
    run = max((row for row in runs if not run_id or row["run_id"] == run_id), key=lambda row: row["number"])
    parts = [_books(settings, run), _silent(settings), _alerts(settings), _checks(settings, run), _places(settings)]
    return "\n\n".join(part for part in parts if part)


def _books(settings: Settings, run: dict[str, Any]) -> str:
    lines = [f"Run {run['run_id']} as of {iso(run['as_of'])}: {run['status']}" + (f" ({run['note']})" if run["note"] else "")]
    for name, count in (
        ("lines read", run["lines_read"]),
        ("new readings", run["readings_new"]),
        ("duplicates", run["duplicates"]),
        ("quarantined", run["quarantined"]),
        ("blank", run["blank"]),
    ):
        lines.append(
            f"  {count:>10,}  {name}" + (f", {run['late_rows']:,} of them late" if name == "new readings" and run["late_rows"] else "")
        )
        if name == "quarantined":
            reasons = _reasons(settings, run["run_id"])
            lines += [f"  {count:>10,}    {reason}" for reason, count in reasons.most_common()]
    return "\n".join(lines)


def _reasons(settings: Settings, run_id: str) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for row in _rows(settings, "batches", ["run_id", "reasons"]):
        if row["run_id"] == run_id:
            reasons.update(dict(row["reasons"]))
    return +reasons


def _silent(settings: Settings) -> str:
    beats = _rows(settings, "heartbeats", ["sensor_id", "store_id", "status", "silent_since", "cause"])
    statuses = Counter(row["status"] for row in beats)
    silent = sorted((row for row in beats if row["status"] == "silent"), key=lambda row: (row["cause"], row["store_id"], row["sensor_id"]))
    lines = [f"Sensors: {', '.join(f'{count:,} {status}' for status, count in statuses.most_common()) or 'none'}"]
    lines += _listed(
        silent, lambda row: f"{row['sensor_id']} in {row['store_id']} is silent since {_time(row['silent_since'])}; cause: {row['cause']}"
    )
    lines += [f"  {row['sensor_id']} in {row['store_id']} has never reported" for row in beats if row["status"] == "never_reported"][:MOST]
    return "\n".join(lines)


def _alerts(settings: Settings) -> str:
    alerts = _rows(settings, "alerts", ["alert_id", "rule", "status", "severity", "sensor_id", "store_id", "started_at", "ended_at"])
    said = _rows(settings, "acknowledgements", None)
    current = [row for row in alerts if row["status"] != "retracted"]
    rules = Counter((row["rule"], row["status"]) for row in current)
    lines = [
        f"Alerts: {len(current):,}"
        + (f" ({', '.join(f'{count:,} {rule} {status}' for (rule, status), count in sorted(rules.items()))})" if current else "")
    ]
    grave = ("critical", "warning", "info")
    is_open = sorted((row for row in current if row["status"] == "open"), key=lambda row: (grave.index(row["severity"]), row["started_at"]))
    return "\n".join(
        lines
        + _listed(
            is_open,
            lambda row: (
                f"{row['severity']}: {row['rule']} {row['sensor_id']} in {row['store_id']} since {_time(row['started_at'])}"
                f" ({row['alert_id'][:8]}){_acknowledged(row, said)}"
            ),
        )
    )


def _acknowledged(alert: Row, said: list[Row]) -> str:
    on_it = said_of(alert, said)
    return f", {on_it[-1]['acknowledged_by']}: {on_it[-1]['comment']}" if on_it else ""


def _checks(settings: Settings, run: dict[str, Any]) -> str:
    rows = [row for row in _rows(settings, "quality_results", None) if row["run_id"] == run["run_id"]]
    failed = [row for row in rows if not row["success"]]
    lines = [f"Checks: {len(rows) - len(failed)} passed, {len(failed)} failed"]
    lines += [
        f"  {row['severity']}: {row['table']}: {row['expectation']} (seen {row['observed']}, wanted {row['limit']})" for row in failed
    ]
    return "\n".join(lines)


def _places(settings: Settings) -> str:
    return f"Tables:    {settings.lake}/tables\nData Docs: {settings.lake}/data_docs/index.html"


def _listed(rows: list[dict[str, Any]], say: Any) -> list[str]:
    return [f"  {say(row)}" for row in rows[:MOST]] + ([f"  … and {len(rows) - MOST:,} more"] if len(rows) > MOST else [])


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _rows(settings: Settings, table: str, columns: list[str] | None) -> list[Row]:
    return SmallTables(settings.lake).rows(table, columns)
