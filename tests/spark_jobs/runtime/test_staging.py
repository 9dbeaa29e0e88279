"""What a run stages is its last attempt's alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from include.settings import Settings
from spark_jobs.runtime import run as runs
from spark_jobs.runtime import staging
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run


def test_a_driver_that_wakes_up_stages_nothing_into_the_attempt_that_took_its_place(tmp_path: Path) -> None:
    lake = Lake(None, Settings.from_env({"COLDSTORE_LAKE": str(tmp_path)}))
    run = Run("night", "night", 7, "2025-11-08T06:00:00Z", "2025-11-08T06:00:01Z", 0, None)
    asleep = staging.start(lake, run)
    staging.stage_table(lake, asleep, "outages", _outage_of("early"))
    again = staging.start(lake, run)
    staging.stage_table(lake, again, "outages", _outage_of("again"))
    staging.stage_table(lake, asleep, "outages", _outage_of("late"))  # it woke up

    assert runs.under_way(lake) == again
    found = staging.staged_table(lake, again, "outages")
    assert found is not None and found["sensor_id"].to_pylist() == ["again"]
    staging.start(lake, again)
    assert len(list((tmp_path / "staging").iterdir())) == 1, "what was staged in vain is gone"


def _outage_of(sensor: str) -> pa.Table:
    return pa.table({"sensor_id": [sensor], "started_date": ["2025-11-08"]})
