"""What ingest noticed and a person has to know, kept until a run that says so is published: in its note, and as a warning of the checks."""

from __future__ import annotations

import json
from typing import Any

from spark_jobs.runtime import storage
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run

PLACE = ("control", "notices.json")


def notice(lake: Lake, run: Run, text: str) -> None:
    print(text, flush=True)
    lake.write_text(json.dumps([*_all(lake), {"number": run.number, "text": text}], indent=1), *PLACE)


def unpublished(lake: Lake, run: Run) -> list[str]:
    """Those since the last publication, also of runs that died or were held."""
    published = run.published.number if run.published else 0
    return list(dict.fromkeys(each["text"] for each in _all(lake) if each["number"] > published))


def _all(lake: Lake) -> list[dict[str, Any]]:
    return list(json.loads(storage.read_text(lake.place(*PLACE)) or "[]"))
