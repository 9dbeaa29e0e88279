"""Held runs that wait, and what people accepted (P21): who, when and why, kept for ever."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from pyspark.sql import Row
from pyspark.sql import functions as F

from include.settings import iso
from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import history


@dataclass(frozen=True)
class Acceptance:
    run_id: str
    by: str
    why: str
    at: str


def held_runs(lake: Lake) -> list[Row]:
    """The held runs since the last publication, oldest first."""
    published = history(lake).published
    rows = lake.read("runs").filter((F.col("status") == "held") & (F.col("number") > (published.number if published else 0)))
    return rows.orderBy("number").collect()


def accepted(lake: Lake) -> dict[str, Acceptance]:
    text = storage.read_text(lake.place("control", "accepted.json"))
    return {item["run_id"]: Acceptance(**item) for item in json.loads(text or "[]")}


def accept(lake: Lake, run_id: str, by: str, why: str) -> Acceptance:
    if not by.strip() or not why.strip():
        raise Stop("say who accepts the run and why: make accept run=… by=… why=…")
    held = [row.run_id for row in held_runs(lake)]
    if run_id not in held:
        waiting = f"waiting: {', '.join(held)}" if held else "no run is waiting to be accepted"
        raise Stop(f"run {run_id or '(none given)'} is not held; {waiting}. Nothing was changed.")
    known = accepted(lake) | {run_id: Acceptance(run_id, by.strip(), why.strip(), iso(datetime.now(UTC)))}
    storage.write_text(lake.place("control", "accepted.json"), json.dumps([asdict(item) for item in known.values()], indent=1))
    return known[run_id]


def note(lake: Lake) -> str:
    """What a publication says about the held runs that it publishes too."""
    known = accepted(lake)
    people = [known[row.run_id] for row in held_runs(lake) if row.run_id in known]
    return "; ".join(f"{item.run_id} accepted by {item.by}: {item.why}" for item in people)
