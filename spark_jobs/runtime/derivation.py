"""Apply the transforms to what changed, and only to that: which slices of readings each table needs, and which published rows
the result stands against. The first run, or a rebuild, gives the same functions everything; that is why the two agree.

What there is one of per sensor or store is worked out on the driver; what grows with the readings, by Spark.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cached_property, reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.rules import RULES, Outage, Rule
from include.settings import Clock, utc
from spark_jobs.runtime.changes import Changes
from spark_jobs.runtime.event_slices import HOUR_S, day, hour_of, within
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.reference import Reference
from spark_jobs.runtime.run import Published
from spark_jobs.runtime.small_tables import Row
from spark_jobs.transforms import alerts, heartbeats, inventory, outage_causes, outages, sensor_stores, store_minutes
from spark_jobs.transforms.event_time import final_until, minute_of, plus_seconds
from spark_jobs.transforms.heartbeats import Sensor, Words
from spark_jobs.transforms.inventory import Expectation
from spark_jobs.transforms.sensor_stores import Stay

DAY = timedelta(days=1)
SENSORS = "sensor_id string, home string, silent_after_s bigint, was_last_at timestamp, was_silent_after_s bigint"


class Derivation:
    def __init__(self, lake: Lake, clock: Clock, changes: Changes, reference: Reference, published: Published | None) -> None:
        self.lake, self.clock, self.settings = lake, clock, lake.settings
        self.changes, self.reference, self.published = changes, reference, published
        self.inventory = inventory.known_sensors(reference.rows["sensors"], self.settings)

    @property
    def is_quiet(self) -> bool:
        """No reading came: only the clock went on."""
        return not self.is_whole and not self.changes.hours

    @property
    def is_whole(self) -> bool:
        """Everything is worked out, not only what changed."""
        return self.changes.rows is None or self.published is None

    @cached_property
    def readings(self) -> DataFrame:
        return self.lake.read_at("readings", self.changes.version)

    # Who has spoken, who is expected, and how far each store was heard

    @cached_property
    def _was_heard(self) -> dict[str, Row]:
        """Each sensor that had spoken, as published."""
        return {row["sensor_id"]: row for row in self.lake.rows("heartbeats") if row["last_seen_at"] is not None}

    @cached_property
    def _were_stays(self) -> dict[tuple[str, str], Stay]:
        rows = self.lake.rows("sensor_stores")
        return {(row["sensor_id"], row["store_id"]): Stay(row["first_seen_at"], row["last_seen_at"]) for row in rows}

    @cached_property
    def stays(self) -> dict[tuple[str, str], Stay]:
        return sensor_stores.merged({} if self.is_whole else self._were_stays, self.changes.heard)

    @cached_property
    def sensors(self) -> dict[str, Sensor]:
        before: dict[str, Words] = {} if self.is_whole else {name: heartbeats.words_of(row) for name, row in self._was_heard.items()}
        return heartbeats.sensors(heartbeats.merged(before, self.changes.heard), self.inventory, self.clock)

    @cached_property
    def expected(self) -> list[Expectation]:
        return inventory.expectations(self.inventory, self.stays, self.settings)

    @cached_property
    def _sensors_frame(self) -> DataFrame:
        """What Spark has to know of each sensor: its timeout and its store, now and as published."""
        rows = []
        for name, sensor in self.sensors.items():
            was = self._was_heard.get(name)
            home = sensor.known.store_id if sensor.known else None
            rows.append((name, home, sensor.silent_after_s, was and was["last_seen_at"], was and was["silent_after_s"]))
        return self.lake.frame(SENSORS, rows)

    # store_minutes

    def store_minutes(self) -> tuple[DataFrame, DataFrame]:
        """The minutes as they should be, and the published rows they stand against."""
        published = self.lake.read("store_minutes")
        newly_expected = self._newly_expected()
        stores = store_minutes.stores(final_until(self.stays, self.clock), self.expected, newly_expected)
        frame = self.lake.frame(store_minutes.STORES, stores)
        if self.is_whole:
            return store_minutes.build(self._measured(self.readings), frame, self.settings), published
        assert self.changes.rows is not None
        days = self._days(newly_expected)
        near = published.filter(F.col("window_date").isin(days))
        touched = F.broadcast(self.changes.rows.select("store_id", minute_of(F.col("event_ts")).alias("window_start")).distinct())
        slices = self.readings.filter(within(self.changes.hours)).withColumn("window_start", minute_of(F.col("event_ts")))
        measured = self._measured(slices.join(touched, store_minutes.KEY, "left_semi"))
        others = near.join(touched, store_minutes.KEY, "left_anti").withColumn("expected_reporting", F.lit(None).cast("bigint"))
        minutes = measured.unionByName(others.select(*measured.columns))
        return store_minutes.build(minutes, frame, self.settings).filter(F.col("window_date").isin(days)), near

    def _measured(self, readings: DataFrame) -> DataFrame:
        known = self.lake.frame(store_minutes.INVENTORY, store_minutes.inventory_rows(self.inventory))
        measured = store_minutes.measures_per_minute(readings, known, self.settings)
        return measured.withColumns({"sensors_expected": F.lit(None).cast("bigint"), "completeness": F.lit(None).cast("double")})

    def _newly_expected(self) -> dict[str, datetime]:
        """Stores where a sensor unknown to the inventory was first heard, or first heard earlier than was known, and from when."""
        since: dict[str, datetime] = {}
        for heard in () if self.is_whole else self.changes.heard:
            was = self._were_stays.get((heard.sensor_id, heard.store_id))
            if heard.sensor_id not in self.inventory and (was is None or heard.first_seen_at < was.first_seen_at):
                since[heard.store_id] = min(since.get(heard.store_id, heard.first_seen_at), heard.first_seen_at)
        return since

    def _days(self, newly_expected: dict[str, datetime]) -> list[date]:
        """Days whose minutes may change: those of changed readings and the day after (silent minutes reach that far), those that the
        clock's going on makes final, and all from where a store waits for someone new."""
        assert self.published is not None
        settings = self.settings
        newest = max(hour for hour in (*self.changes.hours, int(self.clock.as_of.timestamp()) // HOUR_S))
        last = day(newest) + DAY
        moved = utc(self.published.as_of) - timedelta(
            seconds=settings.idle_after_s + settings.allowed_lateness_s, hours=settings.silent_store_hours
        )
        first = min([moved.date(), *(since.date() for since in newly_expected.values())])
        days = {first + DAY * i for i in range((last - first).days + 1)}
        days |= {day(hour) + DAY * i for hour in self.changes.hours for i in (0, 1)}
        return sorted(days)

    # Silences and what the rules find

    @cached_property
    def ranges(self) -> DataFrame:
        """Which stretch of a sensor's readings is looked at again: what changed on a day (changed_from … changed_to) with a margin
        that holds every neighbour a rule may ask for, from the reading before it (`read_from`) to the one after (`read_to`)."""
        assert self.changes.rows is not None
        key = ["sensor_id", "range_id"]
        changed = self.changes.rows.groupBy("sensor_id", F.to_date("event_ts").alias("range_id")).agg(
            F.min("event_ts").alias("changed_from"), F.max("event_ts").alias("changed_to")
        )
        silences = self.lake.read("outages").select("sensor_id", "started_at", "ended_at")
        around = (F.col("started_at") <= F.col("changed_to")) & (F.col("ended_at").isNull() | (F.col("ended_at") >= F.col("changed_from")))
        silent = changed.join(silences, "sensor_id").filter(around).groupBy(*key)
        reached = silent.agg(F.min("started_at").alias("silent_from"), F.max("ended_at").alias("silent_to"))
        margin = F.greatest(F.lit(alerts.longest_look_back_s(RULES)).cast("bigint"), "silent_after_s", "was_silent_after_s")
        near_from, near_to = plus_seconds(F.col("changed_from"), -margin), plus_seconds(F.col("changed_to"), margin)
        ranges = (
            changed.join(F.broadcast(self._sensors_frame), "sensor_id")
            .join(reached, key, "left")
            .select("*", near_from.alias("near_from"), near_to.alias("near_to"))
        )
        read_from, read_to = F.least("near_from", "silent_from", "was_last_at"), F.greatest("near_to", "silent_to")
        borders = ("changed_from", "changed_to", "near_from", "near_to")
        return self._kept_if_any(ranges.select(*key, *borders, read_from.alias("read_from"), read_to.alias("read_to")))

    @cached_property
    def notable(self) -> DataFrame:
        """Readings before a silence, or that a rule finds notable, with their neighbours."""
        if self.is_whole:
            rows = outages.with_neighbours(self.readings, "sensor_id")
        else:
            slices = self.readings.filter(within(self._hours_in_ranges())).join(F.broadcast(self.ranges), "sensor_id")
            rows = outages.with_neighbours(slices.filter("event_ts between read_from and read_to"), "sensor_id", "range_id")
        known = self._sensors_frame.select("sensor_id", "home", "silent_after_s")
        return self._kept_if_any(
            rows.join(F.broadcast(known), "sensor_id").filter(
                outages.is_followed_by_silence() | outages.is_doubled() | alerts.is_notable(RULES)
            )
        )

    def _hours_in_ranges(self) -> list[int]:
        """Between read_from and near_from, and between near_to and read_to, the sensor said nothing: only the ends are read."""
        if self.is_quiet:
            return []
        borders = ("read_from", "near_from", "near_to", "read_to")
        rows = self.ranges.select(*(hour_of(name).alias(name) for name in borders)).distinct().collect()
        near = {hour for row in rows for hour in range(row.near_from, row.near_to + 1)}
        return sorted(near | {row.read_from for row in rows} | {row.read_to for row in rows})

    @cached_property
    def silences(self) -> DataFrame:
        """Outages that start in the ranges, and every sensor's last silence."""
        last = self.lake.frame(outages.LAST_SILENCES, outages.last_silences(self.sensors.values()))
        if self.is_quiet:
            return last
        ended = self.notable if self.is_whole else self.notable.filter("event_ts <= changed_to")
        return _kept(outages.between_readings(ended).distinct().unionByName(last))

    def _published_silences(self, rows: DataFrame) -> DataFrame:
        """The rows (of outages, or of alerts about them) that `silences` stand against."""
        if self.is_whole:
            return rows
        was_last = self._sensors_frame.select("sensor_id", "was_last_at")
        is_last = F.col("ended_at").isNull() | (F.col("started_at") == F.col("was_last_at"))
        last = rows.join(F.broadcast(was_last), "sensor_id").filter(is_last).select(*rows.columns)
        if self.is_quiet:
            return last
        spans = self.ranges.select("sensor_id", "read_from", "changed_to")
        in_range = rows.join(F.broadcast(spans), "sensor_id").filter("started_at between read_from and changed_to").select(*rows.columns)
        return in_range.unionByName(last).distinct()

    @cached_property
    def outages(self) -> tuple[DataFrame, DataFrame] | None:
        """The outages as they should be, and the published rows they stand against; None where no silence is other than published."""
        published, columns = self.lake.read("outages"), ["sensor_id", "store_id", "started_at", "ended_at"]
        fresh = self.silences.select(*columns)
        if self.is_whole:
            return _kept(outage_causes.with_cause(fresh, self._waited_for)), published
        before, key = _kept(self._published_silences(published)), ["sensor_id", "started_at"]
        since = self._causes_change_since(fresh, before.select(*columns))
        if since is None:
            return None
        # A cause rests on what all others did meanwhile: outages that reach into the changed time are judged anew,
        # and with them counts whatever overlaps the earliest of these.
        known = _kept(fresh.join(before.select(*key, "cause"), key, "left"))
        others = published.join(before, key, "left_anti")
        everyone = known.unionByName(others)
        reaches = F.col("ended_at").isNull() | (F.col("ended_at") >= F.lit(since))
        earliest = everyone.filter(reaches).agg(F.min("started_at")).collect()[0][0]
        around = _kept(everyone.filter(F.col("ended_at").isNull() | (F.col("ended_at") >= F.lit(earliest))).select(*columns))
        judged = outage_causes.with_cause(around, self._waited_for).filter(reaches)
        return _kept(judged.unionByName(known.filter(~reaches))), before.unionByName(others.filter(reaches))

    @property
    def _waited_for(self) -> DataFrame:
        first_heard = {name: sensor.words.first_seen_at for name, sensor in self.sensors.items() if sensor.words}
        return self.lake.frame(outage_causes.WAITED_FOR, outage_causes.waited_for(self.expected, first_heard))

    def _causes_change_since(self, fresh: DataFrame, before: DataFrame) -> datetime | None:
        """From when on someone was silent, or was waited for, other than was known."""
        sides = fresh.withColumn("side", F.lit(1)).unionByName(before.withColumn("side", F.lit(-1)))
        on_one_side = sides.groupBy(*fresh.columns).agg(F.sum("side").alias("balance")).filter("balance <> 0")
        changed = on_one_side.agg(F.min("started_at")).collect()[0][0]
        moments = [] if changed is None else [changed.replace(tzinfo=UTC)]
        for heard in self.changes.heard:
            was = self._was_heard.get(heard.sensor_id)
            if was is None or heard.first_seen_at < was["first_seen_at"]:
                moments.append(heard.first_seen_at)
        return min(moments, default=None)

    def alerts(self) -> tuple[DataFrame, DataFrame]:
        """The alerts as they should be, retracted ones among them, and the published rows they stand against."""
        found = reduce(DataFrame.unionByName, (alerts.episodes(rule, self._notable_for(rule), self.silences) for rule in RULES))
        limits, suppressions = self._reference_frame("limits"), self._reference_frame("suppressions")
        current = _kept(alerts.build(found.distinct(), limits, suppressions).select("alert_id", *alerts.CONTENT))
        published = self.lake.read("alerts")
        before = _kept(reduce(DataFrame.unionByName, (self._published_alerts(published, rule) for rule in RULES)))
        gone = before.filter("status <> 'retracted'").join(current, "alert_id", "left_anti")
        return current.unionByName(alerts.retracted(gone, current, F.lit(self.clock.as_of))), before

    def _reference_frame(self, name: str) -> DataFrame:
        return self.lake.frame(*self.reference.schema_and_rows(name))

    def _notable_for(self, rule: Rule) -> DataFrame:
        if self.is_whole or isinstance(rule.when, Outage):
            return self.notable
        return self.notable.filter(F.col("event_ts").between(F.col("changed_from"), plus_seconds(F.col("changed_to"), rule.when.within_s)))

    def _published_alerts(self, published: DataFrame, rule: Rule) -> DataFrame:
        rows = published.filter(F.col("rule") == rule.name)
        if isinstance(rule.when, Outage):
            return self._published_silences(rows)
        if self.is_whole:
            return rows
        spans = self.ranges.select("sensor_id", "changed_from", plus_seconds(F.col("changed_to"), rule.when.within_s).alias("until"))
        return (
            rows.join(F.broadcast(spans), "sensor_id").filter("started_at between changed_from and until").select(*rows.columns).distinct()
        )

    # heartbeats and sensor_stores, whole

    def heartbeats(self) -> list[Row]:
        causes = self._causes_of_open_outages()
        return [heartbeats.row(sensor, causes.get(name), self.clock) for name, sensor in sorted(self.sensors.items())]

    def _causes_of_open_outages(self) -> dict[str, str]:
        if self.outages is None:
            return {name: row["cause"] for name, row in self._was_heard.items()}
        rows = self.outages[0].filter("ended_at is null").select("sensor_id", "cause").collect()
        return {row.sensor_id: row.cause for row in rows}

    def sensor_stores(self) -> list[Row]:
        return [{"sensor_id": sensor, "store_id": store, **stay.__dict__} for (sensor, store), stay in sorted(self.stays.items())]

    def _kept_if_any(self, rows: DataFrame) -> DataFrame:
        """Without changed readings the optimiser drops these frames altogether, but it cannot look into one that is kept."""
        return rows if self.is_quiet else _kept(rows)


def _kept(rows: DataFrame) -> DataFrame:
    """Used more than once: worked out once, and cut off from its plan. What follows is planned without what came before it,
    which is most of a small run's time. An executor that dies takes it along; then the task is tried again."""
    kept = rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)
    return kept.select(*(F.col(name).alias(name) for name in kept.columns))  # else it cannot be joined with what it was made from
