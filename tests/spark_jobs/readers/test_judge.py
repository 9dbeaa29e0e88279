"""P2, line by line: what is a reading, and why everything else is none."""

from __future__ import annotations

import json

import pytest

from include.settings import Settings
from spark_jobs.readers.judge import judge

ARRIVED_MS = 1_762_616_000_000  # 2025-11-08T15:33:20Z
GOOD = {"sensor_id": "sensor-42", "store_id": "store-11", "temperature": 2.7, "event_ts": "2025-11-08T15:32:12.123Z"}


def line(**changes: object) -> bytes:
    return json.dumps({name: value for name, value in {**GOOD, **changes}.items() if value != "absent"}).encode()


BAD = {
    "text that is no JSON": (b"garbage", ["malformed_json"]),
    "a cut line": (line()[:-5], ["malformed_json"]),
    "text after the object": (line() + b" x", ["malformed_json"]),
    "two objects": (line() + line(), ["malformed_json"]),
    "NaN": (line().replace(b"2.7", b"NaN"), ["malformed_json"]),
    "Infinity": (line().replace(b"2.7", b"-Infinity"), ["malformed_json"]),
    "a lone surrogate": (line(note="x").replace(b'"x"', b'"\\ud800"'), ["malformed_json"]),
    "a lone surrogate in a list": (line(note="x").replace(b'"x"', b'[["\\udc00"]]'), ["malformed_json"]),
    "a control character in a text": (line().replace(b"sensor-42", b"sensor\x0142"), ["malformed_json"]),
    "single quotes": (line().replace(b'"', b"'"), ["malformed_json"]),
    "a carriage return alone": (b"\r", ["malformed_json"]),
    "deeper than anyone nests": (b"[" * 40_000, ["malformed_json"]),
    "a list": (b"[1]", ["not_an_object"]),
    "a text": (b'"x"', ["not_an_object"]),
    "null": (b"null", ["not_an_object"]),
    "bytes that are no UTF-8": (line().replace(b"42", b"\xff"), ["invalid_utf8"]),
    "a surrogate in UTF-8": (line().replace(b"42", b"\xed\xa0\x80"), ["invalid_utf8"]),
    "longer than 64 KiB": (line(note="x" * 66_000), ["line_too_long"]),
    "too long and no JSON": (b"x" * 65_537, ["line_too_long"]),
    "an empty object": (b"{}", ["missing_sensor_id", "missing_store_id", "missing_temperature", "missing_event_ts"]),
    "an empty sensor": (line(sensor_id=""), ["missing_sensor_id"]),
    "an empty store": (line(store_id=""), ["missing_store_id"]),
    "null for a temperature": (line(temperature=None), ["missing_temperature"]),
    "the names in capitals": (line(sensor_id="absent", SENSOR_ID="x"), ["missing_sensor_id"]),
    "a number for a sensor": (line(sensor_id=42), ["wrong_type_sensor_id"]),
    "a text for a temperature": (line(temperature="2.7"), ["wrong_type_temperature"]),
    "true for a temperature": (line(temperature=True), ["wrong_type_temperature"]),
    "a number for a time": (line(event_ts=17), ["wrong_type_event_ts"]),
    "a number for the door": (line(door_open=1), ["wrong_type_door_open"]),
    "a text for the battery": (line(battery_pct="87"), ["wrong_type_battery_pct"]),
    "a number for the event's id": (line(event_id=1), ["wrong_type_event_id"]),
    "an empty time": (line(event_ts=""), ["bad_event_ts"]),
    "a time without offset": (line(event_ts="2025-11-08T15:32:12"), ["bad_event_ts"]),
    "a day": (line(event_ts="2025-11-08"), ["bad_event_ts"]),
    "a day that does not exist": (line(event_ts="2025-02-30T00:00:00Z"), ["bad_event_ts"]),
    "an hour that does not exist": (line(event_ts="2025-11-08T25:00:00Z"), ["bad_event_ts"]),
    "a small z": (line(event_ts="2025-11-08T15:32:12z"), ["bad_event_ts"]),
    "a space for the T": (line(event_ts="2025-11-08 15:32:12Z"), ["bad_event_ts"]),
    "digits of another alphabet": (line(event_ts="٢٠٢٥-11-08T15:32:12Z"), ["bad_event_ts"]),
    "the last moment of 1999": (line(event_ts="1999-12-31T23:59:59.999Z"), ["bad_event_ts"]),
    "1999 by its offset": (line(event_ts="2000-01-01T00:30:00+01:00"), ["bad_event_ts"]),
    "just over five minutes ahead": (line(event_ts="2025-11-08T15:38:20.001Z"), ["event_ts_in_future"]),
    "above 60 degrees": (line(temperature=60.001), ["temperature_out_of_range"]),
    "below -90 degrees": (line(temperature=-90.001), ["temperature_out_of_range"]),
    "a number that no double holds": (line().replace(b"2.7", b"1e400"), ["temperature_out_of_range"]),
    "thousands of digits": (line().replace(b"2.7", b"9" * 5_000), ["temperature_out_of_range"]),
    "a battery above 100": (line(battery_pct=100.5), ["battery_out_of_range"]),
    "a battery below 0": (line(battery_pct=-1), ["battery_out_of_range"]),
    "several things at once": (
        line(sensor_id="absent", temperature=99, event_ts="soon", battery_pct=101, door_open="yes"),
        ["missing_sensor_id", "wrong_type_door_open", "bad_event_ts", "temperature_out_of_range", "battery_out_of_range"],
    ),
}  # fmt: skip

GOOD_LINES = {
    "as usual": (line(), {"event_ms": 1_762_615_932_123, "temperature_mc": 2700, "sensor_id": "sensor-42", "store_id": "store-11"}),
    "with everything": (line(door_open=False, battery_pct=87, event_id="e1"), {"door_open": False, "battery_pct": 87.0, "event_id": "e1"}),
    "minutes only": (line(event_ts="2025-11-08T15:32Z"), {"event_ms": 1_762_615_920_000}),
    "a comma and many digits are cut, not rounded": (line(event_ts="2025-11-08T15:32:12,1239999999Z"), {"event_ms": 1_762_615_932_123}),
    "an offset": (line(event_ts="2025-11-08T16:32:12+01:00"), {"event_ms": 1_762_615_932_000}),
    "an offset without colon": (line(event_ts="2025-11-08T10:02:12-0530"), {"event_ms": 1_762_615_932_000}),
    "an offset of hours": (line(event_ts="2025-11-08T16:32:12+01"), {"event_ms": 1_762_615_932_000}),
    "exactly five minutes ahead": (line(event_ts="2025-11-08T15:38:20Z"), {"event_ms": ARRIVED_MS + 300_000}),
    "the first moment of 2000": (line(event_ts="2000-01-01T00:00:00Z"), {"event_ms": 946_684_800_000}),
    "60 degrees by a hair": (line(temperature=60.0004), {"temperature_mc": 60_000}),
    "half to even": (line(temperature=0.0005), {"temperature_mc": 0}),
    "minus zero": (line().replace(b"2.7", b"-0.0"), {"temperature_mc": 0}),
    "minus zero battery": (line(battery_pct=-0.0), {"battery_pct": 0.0}),
    "null means absent": (line(door_open=None, battery_pct=None, event_id=None), {"door_open": None, "battery_pct": None}),
    "of a repeated key the last counts": (line()[:-1] + b', "temperature": 3}', {"temperature_mc": 3000}),
    "the repeated one may have been wrong": (b'{"temperature": "x", ' + line()[1:], {"temperature_mc": 2700}),
    "a pair of surrogates": (line(note="x").replace(b'"x"', b'"\\ud83d\\ude00"'), {"temperature_mc": 2700}),
    "unknown fields": (line(firmware={"v": [1, 2]}), {"temperature_mc": 2700}),
    "ids are not trimmed": (line(sensor_id=" a "), {"sensor_id": " a "}),
    "blanks around": (b" \t" + line() + b" ", {"temperature_mc": 2700}),
    "a carriage return at the end": (line() + b"\r", {"temperature_mc": 2700}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reasons"), BAD.values(), ids=BAD)
def test_a_bad_line_has_all_its_reasons(text: bytes, reasons: list[str]) -> None:
    assert list(judge(text, ARRIVED_MS, Settings()).reasons) == reasons


@pytest.mark.parametrize(("text", "expected"), GOOD_LINES.values(), ids=GOOD_LINES)
def test_a_good_line_is_a_reading(text: bytes, expected: dict[str, object]) -> None:
    verdict = judge(text, ARRIVED_MS, Settings())
    assert verdict.reasons == ()
    assert {name: getattr(verdict, name) for name in expected} == expected
    assert str(verdict.battery_pct) != "-0.0"


def test_a_bad_line_still_tells_its_store() -> None:
    assert judge(line(temperature="x"), ARRIVED_MS, Settings()).store_id == "store-11"
    assert judge(line(store_id=7), ARRIVED_MS, Settings()).store_id is None
