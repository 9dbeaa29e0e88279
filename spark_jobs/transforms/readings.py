"""readings: one row for each distinct (sensor_id, event_ts); the first to arrive wins, whenever it is read (P6)."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.settings import Settings

KEY = ("sensor_id", "event_ts")
CONTENT = ("temperature_mc", "store_id", "door_open", "battery_pct")
LINE = (*KEY, *CONTENT, "event_id", "arrived_at", "source", "position")

NEW, REPLACES, DUPLICATE, CONFLICT, STAYS = "new", "replaces", "duplicate", "conflict", "stays"


def with_outcome(lines: DataFrame) -> DataFrame:
    """What becomes of each line, given all lines with its key: those just read and those `held` by a table already.

    `outcome` compares a line with the winner. A winner that was not in readings before is `new`, or `replaces` the one that was.
    """
    in_order = Window.partitionBy(*KEY).orderBy("arrived_at", *CONTENT, "event_id", F.desc("held"), "source", "position")
    ranked = lines.withColumns(
        {
            "rank": F.row_number().over(in_order),
            "winner": F.first(F.struct(*CONTENT)).over(in_order),
            "has_reading": F.max(F.col("held") == "readings").over(Window.partitionBy(*KEY)),
        }
    )
    return ranked.withColumn("outcome", _outcome()).drop("rank", "has_reading")


def _outcome() -> Column:
    is_winner, was_reading = F.col("rank") == 1, F.col("held") == "readings"
    says_the_same = reduce(lambda left, right: left & right, (F.col(name).eqNullSafe(F.col(f"winner.{name}")) for name in CONTENT))
    return (
        F.when(is_winner & was_reading, STAYS)
        .when(is_winner & F.col("has_reading"), REPLACES)
        .when(is_winner, NEW)
        .when(says_the_same, DUPLICATE)
        .otherwise(CONFLICT)
    )


def with_measures(readings: DataFrame, settings: Settings) -> DataFrame:
    """The columns of a reading that follow from the others."""
    return readings.withColumns(
        {
            "temperature_c": F.col("temperature_mc") / 1000,
            "lateness_s": (F.unix_millis("arrived_at") - F.unix_millis("event_ts")) / 1000,
            "is_late": is_late(settings),
            "event_date": F.to_date("event_ts"),
        }
    )


def is_late(settings: Settings) -> Column:
    """It arrived `late_after_s` or more after its minute's end."""
    minute_end_ms = F.floor(F.unix_millis("event_ts") / 60_000) * 60_000 + 60_000
    return F.unix_millis("arrived_at") >= minute_end_ms + settings.late_after_s * 1000
