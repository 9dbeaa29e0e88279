"""The cases that everyone else gets wrong: how many histories had each. Printed at the end of the run (see conftest.py)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.lakes import TestLake
from tests.oracle.histories import History

NAMES = (
    "a late repair of a final row",
    "a conflict lost by an earlier-read line",
    "a retracted alert",
    "a split outage",
    "a limit change inside an episode",
    "an all-silent input",
)
TRIED = "histories"
RARE_BELOW = 100  # histories: in fewer, a case may be missing by chance
counts: Counter[str] = Counter(dict.fromkeys((TRIED, *NAMES), 0))


def count(found: set[str]) -> None:
    counts.update({TRIED, *found})


def add(others: dict[str, int]) -> None:
    counts.update(others)


def missed() -> list[str]:
    """The cases that none of many histories had: such a run proves less than it says."""
    return [name for name in NAMES if counts[name] == 0] if counts[TRIED] >= RARE_BELOW else []


class Passes:
    """A lake, watched from pass to pass."""

    def __init__(self, history: History, lake: TestLake) -> None:
        self.history, self.lake = history, lake
        self._pass_of_file: dict[str, int] = {}
        self._outages: list[dict[str, Any]] = []
        self._has_split, self._passes = False, 0

    def note(self, files: list[tuple[int, list[bytes]]]) -> None:
        """What a pass did; it had these files."""
        self._passes += 1
        self._pass_of_file.update({f"{arrived_ms}.jsonl": self._passes for arrived_ms, _ in files})
        now = self.lake.rows("outages")
        self._has_split |= any(sum(_is_inside(new, old) for new in now) >= 2 for old in self._outages if old["ended_at"] is not None)
        self._outages = now

    def found(self) -> set[str]:
        lake, found = self.lake, set()
        if any(row["revision"] > 0 for row in lake.rows("store_minutes")):
            found.add("a late repair of a final row")
        if any(self._was_read_earlier(row) for row in lake.rows("quarantine")):
            found.add("a conflict lost by an earlier-read line")
        alerts = lake.rows("alerts")
        if any(row["status"] == "retracted" for row in alerts):
            found.add("a retracted alert")
        if self._has_split:
            found.add("a split outage")
        if any(self._sees_limits_change(row) for row in alerts):
            found.add("a limit change inside an episode")
        if any(row["cause"] == "input" for row in lake.rows("outages")):
            found.add("an all-silent input")
        return found

    def _was_read_earlier(self, row: dict[str, Any]) -> bool:
        """It was a reading until a line turned up, in a later pass, that had arrived before it."""
        number = int(row["run_id"].rpartition("-")[2])
        return row["reasons"] == ["conflicting_duplicate"] and self._pass_of_file[row["source"].rpartition("/")[2]] < number

    def _sees_limits_change(self, alert: dict[str, Any]) -> bool:
        if alert["rule"] not in ("too_warm", "too_cold") or alert["status"] == "retracted":
            return False
        starts, ends = (time and time.timestamp() * 1000 for time in (alert["started_at"], alert["ended_at"]))
        changes = (row["valid_from"] for row in self.history.limits if row["store_id"] == alert["store_id"] and row["valid_from"])
        return any(starts < change and (ends is None or change < ends) for change in changes)


def _is_inside(new: dict[str, Any], old: dict[str, Any]) -> bool:
    is_same = new["sensor_id"] == old["sensor_id"]
    return is_same and new["ended_at"] is not None and old["started_at"] <= new["started_at"] and new["ended_at"] <= old["ended_at"]
