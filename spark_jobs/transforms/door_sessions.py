"""door_sessions: a sensor's door-open readings; a gap of at most `door_gap_s` joins, whatever closed readings lie between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spark_jobs.transforms.track import Evidence, Track

CONTENT = ("store_id", "ended_at", "readings", "peak_c", "rise_c")


@dataclass(frozen=True)
class Session:
    started_at: int
    ended_at: int
    store_id: str
    readings: int
    first: Evidence
    worst: Evidence  # of equally warm readings the earliest
    last: Evidence

    def row(self, sensor_id: str) -> dict[str, Any]:
        first_mc, peak_mc = (round(evidence["temperature_c"] * 1000) for evidence in (self.first, self.worst))
        return {
            "sensor_id": sensor_id,
            "store_id": self.store_id,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "readings": self.readings,
            "peak_c": peak_mc / 1000,
            "rise_c": (peak_mc - first_mc) / 1000,
        }


def sessions(track: Track, gap: int) -> list[Session]:
    opens = np.flatnonzero(track.doors == 1)
    if not len(opens):
        return []
    breaks = np.flatnonzero(np.diff(track.times[opens]) > gap) + 1
    starts, ends = np.concatenate(([0], breaks)), np.concatenate((breaks, [len(opens)]))
    return [_session(track, opens[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _session(track: Track, places: Any) -> Session:
    first, last = int(places[0]), int(places[-1])
    worst = int(places[int(np.argmax(track.temperatures[places]))])
    return Session(
        int(track.times[first]), int(track.times[last]), track.store(first), len(places),
        track.evidence(first), track.evidence(worst), track.evidence(last),
    )  # fmt: skip


def continued(known: Session, later: Session | None) -> Session:
    """A session that goes on: what was known of it, and its readings since."""
    if later is None:
        return known
    worst = later.worst if later.worst["temperature_c"] > known.worst["temperature_c"] else known.worst
    return Session(known.started_at, later.ended_at, known.store_id, known.readings + later.readings, known.first, worst, later.last)
