"""P12 on readings of real sensors: in one pass or in three, every table is the oracle's, value by value.

COLDSTORE_REAL_DATA names the folder of the recordings, which are no part of the project; how many lines of each: COLDSTORE_REAL_DATA_LINES.
"""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.runtime.errors import Held
from tests.oracle.comparison import BUILT, a_lake, deliver, differences, oracle_tables, tables
from tests.oracle.histories import History, iso
from tests.oracle.real_data import RECORDINGS, Recording, history

# Read here, because the shared Spark session takes all COLDSTORE_ variables out of the environment.
FOLDER = os.environ.get("COLDSTORE_REAL_DATA", "")
ENOUGH_LINES = 20_000
LINES = int(os.environ.get("COLDSTORE_REAL_DATA_LINES") or ENOUGH_LINES)
MOMENTS = ("sudden_drop", "door_then_rise")
LASTING = ("too_warm", "too_cold", "door_left_open", "missed_heartbeat", "low_battery")
READ_A_PASS_LATER = 0.1
HELD_ABOVE = 0.20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (FOLDER and Path(FOLDER).is_dir()),
        reason=f"COLDSTORE_REAL_DATA={FOLDER!r} is not a folder with recordings ({', '.join(one.name for one in RECORDINGS)})",
    ),
]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_real_readings_give_the_oracles_tables(spark: SparkSession, tmp_path: Path, recording: Recording) -> None:
    recorded, expected = recorded_and_expected(recording)
    in_one = a_lake(tmp_path / "one", spark, recorded)
    deliver(in_one, recorded.files())
    in_one.passes(as_of=iso(recorded.as_of_ms))
    assert not (wrong := differences(tables(in_one), expected)), wrong

    in_three, passes = a_lake(tmp_path / "three", spark, recorded), three_passes(recorded.files(), random.Random(recording.name))
    for files in passes:
        deliver(in_three, files)
        in_three.passes(as_of=iso(recorded.as_of_ms if files is passes[-1] else max(arrived_ms for arrived_ms, _ in files)))
    assert not (wrong := differences(tables(in_three), expected)), wrong


def test_fahrenheit_is_held_and_shows_nothing_until_it_is_allowed(spark: SparkSession, tmp_path: Path) -> None:
    (nab,) = (recording for recording in RECORDINGS if recording.name == "nab")
    recorded, expected = recorded_and_expected(nab)
    lake = a_lake(tmp_path / "lake", spark, recorded)
    deliver(lake, recorded.files())
    with pytest.raises(Held):
        lake.passes(as_of=iso(recorded.as_of_ms), quarantine_critical=HELD_ABOVE)
    assert {name: lake.rows(name) for name in BUILT} == {name: [] for name in BUILT}

    lake.passes(as_of=iso(recorded.as_of_ms))
    assert not (wrong := differences(tables(lake), expected)), wrong
    assert [row["status"] for row in lake.rows("runs", "run_id")] == ["held", "published"]


@pytest.mark.skipif(LINES < ENOUGH_LINES, reason=f"COLDSTORE_REAL_DATA_LINES={LINES} is too few for every rule")
def test_between_them_the_recordings_raise_every_rule_open_resolved_and_suppressed() -> None:
    raised = [row for recording in RECORDINGS for row in recorded_and_expected(recording)[1]["alerts"]]
    ended, going_on = {(rule, "resolved") for rule in (*MOMENTS, *LASTING)}, {(rule, "open") for rule in LASTING}
    assert {(row["rule"], row["status"]) for row in raised} == ended | going_on
    assert {row["suppressed_by"] for row in raised} == {None, "maintenance", "restocking"}


@cache
def recorded_and_expected(recording: Recording) -> tuple[History, dict[str, Any]]:
    if not (Path(FOLDER) / recording.name).is_dir():
        pytest.skip(f"COLDSTORE_REAL_DATA={FOLDER!r} has no {recording.name}")
    recorded = history(Path(FOLDER), recording, LINES)
    return recorded, oracle_tables(recorded)


def three_passes(files: list[tuple[int, list[bytes]]], chance: random.Random) -> list[list[tuple[int, list[bytes]]]]:
    """A third of the arrivals each, but some files are read a pass later than they arrived."""
    passes: list[list[tuple[int, list[bytes]]]] = [[], [], []]
    for number, file in enumerate(files):
        passes[min(3 * number // len(files) + (chance.random() < READ_A_PASS_LATER), 2)].append(file)
    return [each for each in passes if each]
