"""The reference tables: which sensors there should be, which limits hold, which alerts are suppressed; times in ms or None (open).

Read as:
- of a sensor that the inventory names, only its inventory store waits for it, wherever it reports from;
- the limits of one store do not overlap; the oracle refuses them rather than guess which counts;
- a limit with only one side has no limit on the other;
- a suppression that names a sensor holds for it in that store only; of several that fit, the first in the file gives its reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.oracle.lines import Reading, thousandths

DEFAULT_SILENT_AFTER_S = 120
DEFAULT_EXPECTED_EVERY_S = 60
DUE_AT_LEAST_EVERY_S = 60


@dataclass(frozen=True)
class Sensor:
    """A line of sensors.csv."""

    sensor_id: str
    store_id: str
    active_from: int | None = None
    retired_at: int | None = None
    silent_after_s: int | None = None
    expected_every_s: int | None = None

    @property
    def silent_after_ms(self) -> int:
        return 1000 * (DEFAULT_SILENT_AFTER_S if self.silent_after_s is None else self.silent_after_s)

    @property
    def is_due_each_minute(self) -> bool:
        every_s = DEFAULT_EXPECTED_EVERY_S if self.expected_every_s is None else self.expected_every_s
        return every_s <= DUE_AT_LEAST_EVERY_S

    def is_active_within(self, start: int, end: int) -> bool:
        """Whether it is active at any moment of start ≤ t < end."""
        first = start if self.active_from is None else max(start, self.active_from)
        return first < (end if self.retired_at is None else min(end, self.retired_at))

    def is_retired(self, as_of: int) -> bool:
        return self.retired_at is not None and self.retired_at <= as_of


@dataclass(frozen=True)
class Limit:
    """A line of limits.csv."""

    store_id: str
    low_c: float | None = None
    high_c: float | None = None
    valid_from: int | None = None
    valid_to: int | None = None

    @property
    def low(self) -> int | None:
        return None if self.low_c is None else thousandths(self.low_c)

    @property
    def high(self) -> int | None:
        return None if self.high_c is None else thousandths(self.high_c)


@dataclass(frozen=True)
class Suppression:
    """A line of suppressions.csv; no sensor means all of the store, no rule means all rules."""

    store_id: str
    reason: str
    sensor_id: str | None = None
    rule: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    def covers(self, rule: str, sensor_id: str, store_id: str, moment: int) -> bool:
        return (
            self.store_id == store_id
            and self.sensor_id in (None, "", sensor_id)
            and self.rule in (None, "", rule)
            and _holds(self.from_ms, self.to_ms, moment)
        )


@dataclass(frozen=True)
class Reference:
    """The three tables together; an absent file is empty."""

    sensors: tuple[Sensor, ...] = ()
    limits: tuple[Limit, ...] = ()
    suppressions: tuple[Suppression, ...] = ()

    def sensor(self, sensor_id: str) -> Sensor | None:
        return next((sensor for sensor in self.sensors if sensor.sensor_id == sensor_id), None)

    def silent_after_ms(self, sensor_id: str) -> int:
        sensor = self.sensor(sensor_id)
        return sensor.silent_after_ms if sensor else 1000 * DEFAULT_SILENT_AFTER_S

    def limit_at(self, store_id: str, moment: int) -> Limit | None:
        """The limits in force: from ≤ t < to."""
        in_force = [limit for limit in self.limits if limit.store_id == store_id and _holds(limit.valid_from, limit.valid_to, moment)]
        if len(in_force) > 1:
            raise ValueError(f"{store_id} has overlapping limits at {moment}; the contract does not say which counts")
        return in_force[0] if in_force else None

    def suppressed_by(self, rule: str, sensor_id: str, store_id: str, moment: int) -> str | None:
        """The reason that marks an alert which starts at the moment."""
        fitting = (one.reason for one in self.suppressions if one.covers(rule, sensor_id, store_id, moment))
        return next(fitting, None)


def first_reports(readings: Iterable[Reading]) -> dict[tuple[str, str], int]:
    """When each (store, sensor) was first read there."""
    first: dict[tuple[str, str], int] = {}
    for reading in readings:
        place = (reading.store_id, reading.sensor_id)
        first[place] = min(reading.event_ms, first.get(place, reading.event_ms))
    return first


def expected_sensors(store_id: str, start: int, end: int, reference: Reference, first_there: dict[tuple[str, str], int]) -> set[str]:
    """The sensors due each minute in the store at any moment of start ≤ t < end."""
    listed = {
        sensor.sensor_id
        for sensor in reference.sensors
        if sensor.store_id == store_id and sensor.is_due_each_minute and sensor.is_active_within(start, end)
    }
    # Sensors it does not know: from their first reading there on, at the default cadence.
    known = {sensor.sensor_id for sensor in reference.sensors}
    unlisted = {sensor for (store, sensor), first in first_there.items() if store == store_id and sensor not in known and first < end}
    return listed | unlisted


def _holds(start: int | None, end: int | None, moment: int) -> bool:
    return (start is None or start <= moment) and (end is None or moment < end)
