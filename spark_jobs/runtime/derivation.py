"""What a run derives, and from what: the readings at one version, what changed in them, who has spoken, who is expected.

What there is one of per sensor or store is worked out here, on the driver; what grows with the readings, by Spark: `window_tables`
and `episode_tables`. The first run, or a rebuild, gives the same functions everything; that is why they agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from pyspark.sql import DataFrame

from include.settings import Clock, utc
from spark_jobs.runtime.changes import Changes
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.reference import Reference
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.small_tables import Row
from spark_jobs.transforms import heartbeats, inventory, sensor_stores
from spark_jobs.transforms.heartbeats import Sensor, Words
from spark_jobs.transforms.inventory import Expectation, Inventory
from spark_jobs.transforms.sensor_stores import Heard, Stay


@dataclass(frozen=True)
class Days:
    """Whole days, UTC, that are made anew: from the first until before the second."""

    start: datetime
    end: datetime
    is_told: bool = False  # its alert events go out as if they were new


@dataclass(frozen=True)
class Derivation:
    lake: Lake
    run: Run
    changes: Changes
    reference: Reference
    rebuilt: Days | None = None  # None: only what changed

    @cached_property
    def clock(self) -> Clock:
        return self.run.clock(self.lake.settings)

    @cached_property
    def inventory(self) -> Inventory:
        return inventory.known_sensors(self.reference.rows["sensors"], self.lake.settings)

    @property
    def is_whole(self) -> bool:
        """Everything is worked out, not only what changed."""
        return self.changes.rows is None or self.run.published is None

    @property
    def is_quiet(self) -> bool:
        """No reading came: only the clock went on."""
        return not self.is_whole and not self.changes.hours and self.rebuilt is None

    @cached_property
    def readings(self) -> DataFrame:
        return self.lake.read_at("readings", self.changes.version)

    @cached_property
    def was_heard(self) -> dict[str, Row]:
        """Each sensor that had spoken, as published."""
        return {row["sensor_id"]: row for row in self.lake.rows("heartbeats") if row["last_seen_at"] is not None}

    @cached_property
    def were_stays(self) -> dict[tuple[str, str], Stay]:
        rows = self.lake.rows("sensor_stores")
        return {(row["sensor_id"], row["store_id"]): Stay(row["first_seen_at"], row["last_seen_at"]) for row in rows}

    @cached_property
    def stays(self) -> dict[tuple[str, str], Stay]:
        return sensor_stores.merged({} if self.is_whole else self.were_stays, self.changes.heard)

    @cached_property
    def first_heard(self) -> list[Heard]:
        """Who was first heard, or earlier than was known: where the inventory does not know the sensor, in that store, which waits for
        it from then on; else anywhere."""
        return [] if self.is_whole else [heard for heard in self.changes.heard if self._is_first(heard)]

    def _is_first(self, heard: Heard) -> bool:
        if heard.sensor_id in self.inventory:
            row = self.was_heard.get(heard.sensor_id)
            return row is None or bool(heard.first_seen_at < row["first_seen_at"])
        stay = self.were_stays.get((heard.sensor_id, heard.store_id))
        return stay is None or heard.first_seen_at < stay.first_seen_at

    @cached_property
    def sensors(self) -> dict[str, Sensor]:
        before: dict[str, Words] = {} if self.is_whole else {name: heartbeats.words_of(row) for name, row in self.was_heard.items()}
        return heartbeats.sensors(heartbeats.merged(before, self.changes.heard), self.inventory, self.clock)

    @cached_property
    def expected(self) -> list[Expectation]:
        return inventory.expectations(self.inventory, self.stays, self.lake.settings)

    @property
    def was_heard_until(self) -> datetime:
        """How far silence was judged by the published tables."""
        assert self.run.published is not None
        return utc(self.run.published.as_of) - timedelta(seconds=self.lake.settings.watermark_delay_s)

    def heartbeats(self, causes: dict[str, str]) -> list[Row]:
        """All rows; `causes` are those of the open outages."""
        return [heartbeats.row(sensor, causes.get(name), self.clock) for name, sensor in sorted(self.sensors.items())]

    def sensor_stores(self) -> list[Row]:
        return [{"sensor_id": sensor, "store_id": store, **stay.__dict__} for (sensor, store), stay in sorted(self.stays.items())]
