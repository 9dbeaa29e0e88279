"""Held runs that wait, and what people accepted (P21): who, when and why, kept for ever."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from include.settings import iso
from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row

COUNTED = ("lines_read", "readings_new", "duplicates", "quarantined", "blank")


@dataclass(frozen=True)
class Acceptance:
    run_id: str
    by: str
    why: str
    at: str
    as_of: str  # the held run's clock


def held_runs(lake: Lake) -> list[Row]:
    """The held runs since the last publication, oldest first."""
    runs = lake.rows("runs", ["run_id", "number", "status", "note", "as_of", *COUNTED])
    published = max((row["number"] for row in runs if row["status"] == "published"), default=0)
    return sorted((row for row in runs if row["status"] == "held" and row["number"] > published), key=lambda row: row["number"])


def waiting(lake: Lake, run: Run) -> list[Row]:
    """The held runs before this one that nobody accepted: the check of an accepted one judged all before it, too."""
    if run.published is not None and run.published.number == run.number - 1:
        return []  # as nearly always, and without a look at the table
    known, held = accepted(lake), held_runs(lake)
    covered = max((row["number"] for row in held if row["run_id"] in known), default=0)
    return [row for row in held if row["number"] > covered]


def accepted(lake: Lake) -> dict[str, Acceptance]:
    text = storage.read_text(lake.place("control", "accepted.json"))
    return {item["run_id"]: Acceptance(**item) for item in json.loads(text or "[]")}


def accept(lake: Lake, run_id: str, by: str, why: str) -> Acceptance:
    """Write it down; the next run publishes what the held one staged."""
    if not by.strip() or not why.strip():
        raise Stop("say who accepts the run and why: make accept run=… by=… why=…")
    held = {row["run_id"]: row for row in held_runs(lake)}
    if run_id not in held:
        waiting = f"waiting: {', '.join(held)}" if held else "no run is waiting to be accepted"
        raise Stop(f"run {run_id or '(none given)'} is not held; {waiting}. Nothing was changed.")
    as_of = iso(held[run_id]["as_of"])
    known = accepted(lake) | {run_id: Acceptance(run_id, by.strip(), why.strip(), iso(datetime.now(UTC)), as_of)}
    lake.write_text(json.dumps([asdict(item) for item in known.values()], indent=1), "control", "accepted.json")
    return known[run_id]


def note(lake: Lake) -> str:
    """What a publication says about the held runs that it publishes too."""
    known = accepted(lake)
    if not known:
        return ""
    people = [known[row["run_id"]] for row in held_runs(lake) if row["run_id"] in known]
    return "; ".join(f"{item.run_id} accepted by {item.by}: {item.why}" for item in people)
