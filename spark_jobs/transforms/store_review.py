"""One store looked at again: what its windows should be, given what was measured and what is published, and which rows that changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_jobs.transforms import store_minutes, store_trends, windows
from spark_jobs.transforms.store_minutes import Due, Store
from spark_jobs.transforms.track import BEFORE_ALL
from spark_jobs.transforms.windows import Changed, Columns

GONE = Store(BEFORE_ALL, Due.of(()), Due.of(()))  # all its readings turned out to be of another store
MINUTES = (*store_minutes.CONTENT, "window_start", "revision")  # of a published minute
TRENDS = (*store_trends.CONTENT, "window_start", "window_end", "revision")


@dataclass(frozen=True)
class StoreReview:
    """Which windows are worked out: those of some days, or (None) of all."""

    stores: dict[str, Store]
    silent_for: int
    minute_days: NDArray[np.int64] | None
    trend_days: NDArray[np.int64] | None
    is_anew: bool  # from the readings alone: what is published on these days is no part of it

    def of(self, store_id: str, measured: Columns, minutes: Columns, trends: Columns) -> tuple[Changed, Changed]:
        """What changes in the minutes and in the trends of a store."""
        store = self.stores.get(store_id, GONE)
        others = windows.taken(minutes, ~np.isin(minutes["window_start"], measured["window_start"]))
        if self.is_anew:
            others = windows.taken(others, ~windows.is_on(others["window_start"], self.minute_days))
        others["expected_reporting"] = np.full(len(others["window_start"]), -1)
        measured["sensors_expected"] = np.full(len(measured["window_start"]), -1)
        measured["completeness"] = np.full(len(measured["window_start"]), np.nan)
        base = windows.joined((measured, others), (*store_minutes.MEASURED, "sensors_expected", "completeness"))
        fresh = store_minutes.build(base, store, self.silent_for)
        return (
            self._changed(fresh, minutes, store_minutes.CONTENT, self.minute_days),
            self._changed(store_trends.build(base, store), trends, store_trends.CONTENT, self.trend_days),
        )

    def _changed(self, fresh: Columns, published: Columns, content: tuple[str, ...], days: NDArray[np.int64] | None) -> Changed:
        fresh = windows.taken(fresh, windows.is_on(fresh["window_start"], days))
        before = windows.taken(published, windows.is_on(published["window_start"], days))
        return windows.differences(fresh, before, content, deletes=self.is_anew)
