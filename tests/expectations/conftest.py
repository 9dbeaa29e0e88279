"""Counts of a sound run, a judge without pages, and one with."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expectations
from expectations import Result
from include.settings import Settings

Counts = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("something wants to talk to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def counts() -> Callable[..., Counts]:
    """A sound run, with one table's measures changed: counts("runs", imbalance=1)."""

    def build(table: str = "runs", **changed: Any) -> Counts:
        keys_and_ranges = {"doubled_keys": 0, "out_of_range": 0}
        sound: Counts = {
            "runs": {"imbalance": 0, "topic_losses": 0},
            "quarantine": {"share": 0.0, "lines": 5000},
            "readings": {**keys_and_ranges, "late_share": 0.0, "age_s": 60},
            "store_minutes": {**keys_and_ranges, "unaccounted": 0, "completeness": 1.0},
            "store_trends": {**keys_and_ranges},
            "door_sessions": {**keys_and_ranges},
            "heartbeats": {**keys_and_ranges},
            "outages": {**keys_and_ranges},
            "alerts": {**keys_and_ranges},
            "sensor_stores": {**keys_and_ranges},
        }
        sound[table].update(changed)
        return sound

    return build


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., list[Result]]:
    def run(measures: Counts, run_id: str = "pass-1", settings: Settings | None = None) -> list[Result]:
        return expectations.judge(measures, settings or Settings(), run_id, tmp_path)

    return run


@pytest.fixture
def verdict(judge: Callable[..., list[Result]], monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Result]]:
    """The same judge in a hurry: without pages, and of one table only if it is named."""
    expectations.warm_up()
    monkeypatch.setattr("expectations.data_docs.build", lambda *_: None)

    def run(measures: Counts, only: str | None = None, **options: Any) -> list[Result]:
        if only is None:
            return judge(measures, **options)
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(expectations, "SUITES", [suite for suite in expectations.SUITES if suite.table == only])
            return judge({only: measures[only]}, **options)

    return run
