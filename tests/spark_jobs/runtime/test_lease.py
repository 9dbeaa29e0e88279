"""P20 with real processes: one writer at a time, a dead one's lease is over, a frozen one commits nothing when it wakes up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from include.settings import PROJECT, Settings
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lease import lease

HOLDER = """
import sys, time
from include.settings import Settings
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lease import lease
with lease(Settings.from_env(), "the night pass") as mine:
    print("has it", flush=True)
    for line in sys.stdin:
        try:
            mine.still_mine()
            print("commits", flush=True)
        except Stop as stop:
            print(stop, flush=True)
"""


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    """Another driver that has taken the lake, and answers each line with what it would do at a commit."""
    started = []

    def start(lease_s: int) -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": str(PROJECT), "COLDSTORE_LAKE": str(tmp_path), "COLDSTORE_LEASE_S": str(lease_s)}
        command = [sys.executable, "-c", HOLDER]
        process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "has it\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def asked(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("?\n")
    process.stdin.flush()
    return process.stdout.readline()


def settings(tmp_path: Path, lease_s: int = 60) -> Settings:
    return Settings.from_env({"COLDSTORE_LAKE": str(tmp_path), "COLDSTORE_LEASE_S": str(lease_s)})


def test_a_second_writer_is_refused_and_told_who_holds_the_lake(driver: Callable[[int], subprocess.Popen[str]], tmp_path: Path) -> None:
    first = driver(60)
    refusal = rf"written by the night pass \(process {first.pid} on .*its lease runs [0-9]+ s more"
    with pytest.raises(Stop, match=refusal), lease(settings(tmp_path), "a second pass"):
        pass
    assert asked(first) == "commits\n"


def test_the_lease_of_a_killed_process_is_over_at_once(driver: Callable[[int], subprocess.Popen[str]], tmp_path: Path) -> None:
    first = driver(600)
    first.kill()
    first.wait()
    with lease(settings(tmp_path), "a second pass") as mine:
        mine.still_mine()


def test_a_lease_that_was_given_back_is_free(driver: Callable[[int], subprocess.Popen[str]], tmp_path: Path) -> None:
    first = driver(600)
    first.communicate("")
    with lease(settings(tmp_path), "a second pass") as mine:
        mine.still_mine()


def test_a_frozen_driver_whose_lease_was_taken_over_commits_nothing(driver: Callable[[int], subprocess.Popen[str]], tmp_path: Path) -> None:
    first = driver(2)
    first.send_signal(signal.SIGSTOP)
    time.sleep(2.5)
    with lease(settings(tmp_path), "a second pass") as mine:
        first.send_signal(signal.SIGCONT)
        assert "has lost its lease" in asked(first)
        mine.still_mine()


def test_a_frozen_driver_that_nobody_replaced_commits_nothing_either(
    driver: Callable[[int], subprocess.Popen[str]], tmp_path: Path
) -> None:
    first = driver(2)
    first.send_signal(signal.SIGSTOP)
    time.sleep(2.5)
    first.send_signal(signal.SIGCONT)
    assert "slept past its lease" in asked(first)
