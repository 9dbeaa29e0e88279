"""The same history, in three passes with a crash in the second, gives the oracle's tables wherever the lake lies and whoever does the work."""

from __future__ import annotations

import time

import pytest

from tests.oracle.comparison import differences, oracle_tables, tables
from tests.places import report
from tests.places.history import history
from tests.places.places import Place, PlacedLake, as_arrived, as_of, doubled, lay

PLACES = ("on_files", "on_seaweedfs", "on_minio", "on_kafka", "on_cluster")
PASSES = 3
PUBLISHED = ("readings", "store_minutes", "store_trends", "door_sessions", "heartbeats", "outages", "alerts", "alert_events")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fixture", PLACES)
def test_a_history_with_a_crash_gives_the_oracles_tables(fixture: str, request: pytest.FixtureRequest) -> None:
    place: Place = request.getfixturevalue(fixture)
    began, lake, told = time.monotonic(), PlacedLake(place, "everywhere"), history()
    for number in range(PASSES):
        lay(lake, told, number, PASSES)
        if number == 1:
            victim = place.new_driver()
            lake.begins(victim, as_of(told), die_at="after append to readings")
            assert victim.end() is None, "it was to be killed"
            victim.kill()
        ended = lake.passes(as_of(told))
        assert ended.startswith("published"), ended
    difference = differences(tables(lake), oracle_tables(as_arrived(told, lake))) or doubled(lake)
    report.places.append((place.name, PASSES, len(told.lines), not difference, time.monotonic() - began))
    assert not difference
    assert place.shown() and not place.shown_secrets()

    versions = {table: lake.version(table) for table in PUBLISHED}
    assert lake.passes(as_of(told)).startswith("published")
    assert {table: lake.version(table) for table in PUBLISHED} == versions, "a run with nothing new, as of the same time, writes nothing"
