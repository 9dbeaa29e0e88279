"""heartbeats: one row for each sensor in the inventory or ever seen, and whether it reports. On the driver, as `inventory` is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from include.settings import Clock
from spark_jobs.transforms.inventory import Inventory, Known
from spark_jobs.transforms.sensor_stores import Heard


@dataclass(frozen=True)
class Words:
    """A sensor's first reading's time, and its last reading."""

    first_seen_at: datetime
    last_seen_at: datetime
    store_id: str
    temperature_c: float
    door_open: bool | None
    battery_pct: float | None


@dataclass(frozen=True)
class Sensor:
    """What is known of a sensor, and whether its last silence is an outage."""

    sensor_id: str
    known: Known | None
    words: Words | None
    silent_after_s: int
    is_retired: bool
    is_silent: bool

    @property
    def store_id(self) -> str:
        if self.known:
            return self.known.store_id
        assert self.words
        return self.words.store_id

    @property
    def status(self) -> str:
        """Retired comes before all others."""
        if self.is_retired:
            return "retired"
        if self.words is None:
            return "never_reported"
        return "silent" if self.is_silent else "reporting"

    @property
    def silence_ended_at(self) -> datetime | None:
        """A retired sensor's last silence ended when it retired; nothing has ended another's yet."""
        return self.known.retired_at if self.known and self.is_retired else None


def merged(before: Mapping[str, Words], heard: Iterable[Heard]) -> dict[str, Words]:
    """What was known before, and what the new readings add; a reading that was replaced counts as it is now."""
    words = dict(before)
    for new in heard:
        known = words.get(new.sensor_id)
        first = new.first_seen_at if known is None else min(known.first_seen_at, new.first_seen_at)
        if known is None or new.last_seen_at >= known.last_seen_at:
            words[new.sensor_id] = Words(first, new.last_seen_at, new.store_id, new.temperature_c, new.door_open, new.battery_pct)
        else:
            words[new.sensor_id] = replace(known, first_seen_at=first)
    return words


def sensors(words: Mapping[str, Words], inventory: Inventory, clock: Clock) -> dict[str, Sensor]:
    return {sensor_id: _sensor(sensor_id, inventory.get(sensor_id), words.get(sensor_id), clock) for sensor_id in words.keys() | inventory}


def _sensor(sensor_id: str, known: Known | None, words: Words | None, clock: Clock) -> Sensor:
    silent_after_s = known.silent_after_s if known else clock.settings.silent_after_s
    retired_at = known.retired_at if known else None
    is_retired = retired_at is not None and retired_at <= clock.as_of
    judged_until = min(clock.heard_until, retired_at) if retired_at and is_retired else clock.heard_until
    is_silent = words is not None and judged_until - words.last_seen_at > timedelta(seconds=silent_after_s)
    return Sensor(sensor_id, known, words, silent_after_s, is_retired, is_silent)


def row(sensor: Sensor, cause: str | None, clock: Clock) -> dict[str, Any]:
    """The table's row; `cause` is that of its open outage."""
    words, is_silent = sensor.words, sensor.status == "silent"
    return {
        "sensor_id": sensor.sensor_id,
        "store_id": sensor.store_id,
        "status": sensor.status,
        "last_seen_at": words and words.last_seen_at,
        "silent_since": words.last_seen_at if words and is_silent else None,
        "cause": cause if is_silent else None,
        "as_of": clock.as_of,
        "first_seen_at": words and words.first_seen_at,
        "last_store_id": words and words.store_id,
        "last_temperature_c": words and words.temperature_c,
        "last_door_open": words and words.door_open,
        "last_battery_pct": words and words.battery_pct,
        "silent_after_s": sensor.silent_after_s,
        "is_silent": sensor.is_silent,
        "silence_ended_at": sensor.silence_ended_at if sensor.is_silent else None,
    }


def words_of(row: Mapping[str, Any]) -> Words:
    """The reverse, for a sensor that has spoken."""
    last = (row[f"last_{name}"] for name in ("store_id", "temperature_c", "door_open", "battery_pct"))
    return Words(row["first_seen_at"], row["last_seen_at"], *last)
