"""P14: the causes of random silences are the oracle's, for any number of stores, sensors, retirements and late starters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from include.settings import Settings
from spark_jobs.transforms import inventory, outage_causes
from spark_jobs.transforms.outage_causes import Spans
from spark_jobs.transforms.sensor_stores import Stay
from tests.oracle import outages, reference
from tests.oracle.lines import Reading

START, MINUTE = 1_762_596_000_000, 60_000


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[tuple[str, int], Reading], reference.Reference, int]:
    readings, sensors = {}, []
    for store in "abc"[: draw(st.integers(1, 3))]:
        for number in range(draw(st.integers(1, 3))):
            name, time = f"{store}{number}", START
            for pause in draw(st.lists(st.sampled_from([1, 1, 2, 3, 5, 9]), min_size=1, max_size=5)):
                time += pause * MINUTE
                readings[name, time] = Reading(name, draw(st.sampled_from([store, store, store, "a"])), 2000, time, time)
            if draw(st.booleans()):
                since, until = draw(st.sampled_from([None, START + 4 * MINUTE])), draw(st.sampled_from([None, None, START + 8 * MINUTE]))
                home, due = draw(st.sampled_from([store, store, "a"])), draw(st.sampled_from([None, 60, 61]))
                sensors.append(reference.Sensor(name, home, since, until, None, due))
    last = max(time for _, time in readings)
    return readings, reference.Reference(tuple(sensors)), last + draw(st.sampled_from([0, 151_000, 600_000]))


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(world=worlds())
def test_the_causes_are_the_oracles(world: tuple[dict[tuple[str, int], Reading], reference.Reference, int]) -> None:
    readings, known, as_of = world
    expected = outages.build(readings, known, as_of)
    rows = [
        {**sensor.__dict__, "active_from": _moment(sensor.active_from), "retired_at": _moment(sensor.retired_at)}
        for sensor in known.sensors
    ]
    stays: dict[tuple[str, str], Stay] = {}
    for reading in sorted(readings.values(), key=lambda reading: reading.event_ms):
        at, key = _moment(reading.event_ms), (reading.sensor_id, reading.store_id)
        assert at is not None
        stays[key] = Stay(stays[key].first_seen_at if key in stays else at, at)
    first_heard = {sensor: min(stay.first_seen_at for (name, _), stay in stays.items() if name == sensor) for sensor, _ in stays}
    waited_for = outage_causes.waited_for(inventory.expectations(inventory.known_sensors(rows, Settings()), stays, Settings()), first_heard)
    ends = [as_of - 30_000 if row["ended_at"] is None else row["ended_at"] for row in expected]
    spans = Spans(
        [row["sensor_id"] for row in expected], [row["store_id"] for row in expected],
        np.array([row["started_at"] * 1000 for row in expected], np.int64), np.array(ends, np.int64) * 1000,
    )  # fmt: skip
    assert outage_causes.causes(spans, waited_for) == [row["cause"] for row in expected]
