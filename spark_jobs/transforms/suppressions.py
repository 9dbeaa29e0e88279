"""Suppression windows (P15): they mark an alert that starts in them, and hide none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.transforms.track import AFTER_ALL, BEFORE_ALL, micros


@dataclass(frozen=True)
class Window:
    start: int
    end: int
    sensor_id: str | None  # None: all of the store
    rule: str | None  # None: all rules
    reason: str


@dataclass(frozen=True)
class Suppressions:
    windows: Mapping[str, list[Window]] = field(default_factory=dict)  # by store, in the file's order

    @staticmethod
    def of_rows(rows: Iterable[Mapping[str, Any]]) -> Suppressions:
        windows: dict[str, list[Window]] = {}
        for row in rows:
            start, end = micros(row["from"], BEFORE_ALL), micros(row["to"], AFTER_ALL)
            windows.setdefault(row["store_id"], []).append(Window(start, end, row["sensor_id"], row["rule"], row["reason"] or "suppressed"))
        return Suppressions(windows)

    def reason(self, rule: str, sensor_id: str, store_id: str, moment: int) -> str | None:
        """Of several windows the first in the file."""
        for window in self.windows.get(store_id, ()):
            if window.start <= moment < window.end and window.sensor_id in (None, sensor_id) and window.rule in (None, rule):
                return window.reason
        return None
