"""The limits of each store, by the time at which they are in force (from ≤ t < to); of several the one that came into force last counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spark_jobs.transforms.track import AFTER_ALL, BEFORE_ALL, Mask, Track, micros

Side = Literal["above", "below"]


@dataclass(frozen=True)
class Span:
    start: int
    end: int
    low_mc: int | None
    high_mc: int | None

    def at(self, side: Side) -> int | None:
        return self.high_mc if side == "above" else self.low_mc


@dataclass(frozen=True)
class Limits:
    spans: Mapping[str, list[Span]] = field(default_factory=dict)

    @staticmethod
    def of_rows(rows: Iterable[Mapping[str, Any]]) -> Limits:
        spans: dict[str, list[Span]] = {}
        for row in rows:
            low, high = (None if row[name] is None else int(np.rint(row[name] * 1000)) for name in ("low_c", "high_c"))
            spans.setdefault(row["store_id"], []).append(
                Span(micros(row["valid_from"], BEFORE_ALL), micros(row["valid_to"], AFTER_ALL), low, high)
            )
        return Limits({store: sorted(found, key=lambda span: span.start) for store, found in spans.items()})

    def of(self, track: Track, side: Side) -> tuple[NDArray[np.int64], Mask]:
        """For each reading the limit at its time and store, and whether there is one."""
        limit, is_limited = np.zeros(len(track), np.int64), np.zeros(len(track), bool)
        for code, store in enumerate(track.names):
            for span in self.spans.get(store, ()):
                start, end = track.first_at(span.start), track.first_at(span.end)
                here = track.stores[start:end] == code
                value = span.at(side)
                limit[start:end][here] = 0 if value is None else value
                is_limited[start:end][here] = value is not None
        return limit, is_limited

    def in_force(self, store_id: str, moment: int) -> Span | None:
        return next((span for span in reversed(self.spans.get(store_id, ())) if span.start <= moment < span.end), None)

    def first_in_force(self, store_ids: Iterable[str], side: Side) -> int:
        """Before that moment no reading of these stores is judged on that side."""
        starts = (span.start for store in store_ids for span in self.spans.get(store, ()) if span.at(side) is not None)
        return min(starts, default=AFTER_ALL)
