"""The benchmark's two instruments: the rival makes the right tables, and the measuring sees what a process takes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from benchmark import agreement, rival
from benchmark.measure import cost_of
from simulator import Options, simulate
from simulator.timestamps import DAY, MINUTE, SECOND, from_iso, reading_time, to_iso

Rows = list[dict[str, Any]]
EVERYWHERE = 0.02


class Reading(NamedTuple):
    sensor_id: str
    event_ms: int
    arrived_ms: int
    milli: int
    store_id: str
    door_open: bool | None
    battery_pct: float | None
    event_id: str | None

    @property
    def says(self) -> tuple[Any, ...]:
        return self[3:7]

    @property
    def precedence(self) -> tuple[Any, ...]:
        return (self.arrived_ms, *((value is not None, value) for value in self[3:]))

    @property
    def minute_ms(self) -> int:
        return self.event_ms // MINUTE * MINUTE


class World:
    """A lake of faulty readings, what must become of each line, and the rival's tables."""

    def __init__(self, folder: Path) -> None:
        self.lake, self.tables = folder / "lake", folder / "tables"
        truth = folder / "truth.jsonl"
        faults: dict[str, Any] = dict.fromkeys(("duplicates", "conflicts", "late", "wrong_clock", "bad", "odd", "blank"), EVERYWHERE)
        options = Options(
            self.lake, truth=truth, stores=4, sensors=4, hours=5, files_by="all", file_minutes=30, formats=("plain",), silent=0.3, **faults
        )
        self.as_of_ms = simulate(options).as_of_ms
        facts = [json.loads(fact) for fact in truth.read_text().splitlines()]
        texts = {path: (self.lake / "landing" / path).read_bytes() for path in {fact["file"] for fact in facts}}
        self.reasons = Counter(tuple(fact["reasons"]) for fact in facts if fact["reasons"] not in ([], ["conflicting_duplicate"]))
        self.lines = [_reading(fact, texts[fact["file"]]) for fact in facts if _is_reading(fact)] + self._by_hand()
        self.counts = rival.run(self.lake / "landing", self.lake / "reference", self.tables, to_iso(self.as_of_ms))

    def _by_hand(self) -> list[Reading]:
        """Exactly at a bound and just beyond it: 5 degrees, 10 minutes, 2 minutes of silence."""
        start, arrived_ms = self.as_of_ms - 60 * MINUTE, self.as_of_ms - MINUTE
        steps = [
            (0, 8200),
            (60, 3200),
            (120, 8200),
            (180, 3199),
            (300, 9000),
            (900, 3000),
            (1500, 9000),
            (2100.001, 3000),
            (2220.002, -4000),
        ]
        readings = [Reading("probe", start + round(s * SECOND), arrived_ms, milli, "store-001", None, None, None) for s, milli in steps]
        path = self.lake / "landing" / "by-hand.jsonl"
        said = [
            {"sensor_id": r.sensor_id, "store_id": r.store_id, "temperature": r.milli / 1000, "event_ts": reading_time(r.event_ms)}
            for r in readings
        ]
        path.write_text("".join(json.dumps(reading) + "\n" for reading in said))
        os.utime(path, (arrived_ms / 1000,) * 2)
        return readings

    def rows(self, table: str) -> Rows:
        rows: Rows = agreement.delta_rows(self.tables / table).to_table().to_pylist()
        assert len(rows) == self.counts[table]
        return rows


def _is_reading(fact: dict[str, Any]) -> bool:
    return fact["reasons"] in ([], ["conflicting_duplicate"]) and fact["kind"] != "blank"


def _reading(fact: dict[str, Any], text: bytes) -> Reading:
    """The simulator says what it meant by sensor, time and temperature; the rest stands in the line."""
    said = json.loads(text[fact["offset"] :].split(b"\n", 1)[0])
    others = said["store_id"], said.get("door_open"), said.get("battery_pct"), said.get("event_id")
    return Reading(fact["sensor_id"], fact["event_ms"], fact["arrived_at"], fact["temperature_milli"], *others)


def _ms(moment: Any) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("rival"))


@pytest.fixture(scope="module")
def winners(world: World) -> dict[tuple[str, int], Reading]:
    first: dict[tuple[str, int], Reading] = {}
    for line in sorted(world.lines, key=lambda line: line.precedence):
        first.setdefault(line[:2], line)
    return first


@pytest.fixture(scope="module")
def by_sensor(winners: dict[tuple[str, int], Reading]) -> dict[str, list[Reading]]:
    sensors = defaultdict(list)
    for key in sorted(winners):
        sensors[key[0]].append(winners[key])
    return sensors


def test_one_row_for_each_reading_and_the_first_to_arrive_wins(world: World, winners: dict[tuple[str, int], Reading]) -> None:
    names = ("temperature_mc", "store_id", "door_open", "battery_pct", "event_id")
    seen = {
        Reading(row["sensor_id"], _ms(row["event_ts"]) or 0, _ms(row["arrived_at"]) or 0, *(row[name] for name in names))
        for row in world.rows("readings")
    }
    assert seen == set(winners.values())
    assert world.counts["readings"] == len(winners) > 5_000


def test_bad_lines_and_contradictions_are_quarantined_with_all_their_reasons(world: World, winners: dict[tuple[str, int], Reading]) -> None:
    conflicts = sum(line.says != winners[line[:2]].says for line in world.lines)
    expected = world.reasons + Counter({("conflicting_duplicate",): conflicts})
    assert Counter(tuple(sorted(row["reasons"])) for row in world.rows("quarantine")) == expected
    assert conflicts > 20 and len(expected) > 20


def test_minutes_hold_exact_measures_and_silent_ones_are_rows(world: World, winners: dict[tuple[str, int], Reading]) -> None:
    windows = defaultdict(list)
    for reading in winners.values():
        windows[reading.store_id, reading.minute_ms].append(reading)
    for store in {store for store, _ in windows}:
        of_store = [reading.event_ms for reading in winners.values() if reading.store_id == store]
        final_until = max(max(of_store) - 30 * SECOND, world.as_of_ms - 10 * MINUTE) - 2 * MINUTE
        for minute in range(min(of_store) // MINUTE * MINUTE, final_until - MINUTE + 1, MINUTE):
            windows[store, minute] += []  # all within a day of a reading
            assert minute < max(event_ms for event_ms in of_store if event_ms < minute + MINUTE) + DAY
    names = ("readings", "sensors_reporting", "temperature_avg_c", "temperature_min_c", "temperature_max_c", "door_open_share", "late_rows")
    seen = {(row["store_id"], _ms(row["window_start"])): tuple(row[name] for name in names) for row in world.rows("store_minutes")}
    assert seen == {window: _measures(readings) for window, readings in windows.items()}
    assert any(not readings for readings in windows.values())


def _measures(readings: list[Reading]) -> tuple[Any, ...]:
    if not readings:
        return (0, 0, None, None, None, None, 0)
    milli, doors = [reading.milli for reading in readings], [reading.door_open for reading in readings if reading.door_open is not None]
    late = sum(reading.arrived_ms >= reading.minute_ms + 210 * SECOND for reading in readings)
    share = sum(doors) / len(doors) if doors else None
    sensors = {reading.sensor_id for reading in readings}
    return (len(readings), len(sensors), sum(milli) / len(milli) / 1000, min(milli) / 1000, max(milli) / 1000, share, late)


def test_silences_longer_than_the_timeout_are_outages(world: World, by_sensor: dict[str, list[Reading]]) -> None:
    lines = (world.lake / "reference" / "sensors.csv").read_text().splitlines()[1:]
    inventory = {sensor: (retired, float(timeout or 120)) for sensor, _, _, retired, timeout, _ in (line.split(",") for line in lines)}
    expected: set[tuple[str, int, int | None]] = set()
    for sensor, readings in by_sensor.items():
        retired, timeout = inventory.get(sensor, ("", 120.0))
        retired_ms = from_iso(retired) if retired and from_iso(retired) <= world.as_of_ms else None
        times, heard_ms = [reading.event_ms for reading in readings], world.as_of_ms - 30 * SECOND
        expected |= {(sensor, start, end) for start, end in pairwise(times) if end - start > timeout * SECOND}
        if min(heard_ms, retired_ms or heard_ms) - times[-1] > timeout * SECOND:
            expected.add((sensor, times[-1], retired_ms))
    seen = {(row["sensor_id"], _ms(row["started_at"]), _ms(row["ended_at"])) for row in world.rows("outages")}
    assert seen == expected
    assert {len([end for _, _, end in seen if (end is None) == is_open]) > 0 for is_open in (True, False)} == {True}


def test_drops_of_more_than_5_degrees_within_10_minutes_are_alerts(world: World, by_sensor: dict[str, list[Reading]]) -> None:
    neighbours = [pair for readings in by_sensor.values() for pair in pairwise(readings)]
    expected = {
        (b.sensor_id, b.event_ms, b.milli / 1000)
        for a, b in neighbours
        if a.milli - b.milli > 5000 and b.event_ms - a.event_ms <= 10 * MINUTE
    }
    drops = [row for row in world.rows("alerts") if row["rule"] == "sudden_drop"]
    assert {(row["sensor_id"], _ms(row["started_at"]), row["peak"]) for row in drops} == expected
    assert len([drop for drop in expected if drop[0] == "probe"]) == 3
    assert len([row for row in world.rows("alerts") if row["rule"] == "missed_heartbeat"]) == world.counts["outages"]


def test_a_comparison_sees_one_changed_row_and_says_where(world: World, tmp_path: Path) -> None:
    same = {found.name: found for found in agreement.compare(world.tables, world.tables)}
    assert all(found.holds for found in same.values())
    assert same["readings"].ours == same["readings"].rivals == world.counts["readings"]

    changed = shutil.copytree(world.tables, tmp_path / "changed")
    DeltaTable(str(changed / "outages")).update({"store_id": "'elsewhere'"}, predicate="sensor_id = 'probe' AND ended_at IS NULL")
    differing = [found for found in agreement.compare(world.tables, changed) if not found.holds]
    assert [(found.name, found.only_ours, found.only_rivals) for found in differing] == [("open outages", 1, 1)]


def test_a_slope_may_differ_by_a_billionth_and_by_no_more(world: World, tmp_path: Path) -> None:
    changed = shutil.copytree(world.tables, tmp_path / "changed")
    slopes = DeltaTable(str(changed / "store_trends"))
    steepest = max(row["slope_c_per_hour"] or 0 for row in world.rows("store_trends"))
    slopes.update({"slope_c_per_hour": "slope_c_per_hour * (1 + 1e-12)"})
    assert all(found.holds for found in agreement.compare(world.tables, changed))

    slopes.update({"slope_c_per_hour": "slope_c_per_hour * (1 + 1e-8)"}, predicate=f"slope_c_per_hour >= {steepest}")
    differing = [found for found in agreement.compare(world.tables, changed) if not found.holds]
    assert [(found.name, found.only_ours, found.only_rivals) for found in differing] == [("trends", 1, 1)]


BUSY = """
import time
heap = bytearray(100_000_000)
heap[::4096] = b"x" * len(heap[::4096])
until = time.process_time() + 0.6
while time.process_time() < until:
    pass
"""
IN_A_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\nprint('done')"
LEFT_BEHIND = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {BUSY!r}])\nprint('done')"


@pytest.mark.parametrize(
    "script", [pytest.param(IN_A_CHILD, id="a child that is waited for"), pytest.param(LEFT_BEHIND, id="a child that outlives its parent")]
)
def test_cpu_and_memory_of_the_whole_tree_are_seen(script: str) -> None:
    cost = cost_of([sys.executable, "-c", script])
    assert (cost.exit_code, cost.output) == (0, "done\n")
    assert 0.6 <= cost.cpu_seconds < 1.5
    assert 100 <= cost.peak_mb < 200


def test_a_sleeping_command_costs_time_and_hardly_any_cpu() -> None:
    started = time.perf_counter()
    cost = cost_of([sys.executable, "-c", "import time, sys; time.sleep(0.5); sys.exit(3)"])
    assert cost.exit_code == 3
    assert 0.5 <= cost.seconds <= time.perf_counter() - started
    assert cost.cpu_seconds < 0.3
