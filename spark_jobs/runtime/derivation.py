"""Apply the transforms to what changed, and only to that: which slices of readings each table needs, and which published rows
the result stands against. The first run, or a rebuild, gives the same functions everything; that is why the two agree.
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
from spark_jobs.runtime.event_slices import HOUR_S, day, touched_hours, within
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.reference import Reference
from spark_jobs.runtime.run import Published
from spark_jobs.transforms import alerts, heartbeats, inventory, outage_causes, outages, sensor_stores, store_minutes
from spark_jobs.transforms.event_time import frontiers, minute_of, plus_seconds

DAY = timedelta(days=1)


class Derivation:
    def __init__(self, lake: Lake, clock: Clock, changes: Changes, reference: Reference, published: Published | None) -> None:
        self.lake, self.clock, self.settings = lake, clock, lake.settings
        self.changes, self.reference, self.published = changes, reference, published
        self.inventory = _kept(inventory.with_defaults(reference.frame("sensors"), self.settings))

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

    # Who has spoken, and how far each store was heard

    @cached_property
    def recent(self) -> DataFrame:
        return self._kept_if_any(sensor_stores.per_sensor_and_store(self.readings if self.is_whole else self.changes.present))

    @cached_property
    def sensor_stores(self) -> DataFrame:
        before = self.lake.read("sensor_stores")
        if self.is_quiet:
            return before
        return _kept(sensor_stores.merged(before.limit(0) if self.is_whole else before, self.recent))

    @cached_property
    def sensors(self) -> DataFrame:
        """Every sensor with its inventory, its last words and whether it is silent now."""
        words = heartbeats.merged(self.lake.read("heartbeats"), heartbeats.last_words(self.recent))
        return _kept(heartbeats.with_inventory(words, self.inventory, self.clock))

    @cached_property
    def frontiers(self) -> DataFrame:
        return _kept(frontiers(self.sensor_stores, self.clock))

    @cached_property
    def expected(self) -> DataFrame:
        return _kept(inventory.expectations(self.inventory, self.sensor_stores, self.settings))

    # store_minutes

    def store_minutes(self) -> tuple[DataFrame, DataFrame]:
        """The minutes as they should be, and the published rows they stand against."""
        published = self.lake.read("store_minutes")
        if self.is_whole:
            return store_minutes.build(self.readings, self.inventory, self.expected, self.frontiers, self.settings), published
        newly_expected = self._newly_expected()
        days = self._days(newly_expected)
        near = published.filter(F.col("window_date").isin(days))
        touched = self._touched_minutes(near, newly_expected)
        measured = self._measured(touched)
        others = near.join(touched, store_minutes.KEY, "left_anti")
        silent = store_minutes.silent_minutes(
            measured.unionByName(others.filter("readings > 0"), allowMissingColumns=True), self.frontiers, self.settings
        )
        silent = silent.filter(F.to_date("window_start").isin(days)).join(others.filter("readings = 0"), store_minutes.KEY, "left_anti")
        anew = measured.unionByName(silent, allowMissingColumns=True).transform(store_minutes.with_expected, self.expected)
        columns = [name for name in published.columns if name not in ("revision", "is_final", "window_end", "window_date")]
        fresh = anew.select(*columns).unionByName(others.select(*columns))
        return fresh.transform(store_minutes.with_finality, self.frontiers), near

    def _touched_minutes(self, near: DataFrame, newly_expected: dict[str, datetime]) -> DataFrame:
        """The (store, minute) pairs whose readings changed, and all from where a store waits for someone new."""
        assert self.changes.rows is not None
        touched = self.changes.rows.select("store_id", minute_of(F.col("event_ts")).alias("window_start"))
        for store_id, since in newly_expected.items():
            later = near.filter((F.col("store_id") == store_id) & (F.col("window_end") > F.lit(since)))
            touched = touched.unionByName(later.select(*store_minutes.KEY))
        return self._kept_if_any(touched.distinct())

    def _measured(self, touched: DataFrame) -> DataFrame:
        slices = self.readings.filter(within(touched_hours(touched, "window_start") if self.changes.hours else [])).withColumn(
            "window_start", minute_of(F.col("event_ts"))
        )
        slices = slices.join(F.broadcast(touched), store_minutes.KEY, "left_semi")
        return self._kept_if_any(store_minutes.measures_per_minute(slices, self.inventory, self.settings))

    def _newly_expected(self) -> dict[str, datetime]:
        """Stores where a sensor unknown to the inventory was first heard, or first heard earlier than was known, and from when."""
        if not self.changes.hours:
            return {}
        before = self.lake.read("sensor_stores").select("sensor_id", "store_id", F.col("first_seen_at").alias("was_first_at"))
        pairs = self.recent.join(F.broadcast(self.inventory.select("sensor_id")), "sensor_id", "left_anti").join(
            before, ["sensor_id", "store_id"], "left"
        )
        earlier = pairs.filter("was_first_at is null or first_seen_at < was_first_at")
        rows = earlier.groupBy("store_id").agg(F.min("first_seen_at").alias("since")).collect()
        return {row.store_id: row.since.replace(tzinfo=UTC) for row in rows}

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
        reached = changed.join(silences, "sensor_id").filter(around).groupBy(*key)
        silences = reached.agg(F.min("started_at").alias("silent_from"), F.max("ended_at").alias("silent_to"))
        margin = F.greatest(F.lit(alerts.longest_look_back_s(RULES)).cast("bigint"), "silent_after_s", "was_silent_after_s")
        return self._kept_if_any(
            changed.join(self._was_last, "sensor_id", "left")
            .join(self.sensors.select("sensor_id", "silent_after_s"), "sensor_id")
            .join(silences, key, "left")
            .withColumn("near_from", plus_seconds(F.col("changed_from"), -margin))
            .withColumn("near_to", plus_seconds(F.col("changed_to"), margin))
            .withColumn("read_from", F.least("near_from", "silent_from", "was_last_at"))
            .withColumn("read_to", F.greatest("near_to", "silent_to"))
            .select(*key, "changed_from", "changed_to", "near_from", "near_to", "read_from", "read_to")
        )

    @cached_property
    def _was_last(self) -> DataFrame:
        """Each sensor's last reading, and its timeout, as published."""
        columns = F.col("last_seen_at").alias("was_last_at"), F.col("silent_after_s").alias("was_silent_after_s")
        return self.lake.read("heartbeats").filter("last_seen_at is not null").select("sensor_id", *columns)

    @cached_property
    def notable(self) -> DataFrame:
        """Readings before a silence, or that a rule finds notable, with their neighbours."""
        if self.is_whole:
            rows = outages.with_neighbours(self.readings, "sensor_id")
        else:
            slices = self.readings.filter(within(self._hours_in_ranges())).join(F.broadcast(self.ranges), "sensor_id")
            rows = outages.with_neighbours(slices.filter("event_ts between read_from and read_to"), "sensor_id", "range_id")
        known = self.sensors.select("sensor_id", "home", "silent_after_s")
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
        rows = self.ranges.select(*(F.floor(F.unix_seconds(name) / HOUR_S).alias(name) for name in borders)).distinct().collect()
        near = {hour for row in rows for hour in range(row.near_from, row.near_to + 1)}
        return sorted(near | {row.read_from for row in rows} | {row.read_to for row in rows})

    @cached_property
    def silences(self) -> DataFrame:
        """Outages that start in the ranges, and every sensor's last silence."""
        ended = self.notable if self.is_whole else self.notable.filter("event_ts <= changed_to")
        return _kept(outages.between_readings(ended).distinct().unionByName(outages.last_silences(self.sensors)))

    def _published_silences(self, rows: DataFrame) -> DataFrame:
        """The rows (of outages, or of alerts about them) that `silences` stand against."""
        if self.is_whole:
            return rows
        spans = self.ranges.select("sensor_id", "read_from", "changed_to")
        in_range = rows.join(F.broadcast(spans), "sensor_id").filter("started_at between read_from and changed_to").select(*rows.columns)
        last = (
            rows.join(F.broadcast(self._was_last), "sensor_id").filter("ended_at is null or started_at = was_last_at").select(*rows.columns)
        )
        return in_range.unionByName(last).distinct()

    @cached_property
    def outages(self) -> tuple[DataFrame, DataFrame]:
        """The outages as they should be, and the published rows they stand against."""
        published, columns = self.lake.read("outages"), ["sensor_id", "store_id", "started_at", "ended_at"]
        fresh = self.silences.select(*columns)
        if self.is_whole:
            return _kept(outage_causes.with_cause(fresh, self.expected, self.sensors)), published
        before, key = _kept(self._published_silences(published)), ["sensor_id", "started_at"]
        known = _kept(fresh.join(before.select(*key, "cause"), key, "left"))
        since = self._causes_change_since(fresh, before.select(*columns))
        if since is None:
            return known, before
        # A cause rests on what all others did meanwhile: outages that reach into the changed time are judged anew,
        # and with them counts whatever overlaps the earliest of these.
        others = published.join(before, key, "left_anti")
        everyone = known.unionByName(others)
        reaches = F.col("ended_at").isNull() | (F.col("ended_at") >= F.lit(since))
        earliest = everyone.filter(reaches).agg(F.min("started_at")).collect()[0][0]
        around = everyone.filter(F.col("ended_at").isNull() | (F.col("ended_at") >= F.lit(earliest))).select(*columns)
        judged = outage_causes.with_cause(around, self.expected, self.sensors).filter(reaches)
        fresh = judged.unionByName(known.filter(~reaches))
        return _kept(fresh), before.unionByName(others.filter(reaches))

    def _causes_change_since(self, fresh: DataFrame, before: DataFrame) -> datetime | None:
        """From when on someone was silent, or was waited for, other than was known."""
        changed = fresh.exceptAll(before).unionByName(before.exceptAll(fresh)).select("started_at")
        heard = heartbeats.last_words(self.recent).select("sensor_id", "first_seen_at")
        known = self.lake.read("heartbeats").select("sensor_id", F.col("first_seen_at").alias("was_first_at"))
        newly = heard.join(known, "sensor_id", "left").filter("was_first_at is null or first_seen_at < was_first_at")
        since = changed.unionAll(newly.select("first_seen_at")).agg(F.min("started_at")).collect()[0][0]
        return None if since is None else since.replace(tzinfo=UTC)

    def alerts(self) -> tuple[DataFrame, DataFrame]:
        """The alerts as they should be, retracted ones among them, and the published rows they stand against."""
        found = reduce(DataFrame.unionByName, (alerts.episodes(rule, self._notable_for(rule), self.silences) for rule in RULES))
        limits, suppressions = self.reference.frame("limits"), self.reference.frame("suppressions")
        current = _kept(alerts.build(found.distinct(), limits, suppressions).select("alert_id", *alerts.CONTENT))
        published = self.lake.read("alerts")
        before = _kept(reduce(DataFrame.unionByName, (self._published_alerts(published, rule) for rule in RULES)))
        gone = before.filter("status <> 'retracted'").join(current, "alert_id", "left_anti")
        return current.unionByName(alerts.retracted(gone, current, F.lit(self.clock.as_of))), before

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

    # heartbeats

    def heartbeats(self) -> DataFrame:
        return heartbeats.build(self.sensors, self.outages[0], self.clock)

    def _kept_if_any(self, rows: DataFrame) -> DataFrame:
        """Without changed readings the optimiser drops these frames altogether, but it cannot look into one that is kept."""
        return rows if self.is_quiet else _kept(rows)


def _kept(rows: DataFrame) -> DataFrame:
    """Used more than once: worked out once, and cut off from its plan. What follows is planned without what came before it,
    which is most of a small run's time. An executor that dies takes it along; then the task is tried again."""
    kept = rows.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)
    return kept.select(*(F.col(name).alias(name) for name in kept.columns))  # else it cannot be joined with what it was made from
