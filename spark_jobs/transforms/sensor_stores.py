"""sensor_stores: which sensor has spoken from which store, and from when to when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Stay:
    """Of a sensor in a store."""

    first_seen_at: datetime
    last_seen_at: datetime


Stays = Mapping[tuple[str, str], Stay]  # by sensor and store


@dataclass(frozen=True)
class Heard:
    """What the readings at hand tell of a sensor in a store: first and last time, the last reading, the range of temperatures."""

    sensor_id: str
    store_id: str
    first_seen_at: datetime
    last_seen_at: datetime
    temperature_c: float
    door_open: bool | None
    battery_pct: float | None
    lowest_mc: int
    highest_mc: int


def per_sensor_and_store(readings: DataFrame, *further: Column, measures: Sequence[Column] = ()) -> DataFrame:
    """One row for each `Heard`; `further` columns divide it, `measures` add to it."""
    words = F.max_by(F.struct("temperature_c", "door_open", "battery_pct"), "event_ts")
    heard = readings.groupBy("sensor_id", "store_id", *further).agg(
        F.min("event_ts").alias("first_seen_at"),
        F.max("event_ts").alias("last_seen_at"),
        words.alias("words"),
        F.min("temperature_mc").alias("lowest_mc"),
        F.max("temperature_mc").alias("highest_mc"),
        *measures,
    )
    return heard.select("*", "words.*").drop("words")


def merged(before: Stays, heard: Iterable[Heard]) -> dict[tuple[str, str], Stay]:
    """What was known before, widened by what is new."""
    stays = dict(before)
    for each in heard:
        key = each.sensor_id, each.store_id
        known = stays.get(key)
        first = each.first_seen_at if known is None else min(known.first_seen_at, each.first_seen_at)
        last = each.last_seen_at if known is None else max(known.last_seen_at, each.last_seen_at)
        stays[key] = Stay(first, last)
    return stays
