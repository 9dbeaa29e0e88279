"""outages: every silence of a sensor longer than its timeout, and whose fault it was.

Read as:
- a retired sensor's last silence is judged like any other only up to heard_until: it is an outage when
  min(retired_at, heard_until) − last reading > timeout; its end is retired_at;
- readings after retired_at are readings: a gap that spans retired_at ends at the next reading, and after the last one no silence is left;
- active_from cuts no silence; a sensor that never reported has none;
- a moment is inside an outage from its start until before its end, so outages that only touch share no moment;
- for the cause an open outage reaches to heard_until: what is later cannot be judged;
- "expected" at a moment: active in the inventory at that very moment and read somewhere at or before it,
  or unknown to the inventory and read in that store at or before it; due at least once a minute;
- "the store" of an outage is its store_id; "two or more" counts the expected sensors, and the stores with any, at that moment;
- the outage's own sensor need not be among the expected (one due each 5 min can fall silent with its store).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tests.oracle.clock import heard_until
from tests.oracle.lines import Reading
from tests.oracle.readings import Winners, by_sensor
from tests.oracle.reference import Reference, expected_sensors, first_reports


@dataclass(frozen=True)
class Silence:
    """An outage before its cause is known; the reading before it, and the one after it if there is one."""

    before: Reading
    after: Reading | None
    ended_at: int | None
    store_id: str

    @property
    def sensor_id(self) -> str:
        return self.before.sensor_id

    @property
    def started_at(self) -> int:
        return self.before.event_ms

    def holds(self, moment: int, heard: int) -> bool:
        return self.started_at <= moment < (heard if self.ended_at is None else self.ended_at)


@dataclass(frozen=True)
class Moment:
    """The start of a stretch of time in which nothing changes: who was down then."""

    at: int
    stores_down: frozenset[str]
    is_input_down: bool


def build(winners: Winners, reference: Reference, as_of: int) -> list[dict]:
    """The rows of every sensor, by sensor and start."""
    silences = silences_of(winners, reference, as_of)
    heard = heard_until(as_of)
    moments = _moments(silences, winners, reference, heard)
    return [
        {
            "sensor_id": silence.sensor_id,
            "store_id": silence.store_id,
            "started_at": silence.started_at,
            "ended_at": silence.ended_at,
            "cause": _cause(silence, moments, heard),
        }
        for silence in silences
    ]


def silences_of(winners: Winners, reference: Reference, as_of: int) -> list[Silence]:
    """Every silence longer than the sensor's timeout."""
    silences = []
    for sensor_id, readings in by_sensor(winners).items():
        timeout = reference.silent_after_ms(sensor_id)
        for before, after in pairwise(readings):
            # Exactly 2 min is not an outage.
            if after.event_ms - before.event_ms > timeout:
                silences.append(Silence(before, after, after.event_ms, _store_of(before, reference)))
        last_silence = _last_silence(readings[-1], reference, as_of)
        silences += [last_silence] if last_silence else []
    return silences


def _last_silence(last: Reading, reference: Reference, as_of: int) -> Silence | None:
    """The silence that no reading ended: open, or closed by retirement."""
    sensor = reference.sensor(last.sensor_id)
    ended_at = sensor.retired_at if sensor and sensor.is_retired(as_of) else None
    judged_until = heard_until(as_of) if ended_at is None else min(ended_at, heard_until(as_of))
    if judged_until - last.event_ms <= reference.silent_after_ms(last.sensor_id):
        return None
    return Silence(last, None, ended_at, _store_of(last, reference))


def _store_of(reading: Reading, reference: Reference) -> str:
    # The inventory's, else the last reading's before the silence.
    sensor = reference.sensor(reading.sensor_id)
    return sensor.store_id if sensor else reading.store_id


def _cause(silence: Silence, moments: list[Moment], heard: int) -> str:
    inside = [moment for moment in moments if silence.holds(moment.at, heard)]
    # `input` goes before `store`.
    if any(moment.is_input_down for moment in inside):
        return "input"
    if any(silence.store_id in moment.stores_down for moment in inside):
        return "store"
    return "sensor"


def _moments(silences: list[Silence], winners: Winners, reference: Reference, heard: int) -> list[Moment]:
    """One moment for each stretch between the points where somebody falls silent, comes back, starts or retires."""
    first_there = first_reports(winners.values())
    has_reported = {sensor_id: readings[0].event_ms for sensor_id, readings in by_sensor(winners).items()}
    points = {silence.started_at for silence in silences} | {silence.ended_at for silence in silences}
    points |= {sensor.active_from for sensor in reference.sensors} | {sensor.retired_at for sensor in reference.sensors}
    points |= {heard, *first_there.values(), *has_reported.values()}
    points.discard(None)
    return [_moment(at, silences, reference, first_there, has_reported, heard) for at in sorted(points)]


def _moment(
    at: int,
    silences: list[Silence],
    reference: Reference,
    first_there: dict[tuple[str, str], int],
    has_reported: dict[str, int],
    heard: int,
) -> Moment:
    silent = {silence.sensor_id for silence in silences if silence.holds(at, heard)}
    stores = {sensor.store_id for sensor in reference.sensors} | {store for store, _ in first_there}
    awaited = {}
    for store_id in stores:
        expected = expected_sensors(store_id, at, at + 1, reference, first_there)
        # Sensors that have not yet reported are not waited for.
        reported = {sensor_id for sensor_id in expected if sensor_id in has_reported and has_reported[sensor_id] <= at}
        if reported:
            awaited[store_id] = reported
    stores_down = frozenset(store for store, sensors in awaited.items() if len(sensors) >= 2 and sensors <= silent)
    is_input_down = len(awaited) >= 2 and all(sensors <= silent for sensors in awaited.values())
    return Moment(at, stores_down, is_input_down)
