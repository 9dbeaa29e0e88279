"""outages, door_sessions, alerts and alert_events: which sensors are looked at again, by Spark, one sensor at a time.

The driver says which stretches of which sensors (from what changed and what is published there), Spark brings each sensor its readings and
its published rows, and `review` says what changes. Causes of outages depend on all sensors together: see `caused_outages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.rules import RULES, DoorLeftOpen
from spark_jobs.runtime import staging
from spark_jobs.runtime.caused_outages import at, ending_from
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.event_slices import HOUR_S, within
from spark_jobs.runtime.row_format import EPISODES, RowFormat
from spark_jobs.transforms import stretches, track
from spark_jobs.transforms.alerts import Desk
from spark_jobs.transforms.limits import Limits
from spark_jobs.transforms.review import Review, TooShort
from spark_jobs.transforms.stretches import EVERYTHING, Known, Sensed, Span, Stretch
from spark_jobs.transforms.suppressions import Suppressions
from spark_jobs.transforms.track import SECOND, Track, micros

PUBLISHED = ("outage", "session", "alert")  # what a review stands against
TOO_SHORT, DOUBLED = "too short", "doubled"
HOUR = HOUR_S * SECOND


class EpisodeTables:
    def __init__(self, derived: Derivation) -> None:
        self.derived, self.lake, self.settings = derived, derived.lake, derived.lake.settings
        self.format = RowFormat.of(self.lake, "sensor_id", EPISODES)
        self.doubled_keys = 0

    # What is looked at again

    def stage(self) -> None:
        derived = self.derived
        if derived.is_whole:
            self._review(
                [self._sensed(name, (EVERYTHING,)) for name in self._spoken],
                self.format.published(self.lake, dict.fromkeys((EPISODES[kind] for kind in PUBLISHED), F.lit(True))),
            )
            return
        if not self._changed:
            return
        near, found = stretches.settled(self._changed_near, self._changed_spoke, self._published_within, self._stretches)
        sensors = [self._sensed(name, stretch) for name, stretch in found.items()]
        if too_short := self._review(sensors, near):
            # What could not be told from a stretch is told from the whole sensor.
            again = [replace(self._sensed(name, (EVERYTHING,)), only=self._near(name)) for name in too_short]
            self._review(again, self._published_of(too_short))

    @cached_property
    def _spoken(self) -> list[str]:
        return [name for name, sensor in self.derived.sensors.items() if sensor.words]

    def _sensed(self, name: str, found: tuple[Stretch, ...]) -> Sensed:
        sensor = self.derived.sensors[name]
        words = sensor.words
        assert words is not None
        return Sensed(
            name,
            sensor.known.store_id if sensor.known else None,
            self._stores[name],
            micros(words.first_seen_at, 0),
            micros(words.last_seen_at, 0),
            sensor.silent_after_s * SECOND,
            sensor.is_silent,
            _micros_or_none(sensor.silence_ended_at),
            found,
            may_resume=self.derived.rebuilt is None and not self.derived.is_whole,
            only=self._rebuilt if self.derived.rebuilt else None,
        )

    @cached_property
    def _stores(self) -> dict[str, tuple[str, ...]]:
        stores: dict[str, tuple[str, ...]] = {}
        for sensor, store in self.derived.stays:
            stores[sensor] = (*stores.get(sensor, ()), store)
        return stores

    @cached_property
    def _changed(self) -> dict[str, list[tuple[int, int]]]:
        """When something changed, by sensor: a reading, or what the clock's going on makes of its last one."""
        derived, found = self.derived, dict[str, list[tuple[int, int]]]()
        if derived.rebuilt:
            return {name: [self._rebuilt] for name in self._spoken if self._spoke_then(name)}
        for name, first, last in derived.changes.spans:
            found.setdefault(name, []).append((micros(first, 0), micros(last, 0)))
        for name in self._moved_by_the_clock():
            words = derived.sensors[name].words
            assert words is not None
            after = micros(words.last_seen_at, 0) + 1
            found.setdefault(name, []).append((after, after))
        return found

    @cached_property
    def _rebuilt(self) -> Span:
        days = self.derived.rebuilt
        assert days is not None
        return micros(days.start, 0), micros(days.end, 0) - 1

    def _near(self, name: str) -> Span:
        """The past is not rewritten behind anyone's back: of a sensor that is looked at as a whole, only what is near the change."""
        return self._rebuilt if self.derived.rebuilt else self._span_near(name)

    def _span_near(self, name: str) -> Span:
        spans, margin = self._changed[name], self._margin(name)
        return min(start for start, _ in spans) - margin, max(end for _, end in spans) + margin

    def _spoke_then(self, name: str) -> bool:
        words = self.derived.sensors[name].words
        assert words is not None
        return micros(words.first_seen_at, 0) <= self._rebuilt[1]  # its last silence may reach into these days

    def _moved_by_the_clock(self) -> set[str]:
        derived = self.derived
        moved = set()
        for name, was in derived.was_heard.items():
            sensor = derived.sensors[name]
            now = sensor.is_silent, sensor.silence_ended_at if sensor.is_silent else None, sensor.store_id
            if now != (was["is_silent"], was["silence_ended_at"], was["store_id"] if was["is_silent"] else sensor.store_id):
                moved.add(name)
        doors = {rule.name: rule for rule in RULES if isinstance(rule.when, DoorLeftOpen)}
        for alert in self.lake.table("alerts", ["rule", "sensor_id", "store_id", "evidence"], pc.field("ended_at").is_null()).to_pylist():
            kind = doors[alert["rule"]].at(alert["store_id"]) if alert["rule"] in doors else None
            if isinstance(kind, DoorLeftOpen):
                last = alert["evidence"]["last"]["event_ts"]
                if derived.clock.heard_until - last > timedelta(seconds=kind.heard_within_s):
                    moved.add(alert["sensor_id"])
        return moved

    def _margin(self, name: str) -> int:
        was = self.derived.was_heard.get(name)
        silent_after_s = max(self.derived.sensors[name].silent_after_s, was["silent_after_s"] if was else 0)
        return stretches.margin(RULES, silent_after_s * SECOND, self.settings.door_gap_s * SECOND)

    def _stretches(self, published: pa.Table) -> dict[str, tuple[Stretch, ...]]:
        known = self._by_sensor(published)
        found = {}
        for name, spans in self._changed.items():
            was = self.derived.was_heard.get(name)
            spoke = (micros(was["first_seen_at"], 0), micros(was["last_seen_at"], 0)) if was else None
            may_resume, rows, margin = self.derived.rebuilt is None, Known.of(known.get(name, ()), RULES), self._margin(name)
            found[name] = stretches.of_sensor(spans, rows, margin, spoke, may_resume)
        return found

    def _by_sensor(self, published: pa.Table) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for row in self.format.plain(published):
            found.setdefault(row["sensor_id"], []).append(row)
        return found

    # What is published there

    @property
    def _changed_near(self) -> Span:
        near = [self._span_near(name) for name in self._changed]
        return min(start for start, _ in near), max(end for _, end in near)

    @property
    def _changed_spoke(self) -> Span:
        """From the first word of these sensors to the last."""
        sensed = [self._sensed(name, ()) for name in self._changed]
        return min(sensor.first_at for sensor in sensed), max(sensor.last_at for sensor in sensed)

    def _published_within(self, span: Span) -> pa.Table:
        return self._published_of(self._changed, ending_from(span[0]) & (pc.field("started_at") <= at(span[1])))

    def _published_of(self, names: Iterable[str], condition: Any = None) -> pa.Table:
        is_wanted = pc.field("sensor_id").isin(list(names))
        return self.format.together({kind: self.lake.table(EPISODES[kind], None, condition).filter(is_wanted) for kind in PUBLISHED})

    # The review itself

    def _review(self, sensors: list[Sensed], published: pa.Table | DataFrame) -> list[str]:
        """Stages what changes; the sensors whose stretches were too short are given back."""
        known = published if isinstance(published, DataFrame) else self.lake.spark.createDataFrame(published, self.format.ddl)
        changed = (
            self._readings_of(sensors)
            .groupBy("sensor_id")
            .cogroup(known.groupBy("sensor_id"))
            .applyInArrow(_reviewer(self.format, self._review_of_one, {sensor.sensor_id: sensor for sensor in sensors}), self.format.ddl)
        )
        notes = staging.add_together(self.lake, self.derived.run, "episodes", changed)
        self.doubled_keys += sum(note == DOUBLED for _, note in notes)
        return [name for name, note in notes if note == TOO_SHORT]

    @cached_property
    def _review_of_one(self) -> Review:
        derived, rows = self.derived, self.derived.reference.rows
        desk = Desk(
            Limits.of_rows(rows["limits"]),
            Suppressions.of_rows(rows["suppressions"]),
            micros(derived.clock.as_of, 0),
            derived.run.run_id,
            derived.run.number,
            is_backfill=derived.rebuilt is not None and not derived.rebuilt.is_told,
        )
        return Review(RULES, desk, micros(derived.clock.heard_until, 0), self.settings.door_gap_s * SECOND)

    def _readings_of(self, sensors: list[Sensed]) -> DataFrame:
        readings = self.derived.readings.select(*track.COLUMNS, "event_date")
        if any(stretch is EVERYTHING for sensor in sensors for stretch in sensor.stretches):
            wanted = readings
        else:
            wanted = readings.filter(within(_hours(sensors)))
        if len(sensors) < len(self._spoken):
            names = self.lake.frame("sensor_id string", [(sensor.sensor_id,) for sensor in sensors])
            wanted = wanted.join(F.broadcast(names), "sensor_id", "left_semi")
        return wanted.select(*track.COLUMNS)


def _reviewer(format: RowFormat, review: Review, sensors: dict[str, Sensed]) -> Callable[[Any, pa.Table, pa.Table], pa.Table]:
    """What Spark calls for each sensor, with its readings and its published rows."""

    def changed(key: tuple[pa.Scalar], readings: pa.Table, published: pa.Table) -> pa.Table:
        name = key[0].as_py()
        if name not in sensors:
            return format.table([])
        found = Track.of(readings)
        try:
            rows = list(review.of(sensors[name], found, Known.of(format.plain(published), review.rules)))
        except TooShort:
            rows = [{"note": TOO_SHORT}]
        if bool(np.any(found.times[1:] == found.times[:-1])):
            rows.append({"note": DOUBLED})
        return format.table([{"sensor_id": name, **row} for row in rows])

    return changed


def _hours(sensors: list[Sensed]) -> list[int]:
    """Where these sensors may have said something: what lies between the spans of a stretch is a silence."""
    hours: set[int] = set()
    for sensor in sensors:
        for start, end in (span for stretch in sensor.stretches for span in stretch.spans):
            hours.update(range(max(start, sensor.first_at) // HOUR, min(end, sensor.last_at) // HOUR + 1))
    return sorted(hours)


def _micros_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment, 0)
