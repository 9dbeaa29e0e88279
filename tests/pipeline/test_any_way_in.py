"""P4, P12: the same lines give the same tables, whatever the order and the number of passes. (What is killed in between: tests/places.)"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import iso
from simulator import Options, simulate
from tests.lakes import TestLake
from tests.spark_jobs.readers.test_decoder import mutated

TABLES = ("readings", "store_minutes", "store_trends", "door_sessions", "heartbeats", "outages", "alerts")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of four stores with every fault, one of them cut off for an hour."""
    place = tmp_path_factory.mktemp("history")
    options = Options(
        lake=place, stores=4, sensors=4, hours=2, cadence=60, seed=11, truth=place / "truth.jsonl", cut_off_hours=1.0, input_stop_minutes=10,
        duplicates=0.05, conflicts=0.05, late=0.05, out_of_order=0.05, bad=0.05, wrong_clock=0.05, silent=0.2,
    )  # fmt: skip
    (place / "as_of").write_text(iso(simulate(options).as_of))
    return place


def a_lake_with(history: Path, place: Path, spark: SparkSession) -> TestLake:
    shutil.copytree(history / "reference", place / "reference")
    return TestLake(place, spark, quarantine_critical=1.0)


def files(history: Path) -> list[Path]:
    return sorted((path for path in (history / "landing").rglob("*") if path.is_file()), key=lambda path: path.stat().st_mtime_ns)


def deliver(lake: TestLake, history: Path, some: list[Path]) -> None:
    for path in some:
        target = lake.place / "landing" / path.relative_to(history / "landing")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


@pytest.fixture(scope="module")
def at_once(history: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TestLake:
    lake = a_lake_with(history, tmp_path_factory.mktemp("once") / "lake", spark)
    deliver(lake, history, files(history))
    lake.passes(as_of=(history / "as_of").read_text())
    return lake


def test_every_line_is_accounted_for_with_its_reasons(at_once: TestLake, history: Path) -> None:
    truth = [json.loads(line) for line in (history / "truth.jsonl").read_text().splitlines()]
    expected = {(line["file"], line["offset"]): sorted(line["reasons"]) for line in truth if line["reasons"]}
    landing = f"{at_once.place}/landing/"
    found = {(row["source"].removeprefix(landing), row["position"]): sorted(row["reasons"]) for row in at_once.rows("quarantine")}
    assert found == expected
    kinds = Counter("bad" if line["reasons"] else line["kind"] if line["kind"] in ("blank", "duplicate") else "good" for line in truth)
    (run,) = at_once.rows("runs")
    assert (run["lines_read"], run["quarantined"], run["blank"]) == (len(truth), kinds["bad"], kinds["blank"])
    assert run["lines_read"] == run["readings_new"] + run["duplicates"] + run["quarantined"] + run["blank"]


@pytest.mark.slow
def test_six_passes_in_another_order_give_the_same_tables_as_one(
    at_once: TestLake, history: Path, spark: SparkSession, tmp_path: Path
) -> None:
    lake, some = a_lake_with(history, tmp_path / "lake", spark), files(history)
    random.Random(5).shuffle(some)
    size = -(-len(some) // 6)
    for start in range(0, len(some), size):
        deliver(lake, history, some[start : start + size])
        lake.passes(as_of="2025-11-08T06:00:00Z" if start + size < len(some) else (history / "as_of").read_text())
    assert lake.tables(*TABLES) == at_once.tables(*TABLES)
    assert lake.books() == at_once.books()


@pytest.mark.slow
def test_two_hundred_thousand_fuzzed_lines_never_fail_a_run(spark: SparkSession, tmp_path: Path) -> None:
    lake = TestLake(tmp_path / "lake", spark, quarantine_critical=1.0)
    lines = mutated(200_000, seed=42)
    for part in range(4):
        lake.receives(*lines[part * 50_000 : (part + 1) * 50_000], arrived="15:33:20")
    lake.passes(as_of="15:40")
    books = lake.books()
    assert books["lines_read"] == 200_000
    assert books["readings_new"] == len(lake.rows("readings")) and books["quarantined"] == len(lake.rows("quarantine"))
    assert books["lines_read"] == books["readings_new"] + books["duplicates"] + books["quarantined"] + books["blank"]
