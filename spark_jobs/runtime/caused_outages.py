"""outages with their causes: what a review of sensors staged, judged together with what is published, because a cause rests on everyone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.tables import TABLES
from spark_jobs.runtime import staging
from spark_jobs.runtime.derivation import Derivation
from spark_jobs.runtime.row_format import RowFormat
from spark_jobs.transforms import outage_causes, track
from spark_jobs.transforms.outage_causes import Spans
from spark_jobs.transforms.track import micros


class CausedOutages:
    def __init__(self, derived: Derivation, format: RowFormat) -> None:
        self.derived, self.lake, self.format = derived, derived.lake, format

    def stage(self) -> dict[str, str]:
        """The causes of outages, new and changed ones staged; those of the open ones by sensor."""
        derived = self.derived
        found = staging.staged_table(self.lake, derived.run, "outages")
        changed = self._no_outages if found is None else found
        since = self._causes_change_since(changed)
        if since is None:
            return {name: row["cause"] for name, row in derived.was_heard.items()}
        published = self.lake.table("outages") if derived.is_whole else self._published_reaching(since, changed)
        key = ["sensor_id", "started_at"]
        touched = changed.select(key)
        kept = published.join(touched, key, join_type="left anti")
        fresh = changed.filter(pc.field("action") != "delete")
        names = [column.name for column in TABLES["outages"].content]
        current = pa.concat_tables([kept.select(names), fresh.select(names)])
        is_new = np.concatenate((np.zeros(len(kept), bool), np.ones(len(fresh), bool)))
        reaches = np.ones(len(current), bool) if derived.is_whole else _ends(current, track.AFTER_ALL) >= since
        causes = np.array(outage_causes.causes(self._spans(current), self._waited_for), dtype=object)
        before = np.array(current["cause"].to_pylist(), dtype=object)
        causes = np.where(reaches | is_new, causes, before)
        differs = is_new | (causes != before)
        judged = current.set_column(names.index("cause"), "cause", pa.array(causes.tolist(), pa.string()))
        kinds = pa.array(["insert" if new else "update" for new in is_new.tolist()], pa.string())
        written = judged.append_column("action", kinds).filter(pa.array(differs))
        gone = changed.filter(pc.field("action") == "delete").select([*names, "action"])
        staging.stage_table(self.lake, derived.run, "outages", pa.concat_tables([written, gone]))
        is_open = pc.is_null(judged["ended_at"])
        still = judged.filter(is_open)
        return dict(zip(still["sensor_id"].to_pylist(), still["cause"].to_pylist(), strict=True))

    @property
    def _no_outages(self) -> pa.Table:
        return self.format.schema_of("outage").append(pa.field("action", pa.string())).empty_table()

    def _causes_change_since(self, changed: pa.Table) -> int | None:
        """From when on someone was silent, or was waited for, other than was known."""
        derived = self.derived
        if derived.is_whole:
            return track.BEFORE_ALL
        moments = changed["started_at"].cast(pa.int64()).to_pylist()
        moments += [micros(heard.first_seen_at, 0) for heard in derived.first_heard]
        if derived.rebuilt:
            moments.append(micros(derived.rebuilt.start, 0))
        # An open outage reaches as far as silence was judged: someone who was first waited for, or retired, since then counts now.
        borders = (border for each in derived.expected for border in (each.since, each.until) if border is not None)
        moments += [micros(border, 0) for border in borders if derived.was_heard_until <= border <= derived.clock.heard_until]
        return min(moments, default=None)

    def _published_reaching(self, since: int, changed: pa.Table) -> pa.Table:
        """A cause rests on what all others did meanwhile: outages that reach into the changed time are judged anew,
        and with them counts whatever overlaps the earliest of these."""
        reaching = self.lake.table("outages", None, ending_from(since))
        starts = [table["started_at"].cast(pa.int64()).to_numpy() for table in (reaching, changed)]
        earliest = min(int(start.min()) for start in starts if len(start)) if any(len(start) for start in starts) else since
        return self.lake.table("outages", None, ending_from(earliest))

    def _spans(self, outages: pa.Table) -> Spans:
        heard_until = micros(self.derived.clock.heard_until, 0)
        return Spans(
            outages["sensor_id"].to_pylist(),
            outages["store_id"].to_pylist(),
            outages["started_at"].cast(pa.int64()).to_numpy(),
            _ends(outages, heard_until),
        )

    @property
    def _waited_for(self) -> Spans:
        first_heard = {name: sensor.words.first_seen_at for name, sensor in self.derived.sensors.items() if sensor.words}
        return outage_causes.waited_for(self.derived.expected, first_heard)


def _ends(rows: pa.Table, when_open: int) -> Any:
    return pc.fill_null(rows["ended_at"].cast(pa.int64()), when_open).to_numpy()


def ending_from(moment: int) -> Any:
    return pc.field("ended_at").is_null() | (pc.field("ended_at") >= at(moment))


def at(moment: int) -> pa.Scalar:
    return pa.scalar(moment, pa.timestamp("us", "UTC"))
