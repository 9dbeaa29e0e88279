"""What happens in the stores: shares of faults, silences, temperatures, doors, batteries, and the reference files."""

import csv
import json
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from simulator.timestamps import HOUR, MINUTE, SECOND, from_iso

START = from_iso("2025-11-08T06:00:00Z")
CALM = dict.fromkeys(
    (
        "duplicates",
        "conflicts",
        "late",
        "out_of_order",
        "wrong_clock",
        "bad",
        "odd",
        "blank",
        "silent",
        "cut_off_hours",
        "input_stop_minutes",
    ),
    0,
)


def readings_by_sensor(lake):
    found = defaultdict(list)
    for line in lake.lines:
        said = json.loads(line.text)
        found[said["sensor_id"]].append((from_iso(said["event_ts"]), said))
    return {sensor: sorted(readings, key=lambda reading: reading[0]) for sensor, readings in found.items()}


def reference(lake, name):
    with (lake.path / "reference" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("conflicts", ("conflict",)),
        ("late", ("late",)),
        ("out_of_order", ("out_of_order",)),
        ("wrong_clock", ("wrong_clock",)),
        ("bad", ("bad",)),
        ("odd", ("odd",)),
        ("blank", ("blank",)),
        ("duplicates", ("duplicate_near", "duplicate_far")),
    ],
)
def test_a_share_comes_out_near_what_was_asked(lake, fault, kinds):
    delivery = lake.simulate(hours=10, stores=4, sensors=6, truth=None, files_by="all", file_minutes=10, **(CALM | {fault: 0.05}))
    on_the_way = delivery.on_the_way / delivery.lines
    found = sum(delivery.kinds[kind] for kind in kinds) / delivery.lines
    assert 0.044 - on_the_way < found < 0.056
    assert set(delivery.kinds) <= {"good", "original", *kinds}


def test_without_faults_every_sensor_speaks_once_in_each_cadence(lake):
    delivery = lake.simulate(hours=2, sensors=3, **CALM)
    gaps = Counter()
    for readings in readings_by_sensor(lake).values():
        times = [moment for moment, _ in readings]
        gaps.update((later - earlier) // (5 * SECOND) for earlier, later in pairwise(times))
    assert gaps.keys() <= {5, 6}
    assert delivery.kinds == {"good": delivery.lines}


def test_silent_sensors_say_nothing_and_the_stop_silences_all(lake):
    delivery = lake.simulate(hours=2, sensors=3, **(CALM | {"silent": 0.3, "input_stop_minutes": 7}))
    spoken = readings_by_sensor(lake)
    assert len(delivery.silences) == 3 and len(delivery.input_stops) == 1
    for silence in delivery.silences:
        times = [moment for moment, _ in spoken[f"sensor-{silence.who + 1:04}"]]
        assert times and not any(silence.started_ms <= moment < silence.ended_ms for moment in times)
    stop = delivery.input_stops[0]
    assert stop.ended_ms - stop.started_ms == 7 * MINUTE
    assert not any(stop.started_ms <= moment < stop.ended_ms for readings in spoken.values() for moment, _ in readings)


def test_a_store_that_was_cut_off_uploads_everything_afterwards(lake):
    delivery = lake.simulate(hours=4, **(CALM | {"cut_off_hours": 2}))
    (cut,) = delivery.cut_offs
    store = f"store-{cut.who + 1:03}"
    arrived = [line.arrived_ms for line in lake.lines if line.file.startswith(store)]
    assert not any(cut.started_ms <= moment < cut.ended_ms for moment in arrived)
    minutes = {moment // MINUTE for sensor in range(3) for moment, _ in readings_by_sensor(lake)[f"sensor-{cut.who * 4 + sensor + 1:04}"]}
    assert set(range(START // MINUTE, delivery.as_of_ms // MINUTE - 1)) <= minutes


@pytest.fixture(scope="module")
def two_days(a_lake):
    lake = a_lake("two_days")
    lake.simulate(hours=48, cadence=60, files_by="all", file_minutes=60, truth=None, **CALM)
    return readings_by_sensor(lake)


def test_rooms_are_cold_and_now_and_then_something_happens(two_days):
    by_store = defaultdict(list)
    for readings in two_days.values():
        for _, said in readings:
            by_store[said["store_id"]].append(said["temperature"])
    for store, temperatures in by_store.items():
        low, high = (-21, -15) if store == "store-002" else (0, 6)
        assert 0.8 < sum(low <= celsius <= high for celsius in temperatures) / len(temperatures) < 0.995
        assert all(-45 <= celsius <= 35 for celsius in temperatures)
    drops = [
        1 for readings in two_days.values() for (_, one), (_, two) in pairwise(readings) if one["temperature"] - two["temperature"] > 5
    ]
    assert 1 <= len(drops) <= 30


def test_air_warms_while_a_door_is_open(two_days):
    changes = []
    for readings in two_days.values():
        for (_, before), (_, now), (_, then) in zip(readings, readings[1:], readings[2:], strict=False):
            if not before["door_open"] and now["door_open"] and then["door_open"]:
                changes.append(then["temperature"] - before["temperature"])
    assert len(changes) > 50 and sum(changes) / len(changes) > 0.5
    assert 0.01 < sum(said["door_open"] for readings in two_days.values() for _, said in readings) / sum(map(len, two_days.values())) < 0.1


def test_batteries_sink(two_days):
    for readings in two_days.values():
        levels = [said["battery_pct"] for _, said in readings]
        assert all(later <= earlier or earlier == 4 for earlier, later in pairwise(levels))


def test_special_sensors_do_as_the_inventory_says(lake):
    lake.simulate(hours=2, stores=7, sensors=6, **CALM)
    inventory = {row["sensor_id"]: row for row in reference(lake, "sensors")}
    spoken = readings_by_sensor(lake)
    assert len(spoken.keys() - inventory.keys()) == 2
    assert len(inventory.keys() - spoken.keys()) == 1
    (slow,) = (sensor for sensor, row in inventory.items() if (row["silent_after_s"], row["expected_every_s"]) == ("600", "300"))
    assert [moment // (5 * MINUTE) - START // (5 * MINUTE) for moment, _ in spoken[slow]] == list(range(24))
    (retired,) = (sensor for sensor, row in inventory.items() if row["retired_at"])
    assert spoken[retired][-1][0] < from_iso(inventory[retired]["retired_at"]) == START + HOUR
    (young,) = (sensor for sensor, row in inventory.items() if from_iso(row["active_from"]) > START)
    assert spoken[young][0][0] >= from_iso(inventory[young]["active_from"])


def test_defrosting_is_announced_once_however_many_calls(a_lake):
    whole, cut = a_lake("whole"), a_lake("cut")
    whole.simulate(hours=9, truth=None, cadence=60, file_minutes=30, **CALM)
    for hours in (2, 7):
        cut.simulate(hours=hours, truth=None, cadence=60, file_minutes=30, **CALM)
    windows = reference(whole, "suppressions")
    assert sorted(map(str, windows)) == sorted(map(str, reference(cut, "suppressions")))
    assert {row["reason"] for row in windows} == {"defrost", "restocking", "maintenance"}
    assert all(from_iso(row["from"]) < from_iso(row["to"]) for row in windows)


def test_a_person_may_change_the_reference_files(lake):
    lake.simulate(hours=0.1)
    limits = lake.path / "reference" / "limits.csv"
    limits.write_text("store_id,valid_from,valid_to,low_c,high_c\n")
    lake.simulate(hours=0.1)
    assert reference(lake, "limits") == []
