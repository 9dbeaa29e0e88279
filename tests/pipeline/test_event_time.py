"""P8 to P11, P14: a store's lateness is its own, windows close without data, late rows repair what they touch and only that."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import Any

from tests.lakes import TestLake, a_reading, at, every, moment
from tests.oracle.comparison import differences, oracle_tables, tables
from tests.oracle.histories import History, Line


def minutes(lake: TestLake, store: str) -> dict[str, dict[str, Any]]:
    return {row["window_start"].strftime("%H:%M"): row for row in lake.rows("store_minutes") if row["store_id"] == store}


def test_a_store_cut_off_for_hours_loses_nothing_and_touches_nobody(lake: TestLake) -> None:
    lake.knows(
        "sensors",
        "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s",
        "sensor-1,store-1,,,,",
        "sensor-2,store-2,,,,",
    )
    lake.receives(*every(60, "10:00", "10:10", "sensor-1", "store-1"), *every(60, "10:00", "16:10", "sensor-2", "store-2"), arrived="16:10")
    lake.passes(as_of="16:10")
    before = minutes(lake, "store-2")
    assert minutes(lake, "store-1")["12:00"]["readings"] == 0
    assert lake.one("heartbeats", sensor_id="sensor-1")["status"] == "silent"
    assert lake.one("outages", sensor_id="sensor-1")["ended_at"] is None

    lake.receives(*every(60, "10:10", "16:10", "sensor-1", "store-1"), arrived="16:11")
    lake.passes(as_of="16:11")

    after = minutes(lake, "store-1")
    assert sum(row["readings"] for row in after.values()) == 370
    assert (after["12:00"]["readings"], after["12:00"]["late_rows"], after["12:00"]["revision"], after["12:00"]["completeness"]) == (
        1,
        1,
        1,
        1.0,
    )
    assert after["10:05"]["revision"] == 0
    assert lake.rows("outages") == [] and lake.one("heartbeats", sensor_id="sensor-1")["status"] == "reporting"
    (alert,) = lake.rows("alerts")
    assert (alert["rule"], alert["status"], alert["superseded_by"]) == ("missed_heartbeat", "retracted", None)
    now = minutes(lake, "store-2")
    assert {start: row for start, row in now.items() if row["is_final"] == before[start]["is_final"]}.keys() >= {"10:00", "15:00"}
    assert all(now[start] == before[start] for start in before if before[start]["is_final"])


def test_when_all_are_silent_the_windows_close_and_the_cause_is_the_input(lake: TestLake) -> None:
    for store in ("store-1", "store-2"):
        lake.receives(*every(30, "10:00", "10:10", f"{store}/a", store), *every(30, "10:00", "10:10", f"{store}/b", store), arrived="10:10")
    lake.passes(as_of="10:10")
    assert not minutes(lake, "store-1")["10:09"]["is_final"] and "10:10" not in minutes(lake, "store-1")

    lake.passes(as_of="11:10")
    rows = minutes(lake, "store-1")
    assert list(rows) and max(rows) == "10:57" and all(row["is_final"] for row in rows.values())
    assert {key: rows["10:30"][key] for key in ("readings", "sensors_expected", "completeness", "late_rows", "temperature_avg_c")} == {
        "readings": 0, "sensors_expected": 2, "completeness": 0.0, "late_rows": 0, "temperature_avg_c": None,
    }  # fmt: skip
    assert [(row["started_at"], row["ended_at"], row["cause"]) for row in lake.rows("outages")] == [(moment("10:09:30"), None, "input")] * 4
    assert {row["cause"] for row in lake.rows("heartbeats")} == {"input"}

    lake.receives(*every(30, "11:10", "11:12", "store-1/a", "store-1"), arrived="11:12")
    lake.passes(as_of="11:12")
    ended = lake.one("outages", sensor_id="store-1/a")
    assert (ended["ended_at"], ended["cause"]) == (moment("11:10"), "input")


def test_only_the_store_is_dark_and_a_lone_sensor_is_its_own_cause(lake: TestLake) -> None:
    lake.receives(
        *every(30, "10:00", "10:05", "a", "dark"), *every(30, "10:00", "10:06", "b", "dark"),
        *every(30, "10:00", "10:04", "c", "lit"), *every(30, "10:00", "10:30", "d", "lit"), arrived="10:30",
    )  # fmt: skip
    lake.passes(as_of="10:30")
    assert {row["sensor_id"]: row["cause"] for row in lake.rows("outages")} == {"a": "store", "b": "store", "c": "sensor"}


def test_a_stranger_first_heard_in_a_second_store_is_waited_for_there(lake: TestLake) -> None:
    """It was heard elsewhere long before: what counts for the causes there is its first word in that store."""
    dark = [
        line for name in ("b1", "b2") for hours in (("09:00", "10:01"), ("10:30", "11:00")) for line in every(60, *hours, name, "store-b")
    ]
    files = {"11:00": [*every(60, "09:00", "11:00", "stranger", "store-a"), *dark], "11:01": [a_reading("stranger", "09:30:30", "store-b")]}
    causes = []
    for arrived, lines in files.items():
        lake.receives(*lines, arrived=arrived)
        lake.passes(as_of=arrived)
        causes.append({row["sensor_id"]: row["cause"] for row in lake.rows("outages")})
    assert causes == [{"b1": "store", "b2": "store"}, {"b1": "sensor", "b2": "sensor"}]
    stamped = [Line(line, _ms(arrived)) for arrived, lines in files.items() for line in lines]
    assert not differences(tables(lake), oracle_tables(History(tuple(stamped), _ms("11:01"))))


def _ms(clock: str) -> int:
    return round(moment(clock).timestamp() * 1000)


def test_boundaries_are_where_the_contract_has_them(lake: TestLake) -> None:
    two = ["10:00", "10:02"]
    more = ["10:00", "10:02:00.001"]
    lake.receives(*(a_reading("exactly", clock) for clock in two), *(a_reading("longer", clock) for clock in more), arrived="10:02:30")
    lake.receives(
        a_reading("drop-5", "10:00", temperature=8.2), a_reading("drop-5", "10:01", temperature=3.2), a_reading("drop-5", "10:02"),
        a_reading("drops", "10:00", temperature=8.2), a_reading("drops", "10:01", temperature=3.199), a_reading("drops", "10:02"),
        a_reading("old", "09:50", temperature=8), a_reading("old", "10:00", temperature=2),
        a_reading("older", "09:49:59.999", temperature=8), a_reading("older", "10:00", temperature=2), arrived="10:02:30",
    )  # fmt: skip
    lake.passes(as_of="10:02:30")
    outages = {(row["sensor_id"], row["started_at"], row["ended_at"]) for row in lake.rows("outages")}
    assert ("longer", moment("10:00"), moment("10:02:00.001")) in outages
    assert not [row for row in outages if row[0] in ("exactly", "drop-5", "drops")]
    drops = {row["sensor_id"]: row for row in lake.rows("alerts") if row["rule"] == "sudden_drop"}
    assert set(drops) == {"drops", "old"}
    assert (drops["drops"]["started_at"], drops["drops"]["ended_at"], drops["drops"]["peak"]) == (moment("10:01"), moment("10:01"), 3.199)
    assert drops["drops"]["status"] == "resolved" and drops["drops"]["evidence"]["before"]["temperature_c"] == 8.2
    assert drops["drops"]["alert_id"] == sha256(b"sudden_drop|drops|2025-11-08T10:01:00.000Z").hexdigest()[:32]
    late = {row["event_ts"]: row["is_late"] for row in lake.rows("readings") if row["sensor_id"] in ("exactly", "older")}
    assert late[moment("10:00")] is False and late[moment("09:49:59.999")] is True


def test_late_rows_split_move_and_retract_and_the_clock_never_goes_back(lake: TestLake, capsys: Any) -> None:
    lake.receives(a_reading("s", "10:00"), a_reading("s", "10:30"), arrived="10:30")
    lake.passes(as_of="10:31")
    first = lake.one("alerts", sensor_id="s")
    lake.receives(a_reading("s", "10:15"), a_reading("s", "10:01"), arrived="10:32")
    lake.passes(as_of="10:05")
    assert f"this run uses {at('10:31')}" in capsys.readouterr().out
    assert [(row["started_at"], row["ended_at"]) for row in lake.rows("outages", "started_at")] == [
        (moment("10:01"), moment("10:15")), (moment("10:15"), moment("10:30")),
    ]  # fmt: skip
    alerts = {row["started_at"]: row for row in lake.rows("alerts")}
    assert alerts[moment("10:00")]["status"] == "retracted"
    assert alerts[moment("10:00")]["superseded_by"] == alerts[moment("10:01")]["alert_id"]
    assert alerts[moment("10:00")]["alert_id"] == first["alert_id"] and alerts[moment("10:00")]["revision"] == 1
    assert alerts[moment("10:15")]["status"] == "resolved"
    row = minutes(lake, "store-1")["10:15"]
    assert (row["readings"], row["revision"], row["late_rows"]) == (1, 1, 1)


def test_a_store_silent_for_longer_than_a_day_is_not_written_down_any_more(lake: TestLake) -> None:
    lake.receives(a_reading(clock="23:00:30"), arrived="23:01")
    for as_of in ("2025-11-08T23:10:00Z", "2025-11-10T00:30:00Z", "2025-11-10T12:00:00Z"):
        lake.passes(as_of=as_of)
    starts = sorted(row["window_start"] for row in lake.rows("store_minutes"))
    assert (starts[0], starts[-1], len(starts)) == (moment("23:00"), moment("23:00") + timedelta(days=1), 1441)


def test_silent_minutes_after_a_late_reading_reach_as_far_as_the_setting_says(lake: TestLake) -> None:
    for clock in ("10:00", "23:00"):
        lake.receives(a_reading(clock=clock), arrived=clock)
        lake.passes(as_of="2025-11-14T10:00:00Z", silent_store_hours=48)
        starts = sorted(row["window_start"] for row in lake.rows("store_minutes"))
        silent = moment(clock) + timedelta(hours=48) - moment("10:00")
        assert (starts[-1] - starts[0], len(starts)) == (silent - timedelta(minutes=1), silent // timedelta(minutes=1))


def test_a_sensor_that_retired_when_it_began_is_never_expected(lake: TestLake) -> None:
    lake.knows(
        "sensors",
        "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s",
        "sensor-1,store-1,,,,",
        f"sensor-2,store-1,{at('10:01:30')},{at('10:01:30')},,",
    )
    lake.receives(*every(60, "10:00", "10:03", "sensor-1"), *every(60, "10:00", "10:03", "sensor-2"), arrived="10:03")
    lake.passes(as_of="10:03")
    row = minutes(lake, "store-1")["10:01"]
    assert (row["sensors_reporting"], row["sensors_expected"], row["completeness"]) == (2, 1, 1.0)


def test_a_newcomer_after_the_inventory_changed_is_added_to_what_was_published(lake: TestLake) -> None:
    """The three that were expected are listed in another store since: neither are they forgotten, nor is a minute more than complete."""
    lake.receives(*(line for name in "abc" for line in every(60, "10:00", "10:10", name)), arrived="10:10")
    lake.passes(as_of="10:10")
    lake.knows(
        "sensors", "sensor_id,store_id,active_from,retired_at,silent_after_s,expected_every_s", *(f"{name},store-2,,,," for name in "abc")
    )
    lake.receives(a_reading("newcomer", "10:03:30"), arrived="10:11")
    lake.passes(as_of="10:11")
    said = shares(lake)
    assert said["10:02"] == (3, 3, 1.0)
    assert said["10:03"] == (4, 1, 1.0)  # it has a new reading: measured anew, by the inventory of now
    assert said["10:04"] == said["10:09"] == (3, 4, 0.75)

    lake.receives(a_reading("newcomer", "10:01:30"), arrived="10:12")  # it was there earlier, and is counted once
    lake.passes(as_of="10:12")
    assert shares(lake) == said | {"10:01": (4, 1, 1.0), "10:02": (3, 4, 0.75)}


def shares(lake: TestLake) -> dict[str, tuple[Any, ...]]:
    return {
        start: (row["sensors_reporting"], row["sensors_expected"], row["completeness"])
        for start, row in minutes(lake, "store-1").items()
        if start < "10:10"  # what follows is silent, and final as the clock goes on
    }
