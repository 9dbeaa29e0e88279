"""P20 with real processes, on files and on S3: one writer at a time, a dead one's lease is over, a frozen one commits nothing when it wakes up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from include.incidents import kind_of
from include.settings import PROJECT
from include.tables import TABLES
from tests.oracle.comparison import differences, oracle_tables, tables
from tests.places.driver import Driver
from tests.places.history import history
from tests.places.places import Place, PlacedLake, as_arrived, as_of, lay

HOLDER = """
import sys, time
from include.settings import Settings
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lease import lease
try:
    with lease(Settings.from_env(), sys.argv[1]) as mine:
        print("has it", flush=True)
        for line in sys.stdin:
            try:
                mine.still_mine()
                print("commits", flush=True)
            except Stop as stop:
                print(stop, flush=True)
except Stop as stop:
    print(stop, flush=True)
"""
FROZEN_AT = (  # and in which pass over the lake
    ("before append to readings", 1),
    ("before control/run.json", 1),
    ("before append to store_minutes", 1),
    ("before append to runs", 1),
    ("before change of store_minutes", 2),
)


class Holder:
    """A process that takes the lake, and answers each question with what it would do at a commit."""

    def __init__(self, lake: PlacedLake, name: str, lease_s: int) -> None:
        env = {**os.environ, "PYTHONPATH": str(PROJECT), **lake.environment, "COLDSTORE_LEASE_S": str(lease_s)}
        command = [sys.executable, "-c", HOLDER, name]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.began = self._line()

    def asked(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def give_back(self) -> None:
        self.process.communicate("")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


Started = Callable[..., Holder]


@pytest.fixture
def holder(place: Place, request: pytest.FixtureRequest) -> Iterator[Started]:
    lake, started = PlacedLake(place, f"lease/{request.node.originalname}"), list[Holder]()

    def start(name: str, lease_s: int = 60) -> Holder:
        started.append(Holder(lake, name, lease_s))
        return started[-1]

    yield start
    for each in started:
        each.end()


def test_a_second_writer_is_refused_and_told_who_holds_the_lake(holder: Started) -> None:
    first = holder("the night pass")
    refusal = holder("a second pass").began
    assert f"written by the night pass (process {first.process.pid} on " in refusal and "its lease runs " in refusal
    assert kind_of(1, [refusal]).name == "lease-taken"
    assert first.asked() == "commits"


def test_the_lease_of_a_killed_process_is_over_at_once(holder: Started) -> None:
    holder("the night pass", lease_s=600).end()
    assert holder("a second pass").asked() == "commits"


def test_a_lease_that_was_given_back_is_free(holder: Started) -> None:
    holder("the night pass", lease_s=600).give_back()
    assert holder("a second pass").asked() == "commits"


def test_a_frozen_driver_whose_lease_was_taken_over_commits_nothing(holder: Started) -> None:
    first = holder("the night pass", lease_s=4)
    first.process.send_signal(signal.SIGSTOP)
    time.sleep(4.5)
    second = holder("a second pass")
    first.process.send_signal(signal.SIGCONT)
    assert "has lost its lease" in first.asked()
    assert second.asked() == "commits"


def test_a_frozen_driver_that_nobody_replaced_commits_nothing_either(holder: Started) -> None:
    first = holder("the night pass", lease_s=4)
    first.process.send_signal(signal.SIGSTOP)
    time.sleep(4.5)
    first.process.send_signal(signal.SIGCONT)
    assert "slept past its lease" in first.asked()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_pass_frozen_between_its_last_look_at_the_lease_and_a_write_changes_nothing_when_it_wakes_up(place: Place) -> None:
    """Between looking and writing nothing but the place itself can refuse: Delta's log, or a conditional put."""
    points = FROZEN_AT if os.environ.get("COLDSTORE_CRASHES") == "all" else FROZEN_AT[:1]
    for number, (point, nth) in enumerate(points):
        lake, told = PlacedLake(place, f"frozen-{number}"), history()
        for earlier in range(nth - 1):
            lay(lake, told, earlier, nth)
            assert lake.passes(as_of(told)).startswith("published")
        lay(lake, told, nth - 1, nth)
        sleeper = place.new_driver()
        lake.begins(sleeper, as_of(told), freeze_at=point, lease_s=8)
        _wait_until_frozen(sleeper)
        time.sleep(8.5)
        assert lake.passes(as_of(told)).startswith("published")
        expected = oracle_tables(as_arrived(told, lake))
        versions = {table: lake.version(table) for table in TABLES}
        sleeper.signal(signal.SIGCONT)
        ended = sleeper.end()
        sleeper.kill()
        assert ended is not None and ended.startswith("failed") and kind_of(1, [ended]).name == "lease-lost", (point, ended)
        assert {table: lake.version(table) for table in versions} == versions, point
        assert not differences(tables(lake), expected), point


def _wait_until_frozen(driver: Driver) -> None:
    deadline = time.monotonic() + 300
    while driver.state() != "T":
        assert not driver.has_answered(within_s=0.1), f"it ended before it came to that point: {driver.end()}"
        assert time.monotonic() < deadline, driver.said()
