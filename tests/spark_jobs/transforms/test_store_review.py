"""The windows of a store, worked out anew or from what is published, are the oracle's. No Spark: minutes are measured here by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.transforms import store_minutes as minutes_of
from spark_jobs.transforms.inventory import Expectation
from spark_jobs.transforms.store_minutes import Due, Store
from spark_jobs.transforms.store_review import MINUTES, TRENDS, StoreReview
from spark_jobs.transforms.windows import Columns
from tests.oracle import clock, reference, store_minutes, store_trends
from tests.oracle.lines import Reading

START, MINUTE = 1_762_643_700_000, 60_000  # 23:15, so that windows cross midnight
STEPS = [1_000, 60_000, 60_000, 299_000, 300_000, 1_800_000, 86_399_000, 90_000_000]


def moment(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def first_words(readings: list[Reading]) -> dict[str, int]:
    return {
        name: min(reading.event_ms for reading in readings if reading.sensor_id == name)
        for name in {reading.sensor_id for reading in readings}
    }


@st.composite
def passes(draw: st.DrawFn) -> tuple[list[list[Reading]], list[int]]:
    time, found = START, []
    for _ in range(draw(st.integers(1, 12))):
        time += draw(st.sampled_from(STEPS))
        arrived = time + draw(st.sampled_from([0, 209_999, 210_000]))
        name, temperature = draw(st.sampled_from("sst")), draw(st.sampled_from([2_000, 2_333, -500]))
        found.append(Reading(name, "A", temperature, time, arrived, draw(st.sampled_from([None, True, False]))))
    places = [draw(st.integers(0, 2)) for _ in found]
    clocks = sorted(time + draw(st.sampled_from([-600_000, 0, 780_000, 90_000_000])) for _ in range(3))
    return [[reading for reading, place in zip(found, places, strict=True) if place == number] for number in range(3)], clocks


def measured(readings: list[Reading], touched: set[int]) -> Columns:
    rows: dict[int, list[Reading]] = {}
    for reading in readings:
        rows.setdefault(clock.window_start(reading.event_ms, MINUTE), []).append(reading)
    found: dict[str, list[Any]] = {name: [] for name in minutes_of.MEASURED}
    for start in sorted(rows.keys() & touched):
        here = rows[start]
        ms, mc, said = (
            [row.event_ms - start for row in here],
            [row.temperature for row in here],
            [row.door_open for row in here if row.door_open is not None],
        )
        sensors = len({row.sensor_id for row in here})
        values = {
            "window_start": start * 1000, "readings": len(here), "sensors_reporting": sensors, "late_rows": sum(map(clock.is_late, here)), "sum_mc": sum(mc),
            "sum_ms": sum(ms), "sum_ms_ms": sum(x * x for x in ms), "sum_ms_mc": sum(x * y for x, y in zip(ms, mc, strict=True)),
            "door_open": sum(said), "door_said": len(said), "expected_reporting": sensors, "temperature_avg_c": sum(mc) / len(mc) / 1000,
            "temperature_min_c": min(mc) / 1000, "temperature_max_c": max(mc) / 1000, "door_open_share": sum(said) / len(said) if said else np.nan,
            "last_reading_at": max(row.event_ms for row in here) * 1000,
        }  # fmt: skip
        for name, value in values.items():
            found[name].append(value)
    floats = minutes_of.MEASURES
    return {name: np.array(values, np.float64 if name in floats else np.int64) for name, values in found.items()}


class Published:
    """The rows of both tables, changed as a publication changes them."""

    def __init__(self) -> None:
        self.minutes, self.trends = dict[int, dict[str, Any]](), dict[int, dict[str, Any]]()

    def columns(self, names: tuple[str, ...], rows: dict[int, dict[str, Any]]) -> Columns:
        kinds = {
            name: np.float64 if name.endswith(("_c", "share", "completeness", "per_hour")) else bool if name == "is_final" else np.int64
            for name in names
        }
        return {name: np.array([rows[start][name] for start in sorted(rows)], kinds[name]) for name in names}

    def take(self, changed: tuple[Any, Any]) -> None:
        for rows, change in zip((self.minutes, self.trends), changed, strict=True):
            for place, action in enumerate(change.actions.tolist()):
                row = {name: values[place].item() for name, values in change.rows.items()}
                assert (row["window_start"] in rows) == (action != "insert")
                if action == "delete":
                    del rows[row["window_start"]]
                else:
                    rows[row["window_start"]] = {**row, "window_end": 0}


def said(rows: dict[int, dict[str, Any]], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [
        (start // 1000, *(None if rows[start][name] != rows[start][name] else rows[start][name] for name in names))
        for start in sorted(rows)
    ]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(case=passes())
def test_pass_by_pass_is_as_all_at_once(case: tuple[list[list[Reading]], list[int]]) -> None:
    lake, readings = Published(), list[Reading]()
    for new, as_of in zip(*case, strict=True):
        before, readings = first_words(readings), readings + new
        if not readings:
            continue
        firsts = first_words(readings)
        due = Due.of(Expectation("A", name, moment(first), None) for name, first in firsts.items())
        newly_due = Due.of(
            Expectation("A", name, moment(first), moment(clock.window_start(before[name], MINUTE)) if name in before else None)
            for name, first in firsts.items()
            if first != before.get(name)
        )
        final_until = max(max(reading.event_ms for reading in readings) - 30_000, as_of - 600_000) - 120_000
        review = StoreReview({"A": Store(final_until * 1000, due, newly_due)}, 24 * 3600 * 1_000_000, None, None, is_anew=False)
        touched = {clock.window_start(reading.event_ms, MINUTE) for reading in new}
        lake.take(review.of("A", measured(readings, touched), lake.columns(MINUTES, lake.minutes), lake.columns(TRENDS, lake.trends)))
        world, winners = reference.Reference(), {(reading.sensor_id, reading.event_ms): reading for reading in readings}
        names = ("readings", "sensors_reporting", "sensors_expected", "completeness", "temperature_avg_c", "temperature_min_c", "temperature_max_c",
                 "door_open_share", "late_rows", "is_final")  # fmt: skip
        expected = store_minutes.build(winners, world, as_of)
        assert said(lake.minutes, names) == [(row["window_start"], *(row[name] for name in names)) for row in expected]
        names = (
            "readings",
            "temperature_avg_c",
            "temperature_min_c",
            "temperature_max_c",
            "door_open_share",
            "slope_c_per_hour",
            "is_final",
        )
        expected = store_trends.build(winners, world, as_of)
        assert said(lake.trends, names) == [(row["window_start"], *(row[name] for name in names)) for row in expected]
        whole = StoreReview({"A": review.stores["A"]}, review.silent_for, None, None, is_anew=True)
        again = whole.of(
            "A",
            measured(readings, {clock.window_start(reading.event_ms, MINUTE) for reading in readings}),
            lake.columns(MINUTES, lake.minutes),
            lake.columns(TRENDS, lake.trends),
        )
        assert [change.actions.tolist() for change in again] == [[], []]
