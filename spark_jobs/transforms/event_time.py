"""Event time: minutes, and how far each store has been heard (its frontier)."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.settings import Clock
from spark_jobs.transforms.sensor_stores import Stays


def plus_seconds(moment: Column, seconds: Column | int) -> Column:
    return F.timestamp_micros(F.unix_micros(moment) + seconds * F.lit(1_000_000).cast("bigint"))


def minute_of(moment: Column) -> Column:
    micros = F.unix_micros(moment)
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(60_000_000)))


def final_until(stays: Stays, clock: Clock) -> dict[str, datetime]:
    """Per store: windows that end then or before are final."""
    delay, lateness = (timedelta(seconds=seconds) for seconds in (clock.settings.watermark_delay_s, clock.settings.allowed_lateness_s))
    last: dict[str, datetime] = {}
    for (_, store_id), stay in stays.items():
        last[store_id] = max(last.get(store_id, stay.last_seen_at), stay.last_seen_at)
    return {store_id: max(seen - delay, clock.idle_frontier) - lateness for store_id, seen in last.items()}
