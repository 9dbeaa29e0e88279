"""Histories for Hypothesis: a few stores whose sensors speak, fall silent, are late, doubled or wrong, at and around every boundary.

A sensor's life is a short list of stretches, so that a failing history shrinks to one that a person can read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

START_MS = 1_762_596_000_000  # 2025-11-08T10:00:00Z
SECOND, MINUTE = 1000, 60_000
TO_MIDNIGHT = (13 * 60 + 58) * MINUTE  # then a history begins at 23:58
BAD_LINES = (
    b"{", b"[]", b"\xff\xfe", b'{"sensor_id": "x"}', b"   ", b"",
    b'{"sensor_id":"a1","store_id":"store-a","temperature":"2","event_ts":"2025-11-08T10:00:00Z"}',
    b'{"sensor_id":"a1","store_id":"store-a","temperature":61,"battery_pct":101,"event_ts":"yesterday"}',
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    text: bytes
    arrived_ms: int


@dataclass(frozen=True)
class History:
    lines: tuple[Line, ...]
    as_of_ms: int
    sensors: tuple[dict[str, Any], ...] = ()  # rows of sensors.csv, limits.csv and suppressions.csv; times in ms, None: empty cell
    limits: tuple[dict[str, Any], ...] = ()
    suppressions: tuple[dict[str, Any], ...] = ()

    def files(self) -> list[tuple[int, list[bytes]]]:
        """Lines that arrived at the same time, in one file each."""
        times = sorted({line.arrived_ms for line in self.lines})
        return [(time, [line.text for line in self.lines if line.arrived_ms == time]) for time in times]

    def __repr__(self) -> str:
        rows = [f"  {iso(line.arrived_ms)} {line.text!r}" for line in self.lines]
        reference = [f"  {name}: {row}" for name in ("sensors", "limits", "suppressions") for row in getattr(self, name)]
        return "\n".join([f"as of {iso(self.as_of_ms)}", *reference, *rows])


@dataclass(frozen=True)
class Stretch:
    """A pause since the reading before, then some readings at a steady pace; each is sent on after `delay_s`, or exactly when it becomes late."""

    pause_ms: int
    readings: int
    every_s: int
    temperature: float
    step: float
    doors: tuple[bool | None, ...]  # over and over
    battery_pct: float | None
    delay_s: int | None


# Beyond, at, and inside of a limit by less than half a degree and by exactly that (limits are 5 and 8.2, later 2, 8 or 20, and -1).
AT_LIMITS = (8.201, 7.701, 7.7, 7.5, 5.001, 4.501, 4.5, -1.0, -1.001, -0.501, -0.5)

stretches = st.builds(
    Stretch,
    pause_ms=st.sampled_from(
        [60_000, 60_000, 59_000, 119_999, 120_000, 120_001, 300_000, 300_001, 599_999, 600_000, 600_001, 1_500_000, 90_000_000]
    ),
    readings=st.integers(1, 6),
    every_s=st.sampled_from([10, 30, 60, 120]),
    temperature=st.sampled_from([2.0, 8.0, 8.2, 8.5, 3.2, -0.0, -18.0, 13.2005, *AT_LIMITS]),
    step=st.sampled_from([0.0, 0.0, 0.5, -0.5, 2.0, -5.0, -5.001, 1.999]),
    doors=st.sampled_from([(None,), (False,), (False,), (True,), (True, False)]),
    battery_pct=st.sampled_from([None, 90, 20, 19.9, 25, 24.9]),
    delay_s=st.sampled_from([1, 1, 20, 60, None, 3600]),
)


@st.composite
def spells(draw: st.DrawFn) -> list[Stretch]:
    """Out of a limit for about five minutes, then inside of it by about half a degree, then anything."""
    limit, out = draw(st.sampled_from([(5.0, 1), (8.2, 1), (-1.0, -1)]))
    readings, pause = draw(st.sampled_from([6, 6, 5])), draw(st.sampled_from([60_000, 59_000, 300_000]))
    inside = draw(st.sampled_from([0.0, 0.499, 0.5, 0.501]))
    hot = Stretch(60_000, readings, 60, round(limit + out * 0.001, 4), 0.0, draw(st.sampled_from([(None,), (True,)])), None, 1)
    mild = Stretch(pause, draw(st.integers(1, 2)), 60, round(limit - out * inside, 4), 0.0, (None,), None, draw(st.sampled_from([1, 3600])))
    return [hot, mild, *draw(st.lists(stretches, max_size=1))]


@dataclass
class _Sensor:
    name: str
    store: str
    phase_ms: int
    life: list[Stretch] = field(default_factory=list)

    def lines(self) -> list[Line]:
        return [Line(self._text(*reading), _arrival(reading[0], reading[-1].delay_s)) for reading in self._readings()]

    @property
    def last_ms(self) -> int:
        return max(time for time, *_ in self._readings())

    def _readings(self) -> Iterator[tuple[int, float, bool | None, Stretch]]:
        time = self.phase_ms
        for stretch in self.life:
            for number in range(stretch.readings):
                time += stretch.every_s * SECOND if number else stretch.pause_ms
                yield time, round(stretch.temperature + number * stretch.step, 4), stretch.doors[number % len(stretch.doors)], stretch

    def _text(self, time: int, temperature: float, door_open: bool | None, stretch: Stretch) -> bytes:
        fields = {"sensor_id": self.name, "store_id": self.store, "temperature": temperature, "event_ts": iso(time)}
        optional = {"door_open": door_open, "battery_pct": stretch.battery_pct}
        return json.dumps(fields | {name: value for name, value in optional.items() if value is not None}).encode()


def _arrival(time: int, delay_s: int | None) -> int:
    if delay_s is None:
        return time - time % MINUTE + MINUTE + 150 * SECOND  # to the millisecond when it becomes late
    return -(-(time + delay_s * SECOND) // (30 * SECOND)) * 30 * SECOND


_lives = st.one_of(st.lists(stretches, min_size=1, max_size=5), st.lists(stretches, min_size=1, max_size=5), spells())


@st.composite
def histories(draw: st.DrawFn) -> History:
    start = START_MS + draw(st.sampled_from([0, 0, TO_MIDNIGHT]))
    sensors = [
        _Sensor(f"{store}{number}", f"store-{store}", start + draw(st.sampled_from([0, 0, 1, 29_999])), draw(_lives))
        for store in "abc"[: draw(st.integers(1, 3))]
        for number in range(1, draw(st.integers(1, 3)) + 1)
    ]  # fmt: skip
    lines = [line for sensor in sensors for line in sensor.lines()]
    lines += draw(st.lists(st.builds(Line, st.sampled_from(BAD_LINES), st.sampled_from([line.arrived_ms for line in lines])), max_size=3))
    lines += [_echo(draw, draw(st.sampled_from(lines))) for _ in range(draw(st.integers(0, 4)))]
    lines += [_ahead(draw, draw(st.sampled_from(sensors))) for _ in range(draw(st.sampled_from([0, 0, 1])))]
    as_of = draw(st.one_of(st.sampled_from(_clocks(lines)), _edges(start, sensors)))
    known = [sensor for sensor in sensors if draw(st.booleans())]
    return History(
        tuple(lines),
        as_of,
        tuple(_inventory_row(draw, start, sensor.name, sensor.store) for sensor in known) + tuple(_never_heard(draw, start)),
        tuple(row for store in sorted({sensor.store for sensor in sensors}) for row in draw(_limits(start, store))),
        tuple(draw(st.lists(_suppressions(start, sensors), max_size=2))),
    )


def _clocks(lines: list[Line]) -> list[int]:
    """When all has arrived, or some time after."""
    last = max(line.arrived_ms for line in lines)
    return [last + after for after in (0, 30_000, 150_000, 780_000, 3_600_000, 90_000_000, 180_000_000)]


@st.composite
def _edges(draw: st.DrawFn, start: int, sensors: list[_Sensor]) -> int:
    """Where time alone decides: a sensor has been silent for exactly its timeout, or a moment longer, or it retires now."""
    silent_s, moment = draw(st.sampled_from([60, 120, 120, 300, 600 - 30])), draw(st.sampled_from([0, 0, 1]))
    retires = draw(st.sampled_from([start + 9 * MINUTE, start + 100 * MINUTE]))
    return draw(st.sampled_from([draw(st.sampled_from(sensors)).last_ms + (30 + silent_s) * SECOND + moment] * 3 + [retires]))


def _ahead(draw: st.DrawFn, sensor: _Sensor) -> Line:
    """A reading of a clock that is ahead: by as much as is let in, by a moment more, by days."""
    ahead_ms, stretch = draw(st.sampled_from([300_000, 300_001, 3 * 24 * 60 * MINUTE])), sensor.life[-1]
    arrived = _arrival(sensor.last_ms, 1)
    return Line(sensor._text(arrived + ahead_ms, stretch.temperature, None, stretch), arrived)


def _echo(draw: st.DrawFn, line: Line) -> Line:
    """The same line again, or one that says something else, before, with or after it."""
    arrived = line.arrived_ms + draw(st.sampled_from([-30_000, 0, 0, 1, 30_000, 7_200_000]))
    changed = draw(st.sampled_from([{}, {}, {"temperature": 1.5}, {"store_id": "store-a"}, {"door_open": True}, {"event_id": "again"}]))
    try:
        fields = json.loads(line.text)
    except ValueError:
        return Line(line.text, arrived)
    return Line(json.dumps(fields | changed).encode() if isinstance(fields, dict) else line.text, arrived)


def _inventory_row(draw: st.DrawFn, start: int, sensor_id: str, store_id: str) -> dict[str, Any]:
    return {
        "sensor_id": sensor_id,
        "store_id": draw(st.sampled_from([store_id, store_id, store_id, "store-a"])),
        "active_from": draw(st.sampled_from([None, None, start, start + 4 * MINUTE])),
        "retired_at": draw(st.sampled_from([None, None, None, start + 9 * MINUTE, start + 100 * MINUTE])),
        "silent_after_s": draw(st.sampled_from([None, None, 60, 300])),
        "expected_every_s": draw(st.sampled_from([None, None, 60, 61])),
    }


def _never_heard(draw: st.DrawFn, start: int) -> list[dict[str, Any]]:
    return [_inventory_row(draw, start, "z9", "store-a")] if draw(st.booleans()) else []


@st.composite
def _limits(draw: st.DrawFn, start: int, store: str) -> list[dict[str, Any]]:
    """None, one for ever, or one that changes in the middle."""
    change = start + draw(st.sampled_from([3, 6])) * MINUTE
    high, later = draw(st.sampled_from([5.0, 8.2])), draw(st.sampled_from([2.0, 8.0, 20.0]))
    spans = draw(st.sampled_from([[], [(None, None, high)], [(None, change, high), (change, None, later)]]))
    return [{"store_id": store, "valid_from": since, "valid_to": until, "low_c": -1.0, "high_c": limit} for since, until, limit in spans]


@st.composite
def _suppressions(draw: st.DrawFn, start: int, sensors: list[_Sensor]) -> dict[str, Any]:
    sensor = draw(st.sampled_from(sensors))
    return {
        "store_id": sensor.store,
        "sensor_id": draw(st.sampled_from([None, sensor.name])),
        "rule": draw(st.sampled_from([None, "missed_heartbeat", "too_warm"])),
        "from": start,
        "to": start + draw(st.sampled_from([2, 10])) * MINUTE,
        "reason": draw(st.sampled_from(["defrost", "restocking"])),
    }


def iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
