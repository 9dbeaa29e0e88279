"""A sensor looked at again, stretch by stretch, says what the oracle says of all its readings: outages, sessions, alerts of every rule.

No Spark: readings come in any order and in several passes, some are replaced; each pass sees only the stretches that it asked for.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from include.rules import RULES, BatteryLow, DoorLeftOpen, Rule
from spark_jobs.transforms import stretches
from spark_jobs.transforms.alerts import Desk
from spark_jobs.transforms.limits import Limits
from spark_jobs.transforms.review import Review, TooShort
from spark_jobs.transforms.stretches import EVERYTHING, Known, Sensed, Stretch
from spark_jobs.transforms.suppressions import Suppressions
from spark_jobs.transforms.track import SECOND, Track
from tests.oracle import alerts, door_sessions, outages, reference
from tests.oracle.lines import Reading

START = 1_762_596_000_000  # ms
MINUTE = 60_000
GAP = 120 * SECOND
HOUR = 3600 * SECOND
STEPS = [1_000, 30_000, 60_000, 60_000, 60_000, 119_999, 120_000, 120_001, 240_000, 300_000, 600_000, 600_001, 3_600_000, 90_000_000]
TEMPERATURES = [2_000, 4_500, 4_501, 5_000, 5_001, 6_000, 6_000, 8_000, 10_300, -1_000, -1_001, -501, -500, -7_000]


@dataclass(frozen=True)
class Case:
    passes: list[list[Reading]]
    clocks: list[int]  # ms, one for each pass
    limits: list[reference.Limit]
    timeout_s: int
    retired_at: int | None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    time, found = START, []
    for _ in range(draw(st.integers(1, 14))):
        time += draw(st.sampled_from(STEPS))
        found.append(
            Reading(
                "s", draw(st.sampled_from(["A", "A", "A", "B"])) if draw(st.booleans()) else "A", draw(st.sampled_from(TEMPERATURES)), time, time,
                draw(st.sampled_from([None, True, True, False])), draw(st.sampled_from([None, 19.9, 20.0, 24.9, 25.0, 90.0])),
            )
        )  # fmt: skip
    places = [draw(st.integers(0, 3)) for _ in found]
    passes = [[reading for reading, place in zip(found, places, strict=True) if place == number] for number in range(4)]
    for number in range(1, 4):  # an earlier arrival turns up
        for reading in found:
            if places[found.index(reading)] < number and draw(st.integers(0, 9)) == 0:
                passes[number].append(
                    replace(reading, temperature=draw(st.sampled_from(TEMPERATURES)), door_open=draw(st.sampled_from([None, True, False])))
                )
    clocks = sorted(time + draw(st.sampled_from([-3_600_000, 0, 30_000, 150_000, 150_001, 600_000, 90_000_000])) for _ in passes)
    change, gap = START + draw(st.sampled_from([3, 8, 20])) * MINUTE, draw(st.sampled_from([0, 0, 5, 60])) * MINUTE
    later = draw(st.sampled_from([2.0, 5.0, 20.0, None]))
    limits = draw(st.sampled_from([[], [(None, None, 5.0)], [(None, change, 5.0), (change + gap, None, later)], [(change, None, 5.0)]]))
    retired = draw(st.sampled_from([None, None, None, time + 5 * MINUTE, START + 10 * MINUTE]))
    return Case(
        passes, clocks, [reference.Limit(store, -1.0, high, since, until) for store in "AB" for since, until, high in limits],
        draw(st.sampled_from([60, 120, 300])), retired,
    )  # fmt: skip


@dataclass
class Published:
    """What a lake would hold, and how it would ask for a review (see runtime/episode_tables.py)."""

    case: Case
    readings: dict[int, Reading] = field(default_factory=dict)
    outages: dict[int, dict[str, Any]] = field(default_factory=dict)
    sessions: dict[int, dict[str, Any]] = field(default_factory=dict)
    alerts: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    silence: Any = (False, None)
    spoke: tuple[int, int] | None = None
    wholes: int = 0

    def take(self, new: list[Reading], as_of: int) -> None:
        moved = [reading for reading in new if (was := self.readings.get(reading.event_ms)) and was.store_id != reading.store_id]
        assert not moved
        self.readings.update({reading.event_ms: reading for reading in new})
        if not self.readings:
            return
        sensor, spans = self._sensed(as_of), self._changed(new, as_of)
        if spans:
            for row in self._reviewed(sensor, spans, as_of):
                self._apply(row)
        self.silence, self.spoke = self._silence(as_of), (sensor.first_at, sensor.last_at)

    def _reviewed(self, sensor: Sensed, spans: list[tuple[int, int]], as_of: int) -> list[dict[str, Any]]:
        margin = stretches.margin(RULES, self.case.timeout_s * SECOND, GAP)
        near = min(start for start, _ in spans) - margin, max(end for _, end in spans) + margin
        known, found = stretches.settled(
            near, (sensor.first_at, sensor.last_at), self._known,
            lambda known: {"s": stretches.of_sensor(spans, known, margin, self.spoke, True)},
        )  # fmt: skip
        try:
            return self._review(replace(sensor, stretches=found["s"]), as_of, known)
        except TooShort:
            self.wholes += 1
            return self._review(replace(sensor, stretches=(EVERYTHING,), only=near), as_of, Known.of(self._rows(), RULES))

    def _known(self, span: tuple[int, int]) -> Known:
        """Only the published rows that reach into it."""
        rows = [(row, row["outage"] or row["session"] or row["alert"]) for row in self._rows()]
        return Known.of(
            [row for row, one in rows if one["started_at"] <= span[1] and (one["ended_at"] is None or one["ended_at"] >= span[0])], RULES
        )

    def _changed(self, new: list[Reading], as_of: int) -> list[tuple[int, int]]:
        days: dict[int, list[int]] = {}
        for reading in new:
            days.setdefault(reading.event_ms // 86_400_000, []).append(reading.event_ms * 1000)
        spans = [(min(times), max(times)) for times in days.values()]
        heard, last = (as_of - 30_000) * 1000, max(self.readings) * 1000
        door = next(rule.when for rule in RULES if isinstance(rule.when, DoorLeftOpen))
        is_over = any(
            alert["rule"] == "door_left_open" and alert["ended_at"] is None
            and heard - alert["evidence"]["last"]["event_ts"] > door.heard_within_s * SECOND
            for alert in self.alerts.values()
        )  # fmt: skip
        return [*spans, (last + 1, last + 1)] if is_over or self._silence(as_of) != self.silence else spans

    def _silence(self, as_of: int) -> tuple[bool, int | None]:
        last, retired = max(self.readings), self.case.retired_at
        ended = retired if retired is not None and retired <= as_of else None
        judged = as_of - 30_000 if ended is None else min(ended, as_of - 30_000)
        return (True, ended) if judged - last > self.case.timeout_s * 1000 else (False, None)

    def _sensed(self, as_of: int) -> Sensed:
        is_silent, ended = self._silence(as_of)
        stores = tuple(sorted({reading.store_id for reading in self.readings.values()}))
        times = (min(self.readings) * 1000, max(self.readings) * 1000)
        return Sensed(
            "s", "A" if self.case.retired_at else None, stores, *times, self.case.timeout_s * SECOND, is_silent, ended and ended * 1000, ()
        )

    def _rows(self) -> list[dict[str, Any]]:
        kinds = {"outage": self.outages, "session": self.sessions, "alert": self.alerts}
        return [{"outage": None, "session": None, "alert": None, kind: row} for kind, rows in kinds.items() for row in rows.values()]

    def _review(self, sensor: Sensed, as_of: int, known: Known) -> list[dict[str, Any]]:
        limits = [
            {
                "store_id": one.store_id,
                "valid_from": _time(one.valid_from),
                "valid_to": _time(one.valid_to),
                "low_c": one.low_c,
                "high_c": one.high_c,
            }
            for one in self.case.limits
        ]
        desk = Desk(Limits.of_rows(limits), Suppressions(), as_of * 1000, "run", 1)
        review = Review(RULES, desk, (as_of - 30_000) * 1000, GAP)
        return list(review.of(sensor, self._track(sensor.stretches), known))

    def _track(self, asked: tuple[Stretch, ...]) -> Track:
        """Only the hours that the stretches ask for."""
        spans = [span for stretch in asked for span in (stretch.spans or [(stretch.read_from, stretch.read_to)])]
        rows = [
            one for time, one in self.readings.items() if any(start // HOUR <= time * 1000 // HOUR <= end // HOUR for start, end in spans)
        ]
        return Track.of(
            pa.table(
                {
                    "event_ts": pa.array([row.event_ms * 1000 for row in rows], pa.timestamp("us", "UTC")),
                    "store_id": pa.array([row.store_id for row in rows], pa.string()),
                    "temperature_mc": pa.array([row.temperature for row in rows], pa.int32()),
                    "door_open": pa.array([row.door_open for row in rows], pa.bool_()),
                    "battery_pct": pa.array([row.battery_pct for row in rows], pa.float64()),
                }
            )
        )

    def _apply(self, row: dict[str, Any]) -> None:
        if event := row.get("event"):
            self.events.append(event)
            return
        kind = next(kind for kind in ("outage", "session", "alert") if kind in row)
        rows: dict[Any, Any] = {"outage": self.outages, "session": self.sessions, "alert": self.alerts}[kind]
        key = row[kind]["alert_id" if kind == "alert" else "started_at"]
        if row["action"] == "delete":
            del rows[key]
        else:
            assert (key in rows) == (row["action"] == "update"), row
            rows[key] = row[kind]


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def said(published: Published) -> dict[str, Any]:
    """In the oracle's words."""
    return {
        "outages": sorted((row["started_at"] // 1000, _ms(row["ended_at"]), row["store_id"]) for row in published.outages.values()),
        "sessions": sorted(
            (row["started_at"] // 1000, row["ended_at"] // 1000, row["store_id"], row["readings"], row["peak_c"], row["rise_c"])
            for row in published.sessions.values()
        ),
        "alerts": sorted(
            (
                row["rule"], row["started_at"] // 1000, str(_ms(row["ended_at"])), row["store_id"], row["peak"], row["alert_id"], row["status"],
                row["limit_low_c"], row["limit_high_c"],
                *(row["evidence"][name] and row["evidence"][name]["event_ts"] // 1000 for name in ("first", "worst", "last")),
            )
            for row in published.alerts.values() if row["status"] != "retracted"
        ),
    }  # fmt: skip


def expected(case: Case, readings: dict[int, Reading], as_of: int) -> dict[str, Any]:
    known = [reference.Sensor("s", "A", None, case.retired_at, case.timeout_s)] if case.retired_at else []
    if not known and case.timeout_s != 120:
        known = [reference.Sensor("s", "A", None, None, case.timeout_s)]
    world = reference.Reference(tuple(known), tuple(case.limits), ())
    winners: Any = {("s", time): reading for time, reading in readings.items()}
    silences = outages.silences_of(winners, world, as_of)
    return {
        "outages": sorted((one.started_at, one.ended_at, one.store_id if case.retired_at else one.before.store_id) for one in silences),
        "sessions": sorted(
            (row["started_at"], row["ended_at"], row["store_id"], row["readings"], row["peak_c"], row["rise_c"])
            for row in door_sessions.build(winners, world, as_of)
        ),
        "alerts": sorted(
            (
                row["rule"], row["started_at"], str(row["ended_at"]), row["store_id"], row["peak"], row["alert_id"], row["status"],
                row["limit_low_c"], row["limit_high_c"], *(row["evidence"][name] for name in ("first", "worst", "last")),
            )
            for row in alerts.build(winners, world, as_of)
        ),
    }  # fmt: skip


def _ms(micros: int | None) -> int | None:
    return None if micros is None else micros // 1000


def a_door_open(*minutes: int) -> list[Reading]:
    return [Reading("s", "A", 2_000, START + minute * MINUTE, START + minute * MINUTE, True) for minute in minutes]


def five_minutes_open(as_of: float, *later: int) -> Case:
    clocks = [START + 5 * MINUTE, START + round(as_of * MINUTE)] if later else [START + round(as_of * MINUTE)] * 2
    return Case([a_door_open(0, 2, 4, 5), a_door_open(*later)], clocks, [], 120, None)


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(case=cases())
@example(case=five_minutes_open(7, 7))  # the session goes on: the gap is exactly 2 min
@example(case=five_minutes_open(7.5))  # it may still go on: its last reading is exactly 2 min old
def test_stretch_by_stretch_is_as_all_at_once(case: Case) -> None:
    published = Published(case)
    for new, as_of in zip(case.passes, case.clocks, strict=True):
        published.take(new, as_of)
        if published.readings:
            assert said(published) == expected(case, published.readings, as_of)


def readings_at(minutes: Iterable[float], temperature: int = 2_000, door: bool = False, battery: float = 90.0) -> list[Reading]:
    times = [START + round(minute * MINUTE) for minute in minutes]
    return [Reading("s", "A", temperature, time, time, door, battery) for time in times]


def after(*minutes: float) -> list[int]:
    return [START + round(minute * MINUTE) for minute in minutes]


WARM = [reference.Limit("A", -1.0, 5.0, None, None)]
KNOWN_HARD = {
    "a door is left open now, and a reading of yesterday comes late": Case(
        [
            readings_at(range(0, 660)) + readings_at(range(690, 1198)) + readings_at(range(1198, 1205), door=True),
            readings_at([1205, 1206], door=True) + readings_at([30.5]),
        ],
        after(1205, 1207), [], 120, None,
    ),
    "a low battery that was open all the time between two days is told late": Case(
        [
            readings_at(range(0, 2880, 10)) + readings_at(range(2880, 2890), door=True),
            readings_at([602.5], battery=10.0),
        ],
        after(2890, 2891), [], 900, None,
    ),
    "what was sent while the gateway was cut off swallows the alert that began after it": Case(
        [readings_at(range(0, 10)) + readings_at(range(120, 123), battery=10.0), readings_at(range(30, 91), battery=10.0)],
        after(123, 124), [], 120, None,
    ),
    "the same with temperatures, beside an alert that is open": Case(
        [
            readings_at(range(0, 10), battery=10.0) + readings_at(range(120, 142), temperature=9_000, battery=10.0),
            readings_at(range(10, 91), temperature=9_000, battery=10.0),
        ],
        after(142, 143), WARM, 120, None,
    ),
    "an alert was over before a silence, and passes go on after it": Case(
        [
            readings_at(minute for minute in range(first, first + 5) if not 16 < minute < 26 and not 2 <= minute < 10)
            + readings_at((minute for minute in range(first, first + 5) if 2 <= minute < 10), temperature=6_000)
            for first in range(0, 60, 5)
        ],
        after(*range(5, 65, 5)), WARM, 120, None,
    ),
}  # fmt: skip


def long_case(seed: int) -> Case:
    """Hours of one sensor, mostly in order, with pieces that come late, and states that last."""
    chance = random.Random(seed)
    step = chance.choice([[60_000], [60_000] * 9 + [120_000, 120_001, 600_000], [60_000] * 6 + [3_600_000], [240_000, 600_000, 600_001]])
    time, found, count, number = START, list[Reading](), chance.randint(10, 80), chance.randint(2, 6)
    temperature, door, battery = 2_000, False, 90.0
    for _ in range(count):
        time += chance.choice(step)
        temperature = chance.choice(TEMPERATURES) if chance.random() < 0.15 else temperature
        door = not door if chance.random() < 0.15 else door
        battery = chance.choice([10.0, 22.0, 25.0, 90.0]) if chance.random() < 0.08 else battery
        found.append(Reading("s", "A", temperature, time, time, door, battery))
    places = [min(number - 1, index * number // count) for index in range(count)]
    for _ in range(chance.randint(1, 3)):
        first, late = chance.randrange(count), chance.randrange(number)
        places[first : first + 5] = [max(late, place) for place in places[first : first + 5]]
    passes = [[reading for reading, place in zip(found, places, strict=True) if place == each] for each in range(number)]
    clocks, now = list[int](), START
    for taken in passes:
        now = max([now, *(reading.event_ms for reading in taken)])
        clocks.append(now + chance.choice([0, 30_000, 150_001, 600_000]))
    change = START + chance.choice([8, 40, 300]) * MINUTE
    limits = chance.choice([[], WARM, [reference.Limit("A", -1.0, 5.0, change, None)]])
    return Case(passes, sorted(clocks), limits, chance.choice([60, 120, 300, 1800]), None)


@pytest.mark.parametrize("case", [*KNOWN_HARD.values(), *map(long_case, range(150))], ids=[*KNOWN_HARD, *map(str, range(150))])
def test_what_comes_late_to_long_histories_is_told_once(case: Case) -> None:
    published = Published(case)
    for new, as_of in zip(case.passes, case.clocks, strict=True):
        published.take(new, as_of)
        assert said(published) == expected(case, published.readings, as_of)
    told: dict[str, list[str]] = {}
    for event in published.events:
        told.setdefault(event["alert_id"], []).append(event["change"])
    assert len({event["event_id"] for event in published.events}) == len(published.events)
    assert all(change != following for changes in told.values() for change, following in pairwise(changes)), told


@pytest.mark.parametrize(
    ("store", "expected"), [("A", ["door_left_open", "low_battery"]), ("B", ["low_battery"]), ("C", ["door_left_open"])]
)
def test_a_rule_may_be_other_at_a_store_or_off(store: str, expected: list[str]) -> None:
    """At B a door may stand open for 10 min, at C nobody wants to hear of batteries."""
    rules = (
        Rule("door_left_open", DoorLeftOpen(for_s=300), "warning", "", at_store={"B": DoorLeftOpen(for_s=600)}),
        Rule("low_battery", BatteryLow(20, 25), "info", "", at_store={"C": None}),
    )
    readings = [replace(reading, store_id=store, battery_pct=10.0) for reading in a_door_open(0, 2, 4, 6)]
    case = Case([readings], [START], [], 120, None)
    published = Published(case, {reading.event_ms: reading for reading in readings})
    review = Review(rules, Desk(Limits(), Suppressions(), START * 1000, "run", 1), START * 1000, GAP)
    rows = review.of(replace(published._sensed(START), stretches=(EVERYTHING,)), published._track((EVERYTHING,)), Known())
    assert [row["alert"]["rule"] for row in rows if "alert" in row] == expected
