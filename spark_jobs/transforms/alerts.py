"""alerts: episodes per rule and sensor. Each rule of `include/rules.py` has a kind, and each kind one function here."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.rules import Drop, Outage, Rule
from include.tables import EVIDENCE_READING

CONTENT = (
    "rule", "severity", "sensor_id", "store_id", "started_at", "ended_at", "peak", "evidence",
    "limit_low_c", "limit_high_c", "status", "suppressed_by", "superseded_by",
)  # fmt: skip


def longest_look_back_s(rules: tuple[Rule, ...]) -> int:
    """How far before a changed reading a rule may have to look."""
    return max((rule.when.within_s for rule in rules if isinstance(rule.when, Drop)), default=0)


def is_notable(rules: tuple[Rule, ...]) -> Column:
    """Readings that some rule finds notable, given the one before; all others need not be kept."""
    return reduce(lambda left, right: left | right, (is_drop(rule.when) for rule in rules if isinstance(rule.when, Drop)), F.lit(False))


def episodes(rule: Rule, neighbours: DataFrame, outages: DataFrame) -> DataFrame:
    """What the rule finds, before it becomes an alert."""
    found = from_outages(outages) if isinstance(rule.when, Outage) else from_drops(neighbours, rule.when)
    return found.withColumns({"rule": F.lit(rule.name), "severity": F.lit(rule.severity)})


def from_outages(outages: DataFrame) -> DataFrame:
    return outages.select(
        "sensor_id",
        F.col("reading_store_id").alias("store_id"),
        "started_at",
        "ended_at",
        F.lit(None).cast("double").alias("peak"),
        _evidence(F.col("first"), _none(), F.col("last"), _none()),
    )


def from_drops(neighbours: DataFrame, drop: Drop) -> DataFrame:
    reading = F.col("reading")
    return neighbours.filter(is_drop(drop)).select(
        "sensor_id",
        "store_id",
        F.col("event_ts").alias("started_at"),
        F.col("event_ts").alias("ended_at"),
        F.col("temperature_c").alias("peak"),
        _evidence(reading, reading, reading, F.col("previous")),
    )


def is_drop(drop: Drop) -> Column:
    """Compared in whole thousandths, so that 8.2 → 3.2 is a drop of exactly 5."""
    fall_mc = F.rint(F.col("previous.temperature_c") * 1000) - F.rint(F.col("temperature_c") * 1000)
    age_us = F.unix_micros("event_ts") - F.unix_micros("previous.event_ts")
    return (fall_mc > round(drop.by_c * 1000)) & (age_us <= drop.within_s * 1_000_000)


def build(found: DataFrame, limits: DataFrame, suppressions: DataFrame) -> DataFrame:
    named = found.withColumns(
        {
            "alert_id": alert_id(),
            "status": F.when(F.col("ended_at").isNull(), "open").otherwise("resolved"),
            "superseded_by": F.lit(None).cast("string"),
        }
    )
    return named.transform(with_limits, limits).transform(with_suppression, suppressions)


def alert_id() -> Column:
    started_at = F.date_format("started_at", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    return F.substring(F.sha2(F.concat_ws("|", "rule", "sensor_id", started_at), 256), 1, 32)


def with_limits(alerts: DataFrame, limits: DataFrame) -> DataFrame:
    """The store's limits in force at the first reading; of several the one that came into force last."""
    spans = limits.groupBy("store_id").agg(
        F.array_sort(F.collect_list(F.struct("valid_from", "valid_to", "low_c", "high_c"))).alias("spans")
    )
    at = F.col("started_at")
    in_force = F.filter(
        "spans",
        lambda span: (span["valid_from"].isNull() | (span["valid_from"] <= at)) & (span["valid_to"].isNull() | (at < span["valid_to"])),
    )
    shown = {f"limit_{side}_c": F.rint(F.col(f"in_force.{side}_c") * 1000) / 1000 for side in ("low", "high")}
    with_spans = alerts.join(F.broadcast(spans), "store_id", "left").withColumn("in_force", F.try_element_at(in_force, F.lit(-1)))
    return with_spans.withColumns(shown).drop("spans", "in_force")


def with_suppression(alerts: DataFrame, suppressions: DataFrame) -> DataFrame:
    """Marks an alert that starts in a suppression window; of several the first in the file's order of time."""
    windows = suppressions.groupBy("store_id").agg(
        F.array_sort(
            F.collect_list(
                F.struct(
                    F.col("from").alias("since"),
                    F.coalesce("reason", F.lit("suppressed")).alias("reason"),
                    F.col("to").alias("until"),
                    "sensor_id",
                    "rule",
                )
            )
        ).alias("windows")
    )

    def applies(window: Column) -> Column:
        return (
            (window["since"].isNull() | (window["since"] <= F.col("started_at")))
            & (window["until"].isNull() | (F.col("started_at") < window["until"]))
            & (window["sensor_id"].isNull() | (window["sensor_id"] == F.col("sensor_id")))
            & (window["rule"].isNull() | (window["rule"] == F.col("rule")))
        )

    marked = alerts.join(F.broadcast(windows), "store_id", "left")
    return marked.withColumn("suppressed_by", F.try_element_at(F.filter("windows", applies), F.lit(1))["reason"]).drop("windows")


def retracted(gone: DataFrame, current: DataFrame, as_of: Column) -> DataFrame:
    """Published alerts that the readings no longer bear out; `superseded_by` names the one that took their place, if any."""
    successors = current.select(
        F.col("rule").alias("new_rule"), F.col("sensor_id").alias("new_sensor_id"), F.col("alert_id").alias("new_id"),
        F.col("started_at").alias("new_start"), F.coalesce("ended_at", F.lit("9999-01-01").cast("timestamp")).alias("new_end"),
    )  # fmt: skip
    overlap = (F.col("new_start") <= F.coalesce("ended_at", F.lit("9999-01-01").cast("timestamp"))) & (
        F.col("started_at") <= F.col("new_end")
    )
    same = (F.col("rule") == F.col("new_rule")) & (F.col("sensor_id") == F.col("new_sensor_id"))
    first = Window.partitionBy("alert_id").orderBy("new_start")
    return (
        gone.join(successors, same & overlap, "left")
        .withColumn("place", F.row_number().over(first))
        .filter("place = 1")
        .withColumns(
            {
                "superseded_by": F.col("new_id"),
                "status": F.lit("retracted"),
                "ended_at": F.coalesce("ended_at", F.greatest("started_at", as_of)),  # open exactly while it has no end
            }
        )
        .select("alert_id", *CONTENT)
    )


def _evidence(first: Column, worst: Column, last: Column, before: Column) -> Column:
    return F.struct(first.alias("first"), worst.alias("worst"), last.alias("last"), before.alias("before")).alias("evidence")


def _none() -> Column:
    return F.lit(None).cast(EVIDENCE_READING)
