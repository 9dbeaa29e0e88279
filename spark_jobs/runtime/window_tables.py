"""store_minutes and store_trends: which days are worked out anew, from which readings, and against which published rows.

Spark measures the minutes. What follows is worked out store by store: on the driver where it is little, else by Spark as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import utc
from spark_jobs.runtime import staging
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.event_slices import HOUR_S, day, within
from spark_jobs.runtime.row_format import WINDOWS, RowFormat
from spark_jobs.transforms import store_minutes, store_review, store_trends, windows
from spark_jobs.transforms.event_time import final_until, minute_of
from spark_jobs.transforms.inventory import Expectation
from spark_jobs.transforms.store_review import StoreReview

DAY = timedelta(days=1)


class WindowTables:
    def __init__(self, derived: Derivation) -> None:
        self.derived, self.lake, self.settings = derived, derived.lake, derived.lake.settings
        self.format = RowFormat.of(self.lake, "store_id", WINDOWS)
        newly_expected = self._newly_expected()
        self.days = None if derived.is_whole else self._days(newly_expected)
        self.review = StoreReview(
            store_minutes.stores(final_until(derived.stays, derived.clock), derived.expected, newly_expected),
            self.settings.silent_store_hours * HOUR_S * 1_000_000,
            _numbers(self.days),
            _numbers(self._trend_days()),
            is_anew=derived.is_whole or derived.rebuilt is not None,
        )

    def stage(self) -> None:
        if self.lake.expects_many_rows:
            self._stage_by_spark()
        else:
            self._stage_on_driver()

    def _stage_on_driver(self) -> None:
        measured = self._no_minutes() if self.derived.is_quiet else self._measured().toArrow()
        minutes, trends = (self.lake.table(table, None, self._is_near(table, pc.field, None)) for table in WINDOWS.values())
        tables = measured, minutes, trends
        parts = [_by_store(table) for table in tables]
        found = [
            _changes(
                self.review, self.format, name, *(part.get(name, table.slice(0, 0)) for part, table in zip(parts, tables, strict=True))
            )
            for name in sorted(set().union(*parts))
        ]
        for kind, table in WINDOWS.items():
            changed = [rows for pair in found if len(rows := pair[kind])]
            if changed:
                staging.stage_table(self.lake, self.derived.run, table, pa.concat_tables(changed))

    def _stage_by_spark(self) -> None:
        published = self.format.published(self.lake, {table: self._is_near(table, F.col, F.lit(True)) for table in WINDOWS.values()})
        changed = (
            self._measured()
            .groupBy("store_id")
            .cogroup(published.groupBy("store_id"))
            .applyInArrow(_reviewer(self.review, self.format), self.format.ddl)
        )
        staging.add_together(self.lake, self.derived.run, "windows", changed)

    # What is looked at

    def _measured(self) -> DataFrame:
        """The minutes that changed readings lie in, from all of their readings."""
        derived = self.derived
        readings = derived.readings
        if derived.rebuilt:
            readings = readings.filter(F.col("event_date").isin(self.days))
        elif not derived.is_whole:
            readings = readings.filter(within(derived.changes.hours)).withColumn("window_start", minute_of(F.col("event_ts")))
            readings = readings.join(self._touched(), ["store_id", "window_start"], "left_semi")
        known = self.lake.frame(store_minutes.INVENTORY, store_minutes.inventory_rows(derived.inventory))
        return store_minutes.measures_per_minute(readings, known, self.settings)

    def _touched(self) -> DataFrame:
        assert self.derived.changes.rows is not None
        return F.broadcast(self.derived.changes.rows.select("store_id", minute_of(F.col("event_ts")).alias("window_start")).distinct())

    def _newly_expected(self) -> list[Expectation]:
        """Sensors unknown to the inventory that were first heard in a store, or earlier than was known: until the minute from which on
        they are counted already."""
        derived = self.derived
        first = {(heard.sensor_id, heard.store_id) for heard in derived.first_heard if heard.sensor_id not in derived.inventory}
        were = derived.were_stays if first else {}
        return [
            replace(each, until=_minute_of(were[key].first_seen_at) if key in were else None)
            for each in derived.expected
            if (key := (each.sensor_id, each.store_id)) in first
        ]

    def _days(self, newly_expected: list[Expectation]) -> list[date]:
        """Days whose minutes may change: those of changed readings and those after that silent minutes reach into, those that the clock's
        going on makes final, and all from where a store waits for someone new."""
        derived, settings = self.derived, self.settings
        if derived.rebuilt:
            first, count = derived.rebuilt.start.date(), (derived.rebuilt.end - derived.rebuilt.start).days
            return [first + DAY * i for i in range(count)]
        assert derived.run.published is not None
        newest = max(hour for hour in (*derived.changes.hours, int(derived.clock.as_of.timestamp()) // HOUR_S))
        last = day(newest) + DAY
        moved = utc(derived.run.published.as_of) - timedelta(
            seconds=settings.idle_after_s + settings.allowed_lateness_s, hours=settings.silent_store_hours
        )
        first = min([moved.date(), *(each.since.date() for each in newly_expected if each.since)])
        days = {first + DAY * i for i in range((last - first).days + 1)}
        days |= {day(hour) + DAY * i for hour in derived.changes.hours for i in range(self._silent_days + 1)}
        return sorted(days)

    @property
    def _silent_days(self) -> int:
        """On how many days after that of a reading there may be silent minutes that follow it."""
        return -(-self.settings.silent_store_hours // 24)

    def _trend_days(self) -> list[date] | None:
        """A window begins before the minutes that it holds, on the day before perhaps."""
        if self.days is None:
            return None
        early = {self.days[0]} if self.derived.rebuilt else {day(hour) for hour in self.derived.changes.hours if hour % 24 == 0}
        return sorted({*self.days, *(each - DAY for each in early)})

    def _near_days(self) -> list[date] | None:
        """The days whose published minutes have to be seen: with the last reading before, and the first minutes after."""
        if self.days is None:
            return None
        around = {self.days[0] + DAY * i for i in range(-self._silent_days, 0)} if self.derived.rebuilt else set()
        trend_days = self._trend_days() or []
        return sorted({*around, *trend_days, *(each + DAY for each in trend_days)})

    def _is_near(self, table: str, column: Callable[[str], Any], always: Any) -> Any:
        """The condition for what is published there, in the words of Arrow or of Spark: their columns, and what holds for every row."""
        days = self._near_days() if table == "store_minutes" else self._trend_days()
        return always if days is None else column("window_date").isin(days)

    def _no_minutes(self) -> pa.Table:
        kinds = {"window_start": pa.timestamp("us", "UTC"), "last_reading_at": pa.timestamp("us", "UTC"), "store_id": pa.string()}
        kinds |= dict.fromkeys(store_minutes.MEASURES, pa.float64())
        return pa.schema([(name, kinds.get(name, pa.int64())) for name in ("store_id", *store_minutes.MEASURED)]).empty_table()


def _reviewer(review: StoreReview, format: RowFormat) -> Callable[[Any, pa.Table, pa.Table], pa.Table]:
    """What Spark calls for each store, with its measured minutes and its published rows."""

    def changed(key: tuple[pa.Scalar], measured: pa.Table, published: pa.Table) -> pa.Table:
        name = key[0].as_py()
        minutes, trends = (format.of_kind(published, kind) for kind in WINDOWS)
        return format.together(_changes(review, format, name, measured, minutes, trends))

    return changed


def _changes(
    review: StoreReview, format: RowFormat, name: str, measured: pa.Table, minutes: pa.Table, trends: pa.Table
) -> dict[str, pa.Table]:
    columns = (
        windows.of_arrow(measured, store_minutes.MEASURED),
        windows.of_arrow(minutes, store_review.MINUTES),
        windows.of_arrow(trends, store_review.TRENDS),
    )
    found = {}
    for (kind, _), changed in zip(WINDOWS.items(), review.of(name, *columns), strict=True):
        rows, schema = changed.rows, format.schema_of(kind)
        rows["window_end"] = rows["window_start"] + (store_minutes.MINUTE if kind == "minute" else store_trends.LENGTH)
        rows["store_id"] = np.full(len(changed.actions), name, dtype=object)
        table = windows.to_arrow(rows, schema)
        found[kind] = table.append_column("action", pa.array(changed.actions.tolist(), pa.string()))
    return found


def _by_store(rows: pa.Table) -> dict[str, pa.Table]:
    ordered = rows.sort_by([("store_id", "ascending")]).combine_chunks()
    runs = pc.run_end_encode(ordered["store_id"].combine_chunks())
    ends = runs.run_ends.to_pylist()
    return {name: ordered.slice(start, end - start) for name, start, end in zip(runs.values.to_pylist(), [0, *ends], ends, strict=False)}


def _minute_of(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _numbers(days: list[date] | None) -> NDArray[np.int64] | None:
    return None if days is None else np.array([(each - date(1970, 1, 1)).days for each in days], np.int64)
