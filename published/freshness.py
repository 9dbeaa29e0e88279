"""Whether what people see is old."""

from __future__ import annotations

from datetime import datetime, timedelta

from include.settings import iso
from include.wording import lasted
from published.snapshot import Snapshot


def overdue(snapshot: Snapshot, stale_after_s: int, now: datetime) -> str:
    """One sentence; empty where it is fresh. A rebuild has the clock of the run before it, so it makes nothing fresh."""
    age, allowed = now - snapshot.run["as_of"], timedelta(seconds=stale_after_s)
    if age <= allowed:
        return ""
    run = f"the last published run is {snapshot.run['run_id']}, as of {iso(snapshot.run['as_of'])}"
    later = (
        f"; the last one of all, {snapshot.last['run_id']}, is {snapshot.last['status']}"
        if snapshot.last["run_id"] != snapshot.run["run_id"]
        else ""
    )
    return f"The published data are {lasted(age)} old, {lasted(allowed)} are allowed: {run}{later}."
