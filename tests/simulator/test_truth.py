"""The truth file is true: it points to every line, and a second reading of the contract comes to the same reasons."""

from collections import defaultdict

import pytest
from contract_reader import event_ms, reasons_and_reading, thousandths

from simulator.options import BAD_KINDS

FAULTY = dict.fromkeys(("duplicates", "conflicts", "late", "out_of_order", "wrong_clock", "odd", "blank"), 0.06) | {"bad": 0.4}
FIELDS = ("sensor_id", "store_id", "temperature", "event_ts")
ALL_REASONS = {
    "malformed_json",
    "not_an_object",
    "invalid_utf8",
    "line_too_long",
    "truncated_file",
    *(f"missing_{field}" for field in FIELDS),
    *(f"wrong_type_{field}" for field in (*FIELDS, "door_open", "battery_pct", "event_id")),
    "bad_event_ts",
    "event_ts_in_future",
    "temperature_out_of_range",
    "battery_out_of_range",
    "conflicting_duplicate",
}


@pytest.fixture(scope="module")
def faulty(a_lake):
    """Two calls with a great many faults, so that copies of the first arrive in the second."""
    lake = a_lake("faulty")
    for hours in (2, 3):
        lake.simulate(hours=hours, sensors=6, **FAULTY)
    return lake, lake.lines, lake.truth


def test_every_line_has_its_truth_and_no_truth_is_without_a_line(faulty):
    _, lines, truth = faulty
    assert [
        (fact["file"], fact["offset"], fact["arrived_at"]) for fact in sorted(truth, key=lambda fact: (fact["file"], fact["offset"]))
    ] == [(line.file, line.offset, line.arrived_ms) for line in lines]


def test_a_second_reading_of_the_contract_finds_the_same_reasons(faulty):
    _, lines, truth = faulty
    expected = {(fact["file"], fact["offset"]): fact for fact in truth}
    for line in lines:
        fact = expected[line.file, line.offset]
        if not line.text.strip(b" \t"):
            assert fact["kind"] == "blank"
            continue
        reasons, reading = reasons_and_reading(line.text, line.arrived_ms)
        assert reasons == [reason for reason in fact["reasons"] if reason != "conflicting_duplicate"], (line.text[:300], fact)
        if reading is not None:
            said = (reading["sensor_id"], event_ms(reading["event_ts"]), thousandths(reading["temperature"]))
            assert said == (fact["sensor_id"], fact["event_ms"], fact["temperature_milli"])


def test_the_first_to_arrive_wins_and_all_that_differ_are_conflicts(faulty):
    _, lines, truth = faulty
    expected = {(fact["file"], fact["offset"]): fact for fact in truth}
    sent = defaultdict(list)
    for line in lines:
        _, reading = reasons_and_reading(line.text, line.arrived_ms) if line.text.strip() else ([], None)
        if reading is not None:
            said = tuple((value is not None, value) for value in map(reading.get, ("store_id", "door_open", "battery_pct")))
            key = (reading["sensor_id"], event_ms(reading["event_ts"]))
            sent[key].append((line.arrived_ms, thousandths(reading["temperature"]), said, expected[line.file, line.offset]))
    conflicts = 0
    for copies in sent.values():
        winner = min(copies, key=lambda copy: copy[:3])
        for copy in copies:
            differs = copy[1:3] != winner[1:3]
            conflicts += differs
            assert copy[3]["reasons"] == (["conflicting_duplicate"] if differs else []), copies
        assert sum(copy[3]["kind"].startswith("duplicate") or bool(copy[3]["reasons"]) for copy in copies) == len(copies) - 1
    assert conflicts > 100


def test_some_conflicts_arrive_at_the_same_instant(faulty):
    _, _, truth = faulty
    arrived = defaultdict(dict)
    for fact in truth:
        if fact["kind"] in ("original", "conflict"):
            arrived[fact["sensor_id"], fact["event_ms"]][fact["kind"]] = (fact["arrived_at"], fact["offset"])
    together = [
        kinds["conflict"][1] < kinds["original"][1]
        for kinds in arrived.values()
        if len(kinds) == 2 and kinds["conflict"][0] == kinds["original"][0]
    ]
    assert {True, False} == set(together), "the loser stands before and after the winner"


def test_every_reason_of_the_contract_occurs(faulty, a_lake):
    _, _, truth = faulty
    broken = a_lake("broken")
    broken.simulate(hours=1, truncated=0.5, bad=0.01, bad_kinds=("line_too_long",))
    found = {reason for fact in truth + broken.truth for reason in fact["reasons"]}
    assert found == ALL_REASONS
    assert any(len(fact["reasons"]) == 3 for fact in truth)


@pytest.mark.parametrize("kind", BAD_KINDS)
def test_only_the_bad_kinds_that_were_asked_for(a_lake, kind):
    lake = a_lake(kind)
    lake.simulate(hours=0.2, bad=0.2, bad_kinds=(kind,))
    assert {fact["form"] for fact in lake.truth if fact["kind"] == "bad"} == {kind}
