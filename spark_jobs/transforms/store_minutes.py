"""store_minutes: what a store reported in one minute of event time; a silent minute is a row too.

Spark measures the minutes that have readings; what follows from them is worked out store by store, on columns (`windows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Settings
from spark_jobs.transforms.event_time import minute_of, plus_seconds
from spark_jobs.transforms.inventory import DUE_EVERY_S, Expectation, Inventory
from spark_jobs.transforms.track import AFTER_ALL, BEFORE_ALL, SECOND, micros
from spark_jobs.transforms.windows import Columns

MINUTE = 60 * SECOND
# What store_trends adds up: temperatures in thousandths (mc) and times since the minute's start in milliseconds (ms), and doors.
SUMS = ("sum_mc", "sum_ms", "sum_ms_ms", "sum_ms_mc", "door_open", "door_said")
COUNTS = ("readings", "sensors_reporting", "late_rows", *SUMS)
MEASURES = ("temperature_avg_c", "temperature_min_c", "temperature_max_c", "door_open_share")
MEASURED = ("window_start", *COUNTS, "expected_reporting", *MEASURES, "last_reading_at")
CONTENT = (*COUNTS, *MEASURES, "last_reading_at", "sensors_expected", "completeness", "is_final")
INVENTORY = "sensor_id string, home string, active_from timestamp, retired_at timestamp, is_due boolean"


@dataclass(frozen=True)
class Due:
    """How many sensors a store waits for, by when each is first and last due."""

    since: NDArray[np.int64]
    until: NDArray[np.int64]

    @staticmethod
    def of(expected: Iterable[Expectation]) -> Due:
        spans = [(micros(each.since, BEFORE_ALL), micros(each.until, AFTER_ALL)) for each in expected]
        since, until = (np.array(sorted(span[i] for span in spans), np.int64) for i in (0, 1))
        return Due(since, until)

    def within(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """At any moment from start until before end: those that began before its end, less those that were over by its start."""
        return np.searchsorted(self.since, ends, "left") - np.searchsorted(self.until, starts, "right")


@dataclass(frozen=True)
class Store:
    """What the windows of a store need to know about it."""

    final_until: int
    due: Due
    newly_due: Due  # beyond those that were counted in what is published


def stores(final_until: Mapping[str, datetime], expected: Iterable[Expectation], newly: Iterable[Expectation]) -> dict[str, Store]:
    waits, newly_waits = _by_store(expected), _by_store(newly)
    return {
        store_id: Store(micros(until, 0), Due.of(waits.get(store_id, ())), Due.of(newly_waits.get(store_id, ())))
        for store_id, until in final_until.items()
    }


def _by_store(expected: Iterable[Expectation]) -> dict[str, list[Expectation]]:
    found: dict[str, list[Expectation]] = {}
    for each in expected:
        found.setdefault(each.store_id, []).append(each)
    return found


def inventory_rows(inventory: Inventory) -> list[tuple[Any, ...]]:
    """The rows of a frame of INVENTORY."""
    return [(known.sensor_id, known.store_id, known.active_from, known.retired_at, known.is_due) for known in inventory.values()]


def measures_per_minute(readings: DataFrame, inventory: DataFrame, settings: Settings) -> DataFrame:
    """One row for each (store, minute) that has readings. Sums are of whole thousandths, so any order gives the same."""
    ms, mc = F.pmod(F.unix_millis("event_ts"), F.lit(60_000)), F.col("temperature_mc").cast("bigint")
    per_sensor = (
        readings.groupBy("store_id", minute_of(F.col("event_ts")).alias("window_start"), "sensor_id")
        .agg(
            F.count("*").alias("readings"),
            F.sum(mc).alias("sum_mc"),
            F.sum(ms).alias("sum_ms"),
            F.sum(ms * ms).alias("sum_ms_ms"),
            F.sum(ms * mc).alias("sum_ms_mc"),
            F.min("temperature_mc").alias("min_mc"),
            F.max("temperature_mc").alias("max_mc"),
            F.count_if("door_open").alias("door_open"),
            F.count("door_open").alias("door_said"),
            F.count_if("is_late").alias("late_rows"),
            F.max("event_ts").alias("last_reading_at"),
        )
        .transform(with_is_expected, inventory, settings)
    )
    return per_sensor.groupBy("store_id", "window_start").agg(
        *(F.sum(name).alias(name) for name in ("readings", *SUMS)),
        F.count("*").alias("sensors_reporting"),
        F.count_if("is_expected").alias("expected_reporting"),
        ((F.sum("sum_mc") / F.sum("readings")) / 1000).alias("temperature_avg_c"),
        (F.min("min_mc") / 1000).alias("temperature_min_c"),
        (F.max("max_mc") / 1000).alias("temperature_max_c"),
        F.when(F.sum("door_said") > 0, F.sum("door_open") / F.sum("door_said")).alias("door_open_share"),
        F.sum("late_rows").alias("late_rows"),
        F.max("last_reading_at").alias("last_reading_at"),
    )


def with_is_expected(per_sensor: DataFrame, inventory: DataFrame, settings: Settings) -> DataFrame:
    """Whether the store waits for the sensor in this minute; one that the inventory does not know is waited for once it has spoken."""
    is_known = F.col("home").isNotNull()
    waited_for = F.col("is_due") & (F.col("home") == F.col("store_id")) & _is_active(F.col("active_from"), F.col("retired_at"))
    is_expected = F.when(is_known, waited_for).otherwise(F.lit(settings.expected_every_s <= DUE_EVERY_S))
    return per_sensor.join(F.broadcast(inventory), "sensor_id", "left").withColumn("is_expected", is_expected)


def _is_active(since: Column, until: Column) -> Column:
    """At any moment of the minute; an empty end is open."""
    starts, ends = F.col("window_start"), plus_seconds(F.col("window_start"), 60)
    return (since.isNull() | (since < ends)) & (until.isNull() | (until > starts))


def build(minutes: Columns, store: Store, silent_for: int) -> Columns:
    """All minutes of a store, given those that have been measured or published; published ones keep what they say, but for what the
    store's expectations and frontier change in them."""
    return with_finality(with_expected(with_silent_minutes(minutes, store, silent_for), store), store)


def with_silent_minutes(minutes: Columns, store: Store, silent_for: int) -> Columns:
    """Each minute, and the final ones without a reading that follow it, as long as they start less than `silent_for` after the last
    reading before them. Where that reading lies before the minutes at hand, all that follows it has been written down."""
    starts = minutes["window_start"]
    last_reading = np.maximum.accumulate(minutes["last_reading_at"]) if len(starts) else starts
    last_heard = np.where(last_reading == BEFORE_ALL, starts, _minute(last_reading + silent_for - 1))
    last_final = _minute(np.int64(store.final_until)) - MINUTE
    before_next = np.append(starts[1:], AFTER_ALL)[: len(starts)] - MINUTE
    until = np.maximum(starts, np.minimum(np.minimum(before_next, last_final), last_heard))
    counts = (until - starts) // MINUTE + 1
    source = np.repeat(np.arange(len(starts)), counts)
    offset = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    spread = {name: values[source] for name, values in minutes.items()}
    is_silent = offset > 0
    for name in (*COUNTS, "expected_reporting"):
        spread[name] = np.where(is_silent, 0, spread[name])
    for name in (*MEASURES, "completeness"):
        spread[name] = np.where(is_silent, np.nan, spread[name])
    return {
        **spread,
        "window_start": starts[source] + offset * MINUTE,
        "last_reading_at": np.where(is_silent, BEFORE_ALL, spread["last_reading_at"]),
        "sensors_expected": np.where(is_silent, -1, spread["sensors_expected"]),
    }


def with_expected(minutes: Columns, store: Store) -> Columns:
    """How many sensors are due in the minute, and the share of them that reported.

    A published minute without a new reading keeps both, but for newcomers, who said nothing in it: they are added to those who were
    waited for. These are not counted anew, because the inventory may have changed since; who of another inventory's sensors had
    reported is not known without the readings, and the share of one in the other may be above 1.
    """
    starts, was = minutes["window_start"], minutes["sensors_expected"]
    ends, is_published = starts + MINUTE, was >= 0
    newly = store.newly_due.within(starts, ends)
    expected = np.where(is_published, was + newly, store.due.within(starts, ends))
    told = np.rint(np.nan_to_num(minutes["completeness"]) * np.maximum(was, 0))
    reported = np.where(minutes["expected_reporting"] >= 0, minutes["expected_reporting"], told)
    share = np.divide(reported, expected, out=np.full(len(starts), np.nan), where=expected > 0)
    return {
        **minutes,
        "sensors_expected": expected,
        "completeness": np.where(is_published & (newly == 0), minutes["completeness"], share),
    }


def with_finality(minutes: Columns, store: Store) -> Columns:
    ends = minutes["window_start"] + MINUTE
    return {**minutes, "window_end": ends, "is_final": ends <= store.final_until}


def _minute(moments: Any) -> Any:
    return moments - moments % MINUTE
