"""Who is expected: the sensors of the inventory, and those it does not know from their first reading on.

One row per sensor is little: it is worked out on the driver, in plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.settings import Settings
from spark_jobs.transforms.sensor_stores import Stays

DUE_EVERY_S = 60  # only sensors due at least once a minute are waited for


@dataclass(frozen=True)
class Known:
    """A sensor of the inventory, its empty cells filled."""

    sensor_id: str
    store_id: str
    active_from: datetime | None
    retired_at: datetime | None
    silent_after_s: int
    is_due: bool  # it is waited for, while it is active


Inventory = Mapping[str, Known]


@dataclass(frozen=True)
class Expectation:
    """From when to when a store waits for a sensor; None is open."""

    store_id: str
    sensor_id: str
    since: datetime | None
    until: datetime | None


def known_sensors(rows: Iterable[Mapping[str, Any]], settings: Settings) -> Inventory:
    return {
        row["sensor_id"]: Known(
            row["sensor_id"],
            row["store_id"],
            row["active_from"],
            row["retired_at"],
            row["silent_after_s"] or settings.silent_after_s,
            (row["expected_every_s"] or settings.expected_every_s) <= DUE_EVERY_S and _is_ever_active(row),
        )
        for row in rows
    }


def _is_ever_active(row: Mapping[str, Any]) -> bool:
    """From active_from until before retired_at: where they are the same moment, at none."""
    since, until = row["active_from"], row["retired_at"]
    return since is None or until is None or bool(since < until)


def expectations(inventory: Inventory, stays: Stays, settings: Settings) -> list[Expectation]:
    known = [
        Expectation(sensor.store_id, sensor.sensor_id, sensor.active_from, sensor.retired_at)
        for sensor in inventory.values()
        if sensor.is_due
    ]
    strangers = stays.items() if settings.expected_every_s <= DUE_EVERY_S else ()
    unknown = [Expectation(store, sensor, stay.first_seen_at, None) for (sensor, store), stay in strangers if sensor not in inventory]
    return known + unknown
