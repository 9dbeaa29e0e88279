"""outages: every silence of a sensor longer than its timeout. Exactly the timeout is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spark_jobs.transforms.track import Episode, Track

CONTENT = ("store_id", "ended_at")  # its cause depends on all other sensors: see outage_causes


@dataclass(frozen=True)
class Silence:
    """From the reading at `place` on; `next` is the reading that ended it, if one did."""

    place: int
    next: int | None
    ended_at: int | None

    def row(self, sensor_id: str, track: Track, home: str | None) -> dict[str, Any]:
        """`home` is the inventory's store, where it knows the sensor."""
        return {
            "sensor_id": sensor_id,
            "store_id": home or track.store(self.place),
            "started_at": int(track.times[self.place]),
            "ended_at": self.ended_at,
            "cause": None,
        }

    def episode(self, track: Track) -> Episode:
        last = None if self.next is None else track.evidence(self.next)
        return Episode(
            int(track.times[self.place]), self.ended_at, track.store(self.place), None, track.evidence(self.place), None, last
        )  # fmt: skip


def silences(track: Track, first: int, last: int, timeout: int) -> list[Silence]:
    """Those that begin with the readings at the places from first to last, and that a later reading ended."""
    times = track.times[first : last + 2]
    return [Silence(first + at, first + at + 1, int(times[at + 1])) for at in np.flatnonzero(np.diff(times) > timeout).tolist()]
