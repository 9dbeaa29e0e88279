"""What the lake tells about a run that failed: which run and batch, which input, the versions of the tables, the books so far. Without Spark, and even when the JVM is gone."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import TableNotFoundError

from include.incidents import KILLED, cause, kind_of, scrubbed
from include.settings import Settings
from include.tables import TABLES
from published.files import read
from published.refused import Refused
from published.snapshot import opened, published

MOST_FILES = 20
TAIL = "Last spark-submit output:\n"
EXIT_CODE = re.compile(r"Error code is: (-?\d+)")
NOBODY_SAID = "The task's own process ended before it could say why: it was killed, or its machine went down."
BOOKS = ("lines_read", "readings_new", "duplicates", "quarantined", "blank", "late_rows")


def of_failure(failure: str) -> dict[str, Any]:
    """What happened, and what is safe to do. `failure` is what Airflow's operator says: the exit code, and the driver's last lines."""
    told, _, tail = failure.partition(TAIL)
    found = EXIT_CODE.search(told)
    exit_code = int(found[1]) if found else None
    lines = [scrubbed(line, os.environ) for line in (tail or told).splitlines()]
    kind, known = kind_of(exit_code, lines), facts(Settings.from_env().lake)
    run_id = known.get("run", {}).get("run_id", "…")
    advice = [line.replace("{run_id}", run_id) for line in kind.advice]
    return {"kind": kind.name, "cause": cause(kind, exit_code, lines), "advice": advice, "exit_code": exit_code, "lines": lines, **known}


def of_silence() -> dict[str, Any]:
    """Of a task that could not leave anything."""
    known = facts(Settings.from_env().lake)
    return {"kind": KILLED.name, "cause": NOBODY_SAID, "advice": list(KILLED.advice), "exit_code": None, "lines": [], **known}


def facts(lake: str) -> dict[str, Any]:
    """Where the lake itself cannot be reached, that is the fact."""
    try:
        run, batch, ended = _json(f"{lake}/control/run.json"), _json(f"{lake}/control/begun.json"), _ended(lake)
        if run:
            run["has_ended"] = run["number"] in ended  # then the one that failed had not begun
        last, booked = _published(lake), _books(lake, max(ended.values(), default=0))
        versions = _versions(lake, last.get("versions", {}))
        return {"run": run, "batch": _input(batch), "versions": versions, "books": booked, "published": last.get("run_id", "")}
    except Exception as error:  # whatever it is: the page must come up
        return {"unreachable": f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}"}


def _json(place: str) -> dict[str, Any]:
    return dict(json.loads(read(place) or b"{}"))


def _input(batch: dict[str, Any]) -> dict[str, Any]:
    """What the batch at hand was to take."""
    files = [file["path"] for file in batch.get("files", ())]
    named = {name: batch[name] for name in ("origin", "number", "topic") if batch.get(name) not in (None, "")}
    return {**named, "files": files[:MOST_FILES], "more_files": max(0, len(files) - MOST_FILES)} if batch else {}


def _published(lake: str) -> dict[str, Any]:
    """The last published run's row; empty where there is none."""
    try:
        return published(lake).run
    except Refused:
        return {}


def _versions(lake: str, before: dict[str, int]) -> dict[str, list[int | None]]:
    """Of each table: as published, and now."""
    found: dict[str, list[int | None]] = {}
    for table in TABLES:
        try:
            found[table] = [before.get(table), opened(lake, table).version()]
        except TableNotFoundError:
            continue
    return found


def _ended(lake: str) -> dict[int, int]:
    """Runs that were published, held or found dead: their numbers, and the last batch that each has booked."""
    try:
        rows = opened(lake, "runs").to_pyarrow_dataset().to_table(columns=["number", "booked_until"]).to_pylist()
    except TableNotFoundError:
        return {}
    return {row["number"]: row["booked_until"] or 0 for row in rows}


def _books(lake: str, booked_until: int) -> dict[str, int]:
    """What was taken so far, and no run has booked yet."""
    try:
        batches = opened(lake, "batches").to_pyarrow_dataset()
    except TableNotFoundError:
        return {}
    rows = batches.to_table(columns=list(BOOKS), filter=ds.field("seq") > booked_until)
    return {name: pc.sum(rows[name]).as_py() or 0 for name in BOOKS}
