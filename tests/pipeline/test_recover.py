"""A damaged checkpoint is told with the way out, and `make recover` makes it anew: no line is lost, none doubled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.incidents import kind_of
from spark_jobs.readers import landing_files
from spark_jobs.recover_checkpoint import recover_checkpoint
from spark_jobs.runtime import fault_points
from spark_jobs.runtime.checkpoint import Checkpoint
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake
from tests.lakes import TestLake
from tests.oracle.comparison import a_lake, deliver, differences, oracle_tables, tables
from tests.oracle.histories import iso
from tests.places.history import history

CHECKPOINT = "checkpoints/ingest_readings"
DAMAGED: dict[str, Callable[[Path], Path]] = {
    "its metadata": lambda folder: folder / "metadata",
    "the log of what was begun": lambda folder: folder / "offsets" / "0",
    "the log of what was committed": lambda folder: folder / "commits" / "0",
    "the log of files": lambda folder: folder / "sources" / "0" / "0",
}


class Killed(Exception):
    """In place of a SIGKILL, which the crash tests send to drivers of their own."""


def cut(path: Path) -> None:
    """Its last half is gone, as after a power cut; so is what would tell that."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> TestLake:
    return a_lake(tmp_path / "lake", spark, history())


@pytest.mark.slow
@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_checkpoint_is_named_and_made_anew(lake: TestLake, damaged: Callable[[Path], Path]) -> None:
    told = history()
    deliver(lake, told.files()[1::2])
    lake.passes(as_of=iso(told.as_of_ms))
    deliver(lake, told.files()[0::2])
    cut(damaged(lake.place / CHECKPOINT))
    with pytest.raises(Stop, match=r"checkpoints/ingest_readings/\S+ is damaged.*make recover") as stopped:
        lake.passes(as_of=iso(told.as_of_ms))
    assert kind_of(1, [str(stopped.value)]).name == "checkpoint"
    recover_checkpoint(Lake(lake.spark, lake.settings))
    lake.passes(as_of=iso(told.as_of_ms))
    assert not differences(tables(lake), oracle_tables(told))


def test_a_stream_that_breaks_off_before_it_has_a_checkpoint_does_not_blame_it(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.refuse_if_damaged(RuntimeError("something else"))
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n")
    with pytest.raises(Stop, match="metadata is damaged"):
        checkpoint.refuse_if_damaged(RuntimeError("something else"))


Dies = Callable[..., None]


@pytest.fixture
def dies(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> Dies:
    """A pass that ends at that point, as if it had been killed there."""

    def dies_at(point: str, **settings: float) -> None:
        def passed(each: str) -> None:
            if each == point:
                raise Killed("Killed")

        with monkeypatch.context() as patched:
            patched.setattr(fault_points, "passed", passed)
            with pytest.raises(Exception, match="Killed"):
                lake.passes(as_of=iso(history().as_of_ms), **settings)

    return dies_at


@pytest.mark.parametrize("point", ["after append to raw_files", "after append to readings", "after append to batches"])
def test_a_batch_that_was_half_done_is_finished_under_its_own_name(lake: TestLake, point: str, dies: Dies) -> None:
    told = history()
    deliver(lake, told.files())
    dies(point)
    recover_checkpoint(Lake(lake.spark, lake.settings))
    lake.passes(as_of=iso(told.as_of_ms))
    assert not differences(tables(lake), oracle_tables(told))


def test_a_run_that_dies_while_it_is_being_held_books_its_lines_once(lake: TestLake, dies: Dies) -> None:
    told = history()
    deliver(lake, told.files())
    dies("after append to run_stores", quarantine_critical=0.0, quarantine_critical_lines=1)
    lake.passes(as_of=iso(told.as_of_ms))
    assert [row["status"] for row in lake.rows("runs", "number")] == ["held", "published"]
    assert not differences(tables(lake), oracle_tables(told))


def test_a_file_that_is_gone_is_wanted_back_only_if_a_part_of_it_was_taken(
    lake: TestLake, dies: Dies, capsys: pytest.CaptureFixture[str]
) -> None:
    told = history()
    deliver(lake, told.files())
    missed = lake.place / "landing" / f"{told.files()[0][0]}.jsonl"
    dies("after control/begun.json")
    away = missed.rename(lake.place / "away")
    dies("after append to raw_files")
    assert f"{missed} is gone, and nothing of it was taken." in capsys.readouterr().out
    other = lake.place / "landing" / f"{told.files()[1][0]}.jsonl"
    other_away = other.rename(lake.place / "other")
    with pytest.raises(Stop, match=f"{other} is gone, and a run that died had taken a part of it: put it back"):
        lake.passes(as_of=iso(told.as_of_ms))
    other_away.rename(other)
    away.rename(missed)
    lake.passes(as_of=iso(told.as_of_ms))
    assert not differences(tables(lake), oracle_tables(told))


def test_a_new_file_that_spark_does_not_show_is_taken_all_the_same(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that it saw when it was empty, or that was gone for a moment."""
    told, named = history(), landing_files.named
    deliver(lake, told.files())
    monkeypatch.setattr(landing_files, "named", lambda *given: named(*given)[2:])
    lake.passes(as_of=iso(told.as_of_ms))
    assert not differences(tables(lake), oracle_tables(told))
