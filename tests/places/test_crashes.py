"""P19: the driver is killed (SIGKILL, with all its children) at every point where something that lasts is written; the next pass ends with the oracle's
tables. COLDSTORE_CRASHES=all (`make crash`) tries every point, and 30 kills at random moments; without it a few."""

from __future__ import annotations

import os
import random
import time
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.oracle.comparison import deliver, differences, oracle_tables, tables, write_reference
from tests.places import report
from tests.places.driver import Driver
from tests.places.history import history
from tests.places.places import Place, PlacedLake, as_arrived, as_of, doubled

ALL = os.environ.get("COLDSTORE_CRASHES") == "all"
SOME = ("after update of readings", "after change of store_minutes")
WHERE = ["on_files", "on_seaweedfs"] if ALL else ["on_seaweedfs"]
KILLS = 30 if ALL else 3
FIRST_PASS = ("after the lease is taken", "before control/format", "after the table batches", "after control/run.json")


class World:
    """A lake on which one pass was taken, and which has got the rest of its files; every crash happens on a copy of it."""

    def __init__(self, place: Place, landing: Path) -> None:
        self.place, self.history, self.landing = place, history(), landing
        self.empty, self.prepared = (self._lake(name) for name in ("empty", "prepared"))
        self._copies, self._victims = 0, deque[Driver]()
        write_reference(self.empty, self.history)
        write_reference(self.prepared, self.history)
        files = self.history.files()
        self._land(files[1::2])
        assert self.prepared.passes(as_of(self.history)).startswith("published")
        self._land(files[0::2])  # among them what arrived before the others
        self.expected = oracle_tables(self.history)

    def _lake(self, name: str) -> PlacedLake:
        return PlacedLake(self.place, f"crashes/{name}", landing=self.landing)

    def _land(self, files: list[tuple[int, list[bytes]]]) -> None:
        local = Place(str(self.landing))
        for arrived_ms, lines in files:
            local.keep(f"{self.landing}/{arrived_ms}.jsonl", b"".join(line + b"\n" for line in lines), arrived_ms)

    def copy(self, source: PlacedLake) -> PlacedLake:
        self._copies += 1
        lake = self._lake(f"copy-{self._copies}")
        self.place.copy(source.uri, lake.uri)
        return lake

    def points(self) -> list[str]:
        """Those that the second pass passes, in their order, each once. Between "after" this and "before" that nothing is written: one of them will do."""
        listed = self.landing.parent / "points"
        assert (self.copy(self.prepared).passes(as_of(self.history), points=listed)).startswith("published")
        passed = list(dict.fromkeys(listed.read_text().splitlines()))
        return [point for last, point in pairwise(["", *passed]) if not (last.startswith("after") and point.startswith("before"))]

    def victim(self) -> Driver:
        """The next one starts while this one is killed and judged."""
        while len(self._victims) < 2:
            self._victims.append(self.place.new_driver())
        return self._victims.popleft()

    def killed_at(self, point: str, source: PlacedLake) -> str:
        """What differs from the oracle after a driver died there and another took the next pass; empty: it survived."""
        lake, victim = self.copy(source), self.victim()
        lake.begins(victim, as_of(self.history), die_at=point)
        ended = victim.end()
        victim.kill()
        if ended is not None:
            return f"the driver did not die there: {ended}"
        ended = lake.passes(as_of(self.history))
        return differences(tables(lake), self.expected) or doubled(lake) if ended.startswith("published") else ended

    def close(self) -> None:
        for victim in self._victims:
            victim.kill()


@pytest.fixture(scope="module", params=WHERE)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(request.getfixturevalue(request.param), tmp_path_factory.mktemp("crashes") / "landing")
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)  # all points, on a busy machine
def test_a_driver_killed_at_any_point_loses_and_doubles_nothing(world: World) -> None:
    points, first = (world.points(), FIRST_PASS) if ALL else (SOME, ())
    tried = [*((point, world.prepared) for point in points), *((point, world.empty) for point in first)]
    found: dict[str, str] = {}
    for point, source in tried:
        name = point if source is world.prepared else f"{point} (first pass)"
        found[name] = world.killed_at(point, source)
        report.note_crash(name, world.place.name, found[name])
        print(f"{len(found)} of {len(tried)} on {world.place.name}: {name}: {'NOT survived' if found[name] else 'survived'}", flush=True)
    assert not {point: difference for point, difference in found.items() if difference}


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("where", WHERE)
def test_kills_at_random_moments_in_a_row_end_with_the_oracles_tables(where: str, request: pytest.FixtureRequest) -> None:
    place: Place = request.getfixturevalue(where)
    lake, told, chance = PlacedLake(place, "random-kills"), history(), random.Random(7)
    write_reference(lake, told)
    files = told.files()
    victims = deque([place.new_driver()])
    for number in range(KILLS):
        deliver(lake, files[number * len(files) // KILLS : (number + 1) * len(files) // KILLS])
        victims.append(place.new_driver())
        victim = victims.popleft()
        lake.begins(victim, as_of(told), lease_s=5)
        time.sleep(chance.uniform(0.2, 9.0))
        victim.kill()
        print(f"{number + 1} of {KILLS} killed on {place.name}", flush=True)
    victims.popleft().kill()
    ended = lake.passes(as_of(told))
    assert ended.startswith("published"), ended
    assert not (differences(tables(lake), oracle_tables(as_arrived(told, lake))) or doubled(lake))
    report.note_kills(place.name, KILLS)
