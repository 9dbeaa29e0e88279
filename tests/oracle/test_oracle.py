"""The oracle itself, pinned down by hand at the contract's boundaries."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from tests.oracle import alerts, door_sessions, heartbeats, outages, store_minutes, store_trends
from tests.oracle.clock import HOUR, MINUTE, SECOND, as_text, is_late
from tests.oracle.lines import Blank, Reading, Rejected, lines_of, parse_event_ts, read_line
from tests.oracle.readings import Line, Winners, read_history, winners_of
from tests.oracle.reference import Limit, Reference, Sensor, Suppression

NOON = parse_event_ts("2025-11-08T12:00:00Z")
LIMITS = Reference(limits=(Limit("store-1", low_c=0, high_c=5),))


def a_line(**fields) -> bytes:
    line = {"sensor_id": "s", "store_id": "store-1", "temperature": 2.7, "event_ts": "2025-11-08T12:00:00Z"}
    return json.dumps(line | fields).encode()


def a_line_with(field: str) -> bytes:
    """A good line with one more field, written by hand."""
    return a_line()[:-1] + b"," + field.encode() + b"}"


def outcome(line: bytes, arrived_ms: int = NOON) -> object:
    """A rejected line's reasons, `blank`, or the reading."""
    result = read_line(line, arrived_ms)
    if isinstance(result, Rejected):
        return list(result.reasons)
    return "blank" if isinstance(result, Blank) else result


def at(minutes: float, temperature: float = 2, sensor: str = "s", store: str = "store-1", **more) -> Reading:
    """A reading some minutes after noon that arrived at once."""
    event_ms = NOON + round(minutes * MINUTE)
    return Reading(sensor, store, round(temperature * 1000), event_ms, more.pop("arrived_ms", event_ms), **more)


def history(*readings: Reading) -> Winners:
    return winners_of(readings)


def minutes(*readings: Reading, as_of: float, reference: Reference = Reference()) -> dict[int, dict]:  # noqa: B008 - frozen
    """store_minutes of store-1 by minutes after noon."""
    rows = store_minutes.build(history(*readings), reference, NOON + round(as_of * MINUTE))
    return {(row["window_start"] - NOON) // MINUTE: row for row in rows if row["store_id"] == "store-1"}


def silences(*readings: Reading, as_of: float, reference: Reference = Reference()) -> list[tuple]:  # noqa: B008 - frozen
    """outages as (sensor, start, end, cause) in minutes after noon."""
    rows = outages.build(history(*readings), reference, NOON + round(as_of * MINUTE))
    return [(row["sensor_id"], since_noon(row["started_at"]), since_noon(row["ended_at"]), row["cause"]) for row in rows]


def episodes(rule: str, *readings: Reading, as_of: float = 60, reference: Reference = LIMITS) -> list[tuple]:
    """alerts of a rule as (start, end, peak) in minutes after noon."""
    rows = alerts.build(history(*readings), reference, NOON + round(as_of * MINUTE))
    return [(since_noon(row["started_at"]), since_noon(row["ended_at"]), row["peak"]) for row in rows if row["rule"] == rule]


def since_noon(moment: int | None) -> float | None:
    return None if moment is None else (moment - NOON) / MINUTE


REASONS = {
    "NaN is malformed": (a_line_with('"x":NaN'), ["malformed_json"]),
    "minus Infinity is malformed": (a_line_with('"x":-Infinity'), ["malformed_json"]),
    "a lone surrogate in an unknown field is malformed": (a_line_with(r'"x":["\ud800"]'), ["malformed_json"]),
    "a lone surrogate behind a repeated key is malformed": (a_line_with(r'"x":"\udc00","x":1'), ["malformed_json"]),
    "trailing text is malformed": (a_line() + b" x", ["malformed_json"]),
    "a carriage return alone is not blank": (b"\r", ["malformed_json"]),
    "a second byte-order mark is malformed": (b"\xef\xbb\xbf" * 2 + a_line(), ["malformed_json"]),
    "a form feed is no white space": (b"\x0c" + a_line(), ["malformed_json"]),
    "a bare control character in text is malformed": (a_line_with('"x":"\t"'), ["malformed_json"]),
    "a leading zero is malformed": (a_line_with('"x":01'), ["malformed_json"]),
    "nesting without end is malformed": (b"[" * 60_000, ["malformed_json"]),
    "a list is not an object": (b"[1]", ["not_an_object"]),
    "null is not an object": (b"null", ["not_an_object"]),
    "an overlong encoding is invalid": (b'{"a":"\xc0\xaf"}', ["invalid_utf8"]),
    "an encoded surrogate is invalid": (b'{"a":"\xed\xa0\x80"}', ["invalid_utf8"]),
    "a line of 64 KiB and a byte is too long": (b"x" * 65_537, ["line_too_long"]),
    "a line of exactly 64 KiB is read": (b"x" * 65_536, ["malformed_json"]),
    "an empty object misses what is required": (
        b"{}",
        ["missing_event_ts", "missing_sensor_id", "missing_store_id", "missing_temperature"],
    ),
    "null is absent": (a_line(temperature=None), ["missing_temperature"]),
    "an empty id is missing": (a_line(store_id=""), ["missing_store_id"]),
    "an id that is a number has the wrong type": (a_line(sensor_id=7), ["wrong_type_sensor_id"]),
    "names are case-sensitive": (a_line(sensor_id=None, Sensor_id="s"), ["missing_sensor_id"]),
    "a boolean is no temperature": (a_line(temperature=True), ["wrong_type_temperature"]),
    "a text is no temperature": (a_line(temperature="2"), ["wrong_type_temperature"]),
    "a number is no door": (a_line(door_open=1), ["wrong_type_door_open"]),
    "a boolean is no battery": (a_line(battery_pct=False), ["wrong_type_battery_pct"]),
    "a number is no event id": (a_line(event_id=1), ["wrong_type_event_id"]),
    "a number is no time": (a_line(event_ts=1762603200), ["wrong_type_event_ts"]),
    "an empty time is bad": (a_line(event_ts=""), ["bad_event_ts"]),
    "a time without offset is bad": (a_line(event_ts="2025-11-08T12:00:00"), ["bad_event_ts"]),
    "a temperature beyond a double is out of range": (a_line_with('"temperature":1e400'), ["temperature_out_of_range"]),
    "an integer beyond a double is out of range": (a_line_with('"temperature":' + "9" * 5_000), ["temperature_out_of_range"]),
    "60.001 is too warm to be true": (a_line(temperature=60.001), ["temperature_out_of_range"]),
    "-90.001 is too cold to be true": (a_line(temperature=-90.001), ["temperature_out_of_range"]),
    "a battery above 100 is out of range": (a_line(battery_pct=100.5), ["battery_out_of_range"]),
    "reasons about fields come together": (
        a_line(sensor_id="", temperature=99, battery_pct=-1, event_ts="soon"),
        ["bad_event_ts", "battery_out_of_range", "missing_sensor_id", "temperature_out_of_range"],
    ),
    "more than 5 min ahead is the future": (a_line(event_ts="2025-11-08T12:05:00.001Z"), ["event_ts_in_future"]),
    "an empty line is blank": (b"", "blank"),
    "spaces and tabs are blank": (b" \t ", "blank"),
    "a byte-order mark alone is blank": (b"\xef\xbb\xbf", "blank"),
}


@pytest.mark.parametrize(("line", "expected"), REASONS.values(), ids=REASONS.keys())
def test_a_line_that_is_no_reading(line, expected):
    assert outcome(line) == expected


GOOD_LINES = {
    "exactly 5 min ahead is not the future": a_line(event_ts="2025-11-08T12:05:00.0009Z"),
    "what rounds to 60 is in range": a_line(temperature=60.0004),
    "-90 is in range": a_line(temperature=-90),
    "batteries of 0 and 100 are in range": a_line(battery_pct=100),
    "of a repeated key the last counts": a_line_with('"temperature":1,"temperature":2'),
    "a byte-order mark belongs to no line": b"\xef\xbb\xbf" + a_line() + b"\r\n",
    "a pair of surrogates is a character": a_line_with(r'"x":"\ud83d\ude00"'),
    "unknown fields stay": a_line(colour={"a": [1, None]}),
    "ids are not trimmed": a_line(sensor_id=" "),
}


@pytest.mark.parametrize("line", GOOD_LINES.values(), ids=GOOD_LINES.keys())
def test_a_line_that_is_a_reading(line):
    assert isinstance(read_line(line, NOON), Reading)


@pytest.mark.parametrize(
    ("celsius", "expected"),
    [
        ("2.7", 2700),
        ("-0", 0),
        ("-0.0001", 0),
        ("0.0005", 0),
        ("0.0015", 2),
        ("0.0025", 2),
        ("8.2", 8200),
        ("1.0005", 1000),
        ("1E1", 10_000),
    ],
)
def test_temperatures_are_thousandths_rounded_half_to_even(celsius, expected):
    assert outcome(a_line_with(f'"temperature":{celsius}')).temperature == expected


def test_minus_zero_of_a_battery_is_zero():
    assert str(outcome(a_line_with('"battery_pct":-0.0')).battery_pct) == "0.0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-11-08T12:00Z", 0),
        ("2025-11-08T12:00:00,9999Z", 999),
        ("2025-11-08T12:00:00.1Z", 100),
        ("2025-11-08T13:00:00+01:00", 0),
        ("2025-11-08T13:30+0130", 0),
        ("2025-11-08T04:00-08", 0),
        ("2025-11-08T12:00:60Z", None),
        ("2025-11-08T24:00Z", None),
        ("2025-02-29T12:00Z", None),
        ("2025-11-08T12:00.5Z", None),
        ("2025-11-08T12:00:00.Z", None),
        ("2025-11-08 12:00:00Z", None),
        ("2025-11-08T12:00:00z", None),
        ("2025-11-08T12Z", None),
        ("2025-11-08T12:00Z\n", None),
        ("2025-11-08T12:00+1", None),
        ("2025-11-08T12:00+01:60", None),
        ("٢٠٢٥-11-08T12:00Z", None),
    ],
)
def test_event_ts_is_read_as_the_contract_spells_it(text, expected):
    assert parse_event_ts(text) == (None if expected is None else NOON + expected)


def test_the_year_2000_begins_in_utc():
    assert outcome(a_line(event_ts="2000-01-01T00:30+01:00")) == ["bad_event_ts"]
    assert isinstance(read_line(a_line(event_ts="2000-01-01T00:00Z"), NOON), Reading)


def test_lines_end_with_lf_or_crlf_and_a_lone_cr_ends_nothing():
    assert lines_of(b"a\r\n\nb\rc\n") == [b"a", b"", b"b\rc"]
    assert lines_of(b"a\nb\r") == [b"a", b"b\r"]


def test_the_first_to_arrive_wins_even_if_it_is_read_last():
    late, early = Line(a_line(temperature=1), NOON + 1), Line(a_line(temperature=9), NOON)
    read = read_history([late, early])
    assert [winner.temperature for winner in read.winners.values()] == [9000]
    assert [(row.line, row.reasons) for row in read.quarantined] == [(late, ("conflicting_duplicate",))]


def test_of_the_same_instant_the_smallest_wins_and_null_is_smallest():
    lines = [Line(a_line(door_open=door), NOON) for door in (True, None, False)]
    read = read_history(lines)
    assert [winner.door_open for winner in read.winners.values()] == [None]
    assert len(read.conflicting_duplicates) == 2


def test_another_event_id_alone_is_no_conflict():
    read = read_history([Line(a_line(event_id="b"), NOON), Line(a_line(event_id="a"), NOON), Line(a_line(event_id="a"), NOON)])
    assert [winner.event_id for winner in read.winners.values()] == ["a"]
    assert (read.books["duplicates"], read.books["quarantined"]) == (2, 0)


def test_the_books_balance_overall_and_by_store():
    lines = [
        Line(a_line(), NOON),
        Line(a_line(), NOON + 1),
        Line(a_line(store_id="store-2"), NOON + 2),
        Line(a_line(sensor_id=None), NOON),
        Line(b"{", NOON),
        Line(b" ", NOON),
        Line(b"", NOON, is_truncated=True),
    ]
    read = read_history(lines)
    assert read.books == {"lines_read": 7, "readings_new": 1, "duplicates": 1, "quarantined": 4, "blank": 1, "late_rows": 0}
    assert read.books_by_store == {
        "store-1": {"readings_new": 1, "duplicates": 1, "quarantined": 1, "late_rows": 0},
        "store-2": {"readings_new": 0, "duplicates": 0, "quarantined": 1, "late_rows": 0},
        None: {"readings_new": 0, "duplicates": 0, "quarantined": 2, "late_rows": 0},
    }


@pytest.mark.parametrize(("arrived", "late"), [(3 * MINUTE + 30 * SECOND - 1, False), (3 * MINUTE + 30 * SECOND, True)])
def test_late_begins_two_and_a_half_minutes_after_the_minutes_end(arrived, late):
    assert is_late(at(0.5, arrived_ms=NOON + arrived)) is late


def test_a_minute_is_final_exactly_when_the_frontier_passes_its_end_by_two_minutes():
    assert minutes(at(0), as_of=13)[0]["is_final"] is True
    assert minutes(at(0), as_of=12.99)[0]["is_final"] is False
    # The store's own watermark: 3.5 min − 30 s = end of minute 0 + 2 min.
    assert minutes(at(0), at(3.5), as_of=0)[0]["is_final"] is True
    assert sorted(minutes(at(0), at(3.4), as_of=0)) == [0, 3]


def test_a_silent_minute_has_a_row_when_final():
    row = minutes(at(0), at(2), as_of=14)[1]
    assert (row["readings"], row["temperature_avg_c"], row["door_open_share"], row["late_rows"]) == (0, None, None, 0)
    assert (row["sensors_expected"], row["completeness"]) == (1, 0)


@pytest.mark.parametrize(("second", "last_minute"), [(0, 1439), (0.5, 1440)])
def test_minutes_are_written_down_while_they_start_less_than_24_h_after_the_last_reading(second, last_minute):
    rows = minutes(at(second), as_of=5000)
    assert max(rows) == last_minute
    assert len(rows) == last_minute + 1


def test_a_store_that_comes_back_after_days_has_rows_again():
    rows = minutes(at(0), at(3000), as_of=3000)
    assert 1439 in rows and 1440 not in rows and 2999 not in rows and 3000 in rows


def test_expected_are_the_active_ones_at_any_moment_of_the_minute():
    inventory = Reference(
        sensors=(
            Sensor("never-read", "store-1"),
            Sensor("retired-at-its-start", "store-1", retired_at=NOON + MINUTE),
            Sensor("retired-inside", "store-1", retired_at=NOON + MINUTE + 1),
            Sensor("active-from-its-end", "store-1", active_from=NOON + 2 * MINUTE),
            Sensor("active-from-inside", "store-1", active_from=NOON + 2 * MINUTE - 1),
            Sensor("never-active", "store-1", active_from=NOON + MINUTE + 1, retired_at=NOON + MINUTE + 1),
            Sensor("too-rare", "store-1", expected_every_s=61),
            Sensor("elsewhere", "store-2"),
        )
    )
    rows = minutes(at(0), at(1, sensor="elsewhere"), at(2, sensor="later"), as_of=60, reference=inventory)
    # never-read, retired-inside, active-from-inside and the unknown "s"; "later" comes with its first reading.
    assert (rows[1]["sensors_expected"], rows[1]["sensors_reporting"], rows[1]["completeness"]) == (4, 1, 0)
    assert rows[2]["sensors_expected"] == 5
    assert rows[2]["completeness"] == 1 / 5


def test_averages_come_from_exact_sums():
    row = minutes(at(0, 0.1), at(0.1, 0.2, door_open=True), at(0.2, 0.4, door_open=False), as_of=0)[0]
    assert row["temperature_avg_c"] == (700 / 3) / 1000
    assert (row["temperature_min_c"], row["temperature_max_c"], row["door_open_share"]) == (0.1, 0.4, 0.5)


def test_a_trend_rises_by_its_slope():
    rows = store_trends.build(history(at(5, 1), at(6, 2), at(7, 3)), Reference(), NOON)
    assert [(since_noon(row["window_start"]), row["slope_c_per_hour"]) for row in rows] == [(0, 60), (5, 60)]


def test_a_trend_of_one_instant_has_no_slope():
    rows = store_trends.build(history(at(5, 1), at(5, 2, sensor="t")), Reference(), NOON)
    assert [row["slope_c_per_hour"] for row in rows] == [None, None]


def test_a_gap_of_exactly_two_minutes_joins_a_door_session():
    readings = [at(0, 3, door_open=True), at(1, 9, door_open=False), at(2, 5, door_open=True), at(4.001, 4, door_open=True)]
    rows = door_sessions.build(history(*readings), Reference(), NOON)
    assert [
        (since_noon(row["started_at"]), since_noon(row["ended_at"]), row["readings"], row["peak_c"], row["rise_c"]) for row in rows
    ] == [
        (0, 2, 2, 5, 2),
        (round(4.001 * MINUTE) / MINUTE, round(4.001 * MINUTE) / MINUTE, 1, 4, 0),
    ]


def test_exactly_two_minutes_is_not_an_outage():
    assert silences(at(0), at(2), as_of=3) == []
    assert silences(at(0), at(2.001), as_of=3) == [("s", 0, 2.001, "sensor")]


def test_an_open_outage_is_judged_by_heard_until():
    assert silences(at(0), as_of=2.5) == []
    assert silences(at(0), as_of=2.51) == [("s", 0, None, "sensor")]


def test_a_sensor_has_its_own_timeout():
    patient = Reference(sensors=(Sensor("s", "store-1", silent_after_s=600),))
    assert silences(at(0), at(10), as_of=20.5, reference=patient) == []


def test_a_retired_sensors_last_silence_ends_at_its_retirement():
    retired = Reference(sensors=(Sensor("s", "store-1", retired_at=NOON + 10 * MINUTE),))
    assert silences(at(0), as_of=9, reference=retired) == [("s", 0, None, "sensor")]
    assert silences(at(0), as_of=10, reference=retired) == [("s", 0, 10, "sensor")]
    assert silences(at(8), as_of=60, reference=retired) == []
    assert silences(at(11), as_of=60, reference=retired) == []


def test_a_store_is_the_cause_when_all_its_expected_sensors_are_silent_at_once():
    both = [at(0), at(5), at(3, sensor="t"), at(8, sensor="t")]
    assert {cause for *_, cause in silences(*both, as_of=8)} == {"store"}
    # They touch at minute 3 only: no moment is inside both.
    apart = [at(0), at(3), at(0, sensor="t"), at(1.5, sensor="t"), at(3, sensor="t"), at(6, sensor="t"), at(4.5), at(6)]
    assert {cause for *_, cause in silences(*apart, as_of=6)} == {"sensor"}


def test_who_has_not_reported_or_is_rarely_due_is_not_waited_for():
    readings = [at(0), at(5), at(0, sensor="t"), at(5, sensor="t"), at(0, sensor="rare")]
    inventory = Reference(sensors=(Sensor("new", "store-1"), Sensor("rare", "store-1", expected_every_s=300, silent_after_s=600)))
    assert silences(*readings, as_of=5, reference=inventory) == [("s", 0, 5, "store"), ("t", 0, 5, "store")]


def test_the_input_is_the_cause_when_every_store_is_silent():
    readings = [at(0), at(5), at(0, sensor="t", store="store-2"), at(5, sensor="t", store="store-2")]
    assert {cause for *_, cause in silences(*readings, as_of=5)} == {"input"}
    # A third store that still reports says it is not the input; one sensor alone is no store.
    alive = [at(minute, sensor="u", store="store-3") for minute in range(6)]
    assert {cause for *_, cause in silences(*readings, *alive, as_of=5)} == {"sensor"}


def test_heartbeats_know_who_is_alive():
    inventory = Reference(sensors=(Sensor("gone", "store-1", retired_at=NOON + HOUR), Sensor("new", "store-1"), Sensor("moved", "store-2")))
    readings = history(at(0, sensor="gone"), at(57.5, sensor="moved"), at(57.499, sensor="quiet"))
    rows = heartbeats.build(readings, inventory, NOON + HOUR)
    found = {row["sensor_id"]: (row["status"], row["store_id"], since_noon(row["silent_since"])) for row in rows}
    assert found == {
        "gone": ("retired", "store-1", None),
        "new": ("never_reported", "store-1", None),
        "moved": ("reporting", "store-2", None),
        "quiet": ("silent", "store-1", round(57.499 * MINUTE) / MINUTE),
    }


def test_a_drop_is_sudden_beyond_five_degrees_within_ten_minutes():
    assert episodes("sudden_drop", at(0, 8.2), at(10, 3.2)) == []
    assert episodes("sudden_drop", at(0, 8.2), at(10, 3.199)) == [(10, 10, 3.199)]
    assert episodes("sudden_drop", at(0, 8.2), at(10.001, 3)) == []


TOO_WARM = {
    "4 min 59 are too short": ([(0, 6), (4.98, 6)], []),
    "exactly 5 min open it": ([(0, 6), (5, 7)], [(0, None, 7)]),
    "exactly at the limit is inside": ([(0, 5), (5, 5)], []),
    "a reading inside before it opened starts anew": ([(0, 6), (3, 5), (4, 6), (8, 6)], []),
    "inside by less than half a degree does not end it": ([(0, 6), (5, 6), (6, 4.501)], [(0, None, 6)]),
    "inside by exactly half a degree ends it": ([(0, 6), (5, 6), (6, 4.501), (7, 4.5)], [(0, 7, 6)]),
    "after its end a new one needs its own 5 min": ([(0, 6), (5, 6), (6, 4), (7, 6), (11, 6)], [(0, 6, 6)]),
    "silence never clears it": ([(0, 6), (5, 6), (50, 6)], [(0, None, 6)]),
}


@pytest.mark.parametrize(("points", "expected"), TOO_WARM.values(), ids=TOO_WARM.keys())
def test_too_warm(points, expected):
    assert episodes("too_warm", *(at(minute, celsius) for minute, celsius in points)) == expected


@pytest.mark.parametrize(("points", "expected"), TOO_WARM.values(), ids=TOO_WARM.keys())
def test_too_cold_is_its_mirror(points, expected):
    mirrored = [(start, end, 5 - peak) for start, end, peak in expected]
    assert episodes("too_cold", *(at(minute, 5 - celsius) for minute, celsius in points)) == mirrored


def test_a_reading_is_judged_by_the_limit_at_its_own_time_and_passed_over_without_one():
    changing = Reference(
        limits=(
            Limit("store-1", high_c=5, valid_to=NOON + 2 * MINUTE),
            Limit("store-1", high_c=8, valid_from=NOON + 4 * MINUTE),
        )
    )
    # The reading at minute 2 lies in no limit's time (from ≤ t < to), the one at minute 4 in the second's.
    opened = episodes("too_warm", at(0, 6), at(2, 1), at(4, 9), at(5, 9), reference=changing)
    assert opened == [(0, None, 9)]
    assert episodes("too_warm", at(0, 6), at(2, 1), at(4, 7), at(5, 9), reference=changing) == []


def test_limits_shown_are_those_at_the_first_reading():
    changing = Reference(limits=(Limit("store-1", 0, 5, valid_to=NOON + MINUTE), Limit("store-1", 1, 4, valid_from=NOON + MINUTE)))
    (row,) = alerts.too_warm([at(0, 6), at(5, 6)], changing)
    assert (row["limit_low_c"], row["limit_high_c"]) == (0, 5)


@pytest.mark.parametrize(("minute", "celsius", "expected"), [(10, 5, [(0, 10, 5)]), (10.001, 5, []), (10, 4.999, [])])
def test_a_rise_of_two_degrees_within_ten_minutes_after_the_door(minute, celsius, expected):
    assert episodes("door_then_rise", at(0, 3, door_open=True), at(minute, celsius, door_open=False)) == expected


def test_a_session_has_one_rise_the_first():
    assert episodes("door_then_rise", at(0, 3, door_open=True), at(1, 6, door_open=True), at(2, 9)) == [(0, 1, 6)]


def left_open(minutes_open: list[float]) -> list[Reading]:
    return [at(minute, door_open=True) for minute in minutes_open]


def test_a_door_is_left_open_from_five_minutes_on():
    assert episodes("door_left_open", *left_open([0, 2, 4, 4.99])) == []
    assert episodes("door_left_open", *left_open([0, 2, 4, 5])) == [(0, 5, 2)]


def test_a_door_is_open_while_its_last_reading_is_fresh_and_the_sensors_last():
    assert episodes("door_left_open", *left_open([0, 2, 4, 5]), as_of=7.5) == [(0, None, 2)]
    assert episodes("door_left_open", *left_open([0, 2, 4, 5]), as_of=7.51) == [(0, 5, 2)]
    assert episodes("door_left_open", *left_open([0, 2, 4, 5]), at(5.5, door_open=False), as_of=6) == [(0, 5, 2)]


def test_a_battery_is_low_below_20_until_25_and_silence_about_it_says_nothing():
    levels = [20, 19.9, None, 24.9, 12, 25, 20]
    readings = [at(minute, battery_pct=level) for minute, level in enumerate(levels)]
    assert episodes("low_battery", *readings) == [(1, 5, 12)]
    assert episodes("low_battery", *readings[:5]) == [(1, None, 12)]


def test_a_missed_heartbeat_is_its_outage_in_the_store_of_the_reading_before_it():
    inventory = Reference(sensors=(Sensor("s", "store-9"),))
    (row,) = alerts.missed_heartbeats(history(at(0), at(3)), inventory, NOON)
    assert (row["store_id"], since_noon(row["ended_at"]), row["status"], row["peak"]) == ("store-1", 3, "resolved", None)
    assert outages.build(history(at(0), at(3)), inventory, NOON)[0]["store_id"] == "store-9"


def test_an_alert_has_the_id_of_its_rule_sensor_and_start():
    (row,) = alerts.sudden_drops([at(0, 9), at(1, 1)], Reference())
    assert row["alert_id"] == sha256(b"sudden_drop|s|2025-11-08T12:01:00.000Z").hexdigest()[:32]
    assert as_text(NOON + 123) == "2025-11-08T12:00:00.123Z"


@pytest.mark.parametrize(
    ("suppression", "marked"),
    [
        (Suppression("store-1", "defrost", from_ms=NOON, to_ms=NOON + MINUTE), "defrost"),
        (Suppression("store-1", "defrost", from_ms=NOON - MINUTE, to_ms=NOON), None),
        (Suppression("store-1", "defrost", sensor_id="t"), None),
        (Suppression("store-1", "defrost", rule="too_cold"), None),
        (Suppression("store-2", "defrost"), None),
        (Suppression("store-1", "defrost", sensor_id="s", rule="too_warm"), "defrost"),
    ],
)
def test_suppression_marks_an_alert_that_starts_in_it(suppression, marked):
    (row,) = alerts.too_warm([at(0, 6), at(5, 6)], Reference(limits=LIMITS.limits, suppressions=(suppression,)))
    assert row["suppressed_by"] == marked


def test_evidence_is_the_first_the_worst_and_the_last_before_the_end():
    (row,) = alerts.too_warm([at(0, 6), at(3, 9), at(5, 9), at(6, 4.8), at(7, 4)], LIMITS)
    assert {name: since_noon(moment) for name, moment in row["evidence"].items()} == {"first": 0, "worst": 3, "last": 6}
