"""A lake with a history that commands can tell: two published runs, one that is held, an alert that somebody has seen to."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from published.acknowledging import acknowledge
from spark_jobs.runtime.errors import Held
from tests.lakes import TestLake, a_reading, every

GARBAGE = [b"garbage"] * 200


@pytest.fixture(scope="session")
def told_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TestLake:
    """Until 10:10 two sensors; then sensor-1 is too warm, sensor-2 silent; then 200 lines that nobody can read."""
    lake = TestLake(tmp_path_factory.mktemp("told") / "lake", spark)
    lake.knows("limits", "store_id,valid_from,valid_to,low_c,high_c", "store-1,,,0,5")
    lake.receives(*every(60, "10:00", "10:10"), *every(60, "10:00", "10:10", "sensor-2"), arrived="10:10")
    lake.passes(as_of="10:12")
    lake.receives(*every(60, "10:10", "10:30", temperature=8.25), a_reading("sensor-3", "10:29", "store-2"), arrived="10:30")
    lake.passes(as_of="10:30")
    alert = lake.one("alerts", rule="too_warm", status="open")
    acknowledge(lake.settings.lake, alert["alert_id"], "Ada", "the door was open")
    lake.receives(*GARBAGE, arrived="10:40")
    with pytest.raises(Held):
        lake.passes(as_of="10:40")
    return lake
