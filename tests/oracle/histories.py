"""Histories for Hypothesis: a few stores whose sensors speak, fall silent, are late, doubled or wrong, at and around every boundary.

A sensor's life is a short list of stretches, so that a failing history shrinks to one that a person can read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

START_MS = 1_762_596_000_000  # 2025-11-08T10:00:00Z
SECOND, MINUTE = 1000, 60_000
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
    """A pause, then some readings at a steady pace; each is sent on after `delay_s`, or exactly when it becomes late."""

    pause_ms: int
    readings: int
    every_s: int
    temperature: float
    step: float
    door_open: bool | None
    battery_pct: float | None
    delay_s: int | None


stretches = st.builds(
    Stretch,
    pause_ms=st.sampled_from([0, 0, 59_000, 119_999, 120_000, 120_001, 300_000, 300_001, 599_999, 600_000, 600_001, 1_500_000]),
    readings=st.integers(1, 6),
    every_s=st.sampled_from([10, 30, 60, 120]),
    temperature=st.sampled_from([2.0, 8.0, 8.2, 8.5, 3.2, -0.0, -18.0, 13.2005]),
    step=st.sampled_from([0.0, 0.0, 0.5, -0.5, 2.0, -5.0, -5.001, 1.999]),
    door_open=st.sampled_from([None, False, False, True]),
    battery_pct=st.sampled_from([None, 90, 20, 19.9, 25, 24.9]),
    delay_s=st.sampled_from([1, 1, 20, 60, None, 3600]),
)


@dataclass
class _Sensor:
    name: str
    store: str
    phase_ms: int
    life: list[Stretch] = field(default_factory=list)

    def lines(self) -> list[Line]:
        lines, time = [], START_MS + self.phase_ms
        for stretch in self.life:
            time += stretch.pause_ms
            temperature = stretch.temperature
            for _ in range(stretch.readings):
                lines.append(Line(self._text(time, temperature, stretch), _arrival(time, stretch.delay_s)))
                time += stretch.every_s * SECOND
                temperature = round(temperature + stretch.step, 4)
        return lines

    def _text(self, time: int, temperature: float, stretch: Stretch) -> bytes:
        fields = {"sensor_id": self.name, "store_id": self.store, "temperature": temperature, "event_ts": iso(time)}
        optional = {"door_open": stretch.door_open, "battery_pct": stretch.battery_pct}
        return json.dumps(fields | {name: value for name, value in optional.items() if value is not None}).encode()


def _arrival(time: int, delay_s: int | None) -> int:
    if delay_s is None:
        return time - time % MINUTE + MINUTE + 150 * SECOND  # to the millisecond when it becomes late
    return -(-(time + delay_s * SECOND) // (30 * SECOND)) * 30 * SECOND


@st.composite
def histories(draw: st.DrawFn) -> History:
    sensors = [
        _Sensor(f"{store}{number}", f"store-{store}", draw(st.sampled_from([0, 0, 1, 29_999])), draw(st.lists(stretches, min_size=1, max_size=5)))
        for store in "abc"[: draw(st.integers(1, 3))]
        for number in range(1, draw(st.integers(1, 3)) + 1)
    ]  # fmt: skip
    lines = [line for sensor in sensors for line in sensor.lines()]
    lines += draw(st.lists(st.builds(Line, st.sampled_from(BAD_LINES), st.sampled_from([line.arrived_ms for line in lines])), max_size=3))
    lines += [_echo(draw, draw(st.sampled_from(lines))) for _ in range(draw(st.integers(0, 4)))]
    last = max(line.arrived_ms for line in lines)
    as_of = last + draw(st.sampled_from([0, 30_000, 150_000, 780_000, 3_600_000, 90_000_000, 180_000_000]))
    known = [sensor for sensor in sensors if draw(st.booleans())]
    return History(
        tuple(lines),
        as_of,
        tuple(_inventory_row(draw, sensor.name, sensor.store) for sensor in known) + tuple(_never_heard(draw)),
        tuple(row for store in sorted({sensor.store for sensor in sensors}) for row in draw(_limits(store))),
        tuple(draw(st.lists(_suppressions(sensors), max_size=2))),
    )


def _echo(draw: st.DrawFn, line: Line) -> Line:
    """The same line again, or one that says something else, before, with or after it."""
    arrived = line.arrived_ms + draw(st.sampled_from([-30_000, 0, 0, 1, 30_000, 7_200_000]))
    changed = draw(st.sampled_from([{}, {}, {"temperature": 1.5}, {"store_id": "store-a"}, {"door_open": True}, {"event_id": "again"}]))
    try:
        fields = json.loads(line.text)
    except ValueError:
        return Line(line.text, arrived)
    return Line(json.dumps(fields | changed).encode() if isinstance(fields, dict) else line.text, arrived)


def _inventory_row(draw: st.DrawFn, sensor_id: str, store_id: str) -> dict[str, Any]:
    return {
        "sensor_id": sensor_id,
        "store_id": draw(st.sampled_from([store_id, store_id, store_id, "store-a"])),
        "active_from": draw(st.sampled_from([None, None, START_MS, START_MS + 4 * MINUTE])),
        "retired_at": draw(st.sampled_from([None, None, None, START_MS + 9 * MINUTE, START_MS + 100 * MINUTE])),
        "silent_after_s": draw(st.sampled_from([None, None, 60, 300])),
        "expected_every_s": draw(st.sampled_from([None, None, 60, 61])),
    }


def _never_heard(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [_inventory_row(draw, "z9", "store-a")] if draw(st.booleans()) else []


@st.composite
def _limits(draw: st.DrawFn, store: str) -> list[dict[str, Any]]:
    """None, one for ever, or one that changes in the middle."""
    change = START_MS + draw(st.sampled_from([3, 6])) * MINUTE
    high, later = draw(st.sampled_from([5.0, 8.2])), draw(st.sampled_from([2.0, 8.0, 20.0]))
    spans = draw(st.sampled_from([[], [(None, None, high)], [(None, change, high), (change, None, later)]]))
    return [{"store_id": store, "valid_from": since, "valid_to": until, "low_c": -1.0, "high_c": limit} for since, until, limit in spans]


@st.composite
def _suppressions(draw: st.DrawFn, sensors: list[_Sensor]) -> dict[str, Any]:
    sensor = draw(st.sampled_from(sensors))
    return {
        "store_id": sensor.store,
        "sensor_id": draw(st.sampled_from([None, sensor.name])),
        "rule": draw(st.sampled_from([None, "missed_heartbeat", "too_warm"])),
        "from": START_MS,
        "to": START_MS + draw(st.sampled_from([2, 10])) * MINUTE,
        "reason": draw(st.sampled_from(["defrost", "restocking"])),
    }


def iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
