"""A sensor's readings in the order of their event times, as columns; and an episode that a rule finds among them.

Times are whole microseconds since 1970, temperatures whole thousandths of a degree, as everywhere where something is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from include.rules import Kind, Rule

BEFORE_ALL, AFTER_ALL = -(2**62), 2**62
SECOND = 1_000_000

Evidence = dict[str, Any]
Mask = NDArray[np.bool_]


def micros(moment: datetime | None, otherwise: int) -> int:
    """A time as such a number; an open end is `otherwise`."""
    return otherwise if moment is None else int(moment.replace(microsecond=0).timestamp()) * SECOND + moment.microsecond


COLUMNS = ("sensor_id", "store_id", "event_ts", "temperature_mc", "door_open", "battery_pct")


@dataclass(frozen=True)
class Track:
    times: NDArray[np.int64]
    temperatures: NDArray[np.int64]
    doors: NDArray[np.int8]  # 1 open, 0 closed, -1: it does not say
    levels: NDArray[np.float64]  # of the battery; NaN: it does not say
    stores: NDArray[np.int64]  # index into `names`
    names: Sequence[str]

    @staticmethod
    def of(readings: pa.Table) -> Track:
        times = readings["event_ts"].cast(pa.int64()).to_numpy()
        stores = readings["store_id"].combine_chunks().dictionary_encode()
        track = Track(
            times,
            readings["temperature_mc"].cast(pa.int64()).to_numpy(),
            pc.fill_null(readings["door_open"].cast(pa.int8()), -1).to_numpy(),
            readings["battery_pct"].to_numpy(zero_copy_only=False),
            stores.indices.to_numpy(zero_copy_only=False).astype(np.int64),
            stores.dictionary.to_pylist(),
        )
        return track if bool(np.all(times[1:] >= times[:-1])) else track.taken(np.argsort(times, kind="stable"))

    def taken(self, which: Any) -> Track:
        return Track(
            self.times[which], self.temperatures[which], self.doors[which], self.levels[which], self.stores[which], self.names
        )  # fmt: skip

    def between(self, start: int, end: int) -> Track:
        """From start to end, both inside."""
        return self.taken(slice(self.first_at(start), self.first_at(end + 1)))

    def first_at(self, moment: int) -> int:
        """The place of the first reading at that moment or later."""
        return int(np.searchsorted(self.times, moment, "left"))

    def __len__(self) -> int:
        return len(self.times)

    def store(self, place: int) -> str:
        return self.names[int(self.stores[place])]

    def evidence(self, place: int) -> Evidence:
        door, level = int(self.doors[place]), float(self.levels[place])
        return {
            "event_ts": int(self.times[place]),
            "temperature_c": int(self.temperatures[place]) / 1000,
            "door_open": None if door < 0 else bool(door),
            "battery_pct": None if level != level else level,
        }

    def variants(self, rule: Rule) -> list[tuple[Kind, Mask]]:
        """What the rule says at the stores of these readings, and for which readings it says so."""
        kinds = [rule.at(name) for name in self.names]
        found: dict[Kind, list[bool]] = {}
        for kind in kinds:
            if kind is not None and kind not in found:
                found[kind] = [other == kind for other in kinds]
        return [(kind, np.array(where, dtype=bool)[self.stores]) for kind, where in found.items()]


@dataclass(frozen=True)
class Episode:
    """What a rule found, before it becomes an alert."""

    started_at: int
    ended_at: int | None
    store_id: str
    peak: float | None
    first: Evidence
    worst: Evidence | None
    last: Evidence | None
    before: Evidence | None = None
