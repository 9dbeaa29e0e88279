"""The run at hand: its id, number and clock, kept in the lake so that a retry, or the next run, finds it as it was left.

`runs` says how a run ended; `control/run.json` says which one is under way.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from include.settings import Clock, Settings, iso, utc
from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Held, Stop
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.small_tables import Write


@dataclass(frozen=True)
class Published:
    number: int
    as_of: str
    versions: dict[str, int]


@dataclass(frozen=True)
class Run:
    run_id: str
    asked_as: str  # Airflow's id of the run; empty for a pass without Airflow
    number: int
    as_of: str
    started_at: str
    booked_until: int  # the last ingest batch that an earlier run booked
    published: Published | None  # the last published state: what derive starts from
    is_publishing: bool = False
    attempt: str = ""  # at staging: a driver that was given up, and wakes up, must not meet the one that does the same run again
    is_rebuild: bool = False  # it takes no lines: it makes published tables anew

    def clock(self, settings: Settings) -> Clock:
        return Clock(utc(self.as_of), settings)

    def write(self, step: str) -> Write:
        """A rebuild that was not swapped in leaves its number to the next run: their writes have different names."""
        return Write(f"rebuild/{step}" if self.is_rebuild else step, self.number)


@dataclass(frozen=True)
class History:
    """What `runs` tells about the runs so far."""

    last_number: int
    booked_until: int
    published: Published | None
    has_ended: bool  # the run asked about
    is_used: bool  # the id asked about


def history(lake: Lake, number: int = 0, run_id: str = "") -> History:
    rows = lake.rows("runs", ["number", "booked_until", "run_id", "as_of", "versions", "status"])
    last = max((row for row in rows if row["status"] == "published"), key=lambda row: row["number"], default=None)
    published = Published(last["number"], iso(last["as_of"]), dict(last["versions"])) if last else None
    return History(
        max((row["number"] for row in rows), default=0),
        max((row["booked_until"] for row in rows), default=0),
        published,
        has_ended=any(row["number"] == number for row in rows),
        is_used=any(row["run_id"] == run_id for row in rows),
    )


def under_way(lake: Lake) -> Run | None:
    text = storage.read_text(lake.place("control", "run.json"))
    if text is None:
        return None
    fields = json.loads(text)
    published = Published(**fields["published"]) if fields["published"] else None
    lake.expect_versions(published.versions if published else {})
    return Run(**{**fields, "published": published})


def rebuild(past: History) -> Run:
    """A run that makes what is published anew, by the same clock. It counts once it is saved."""
    if past.published is None:
        raise Stop("nothing is published yet, so there is nothing to rebuild: run a pass first.")
    number = past.last_number + 1
    run_id, now = f"rebuild-{number:06d}", iso(datetime.now(UTC))
    return Run(run_id, run_id, number, past.published.as_of, now, past.booked_until, past.published, is_rebuild=True)


def begin(lake: Lake, past: History) -> Run:
    """A new run, whose clock never goes back behind the last published one."""
    settings, number = lake.settings, past.last_number + 1
    run_id = settings.run_id or f"pass-{number:06d}"
    run_id = f"{run_id}~{number}" if past.is_used else run_id  # a cleared run of Airflow that starts again has books of its own
    run = Run(run_id, settings.run_id, number, iso(_as_of(settings, past)), iso(datetime.now(UTC)), past.booked_until, past.published)
    save(lake, run)
    return run


def continued(lake: Lake) -> Run | None:
    """The run that an earlier task of the same Airflow run began; None where a first attempt has published it already."""
    run = under_way(lake)
    if run is None or run.asked_as != lake.settings.run_id:
        raise Stop(
            f"run {lake.settings.run_id} is not the one under way ({run.run_id if run else 'none'}): a later one has taken its place. "
            "Nothing was changed. Trigger a new run; it takes whatever is still to be done."
        )
    ended = lake.rows("runs", ["status", "note"], [("number", "=", run.number)])
    if ended and ended[0]["status"] == "held":
        raise Held(f"run {run.run_id} is held: {ended[0]['note']}")
    return None if ended else run


def save(lake: Lake, run: Run) -> None:
    lake.write_text(json.dumps(asdict(run)), "control", "run.json")


def mark_publishing(lake: Lake, run: Run) -> None:
    """From here on the run is finished by whoever comes next: gold tables must not stay half moved."""
    save(lake, replace(run, is_publishing=True))


def _as_of(settings: Settings, past: History) -> datetime:
    if not settings.as_of:
        raise Stop("COLDSTORE_AS_OF is not set: say as of when, for example COLDSTORE_AS_OF=2025-11-08T16:00:00Z make pass.")
    wanted = utc(settings.as_of)
    if past.published is not None and wanted < utc(past.published.as_of):
        print(f"as_of {iso(wanted)} lies before the last published one: this run uses {past.published.as_of}.", flush=True)
        return utc(past.published.as_of)
    return wanted
