"""Every kind of line that belongs in quarantine, with the reasons it was made for.

A kind has many ways; which one is taken is drawn. The reasons come from the way itself, never from reading the line.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from simulator.bad_fields import BATTERIES, MISSING, TEMPERATURES, TYPES, bad_times, too_early_or_future
from simulator.spoken import Spoken

LONGEST_LINE = 64 * 1024
REQUIRED = ("sensor_id", "store_id", "temperature", "event_ts")
RARE = {"line_too_long": 0.02}  # they are five hundred times as long as the others


class BadLine(NamedTuple):
    text: bytes
    reasons: tuple[str, ...]
    kind: str


def bad_line(spoken: Spoken, kinds: tuple[str, ...], dice: Random) -> BadLine:
    kind = dice.choices(kinds, [RARE.get(kind, 1.0) for kind in kinds])[0]
    text, reasons = WAYS[kind](spoken, dice)
    return BadLine(text if isinstance(text, bytes) else text.encode(), tuple(sorted(reasons)), kind)


Made = tuple[str | bytes, tuple[str, ...]]


def malformed_json(spoken: Spoken, dice: Random) -> Made:
    line, fields = spoken.line, spoken.fields
    name = fields["sensor_id"][1:-1]
    ways = (
        line[: dice.randrange(1, len(line))],
        spoken.saying(temperature=dice.choice(("NaN", "Infinity", "-Infinity", "02.7", "+2.7", "2.", ".5", "0x1F", "2,7", ""))),
        line + dice.choice((" ok", "}", ",", line, "]", " // checked")),
        line.replace('"', "'"),
        line[:-1] + ",}",
        line.replace('"temperature"', "temperature"),
        spoken.saying(door_open=dice.choice(("True", "FALSE", "None", "undefined"))),
        spoken.saying(sensor_id=f'"{name}{dice.choice((chr(92) + "ud83d", chr(92) + "udc00", chr(92) + "ude00" + chr(92) + "ud83d"))}"'),
        spoken.saying(sensor_id=f'"{name}{dice.choice((chr(9), chr(1), chr(27)))}"'),
        spoken.saying(sensor_id=f'"{name}{chr(92)}x41"'),
    )
    return dice.choice(ways), ("malformed_json",)


def not_an_object(spoken: Spoken, dice: Random) -> Made:
    ways = (f"[{spoken.line}]", f"[{spoken.fields['temperature']}, 1]", spoken.fields["event_ts"])
    return dice.choice((*ways, "[]", "42", "-18.5", "true", "null", '"online"')), ("not_an_object",)


def invalid_utf8(spoken: Spoken, dice: Random) -> Made:
    wrong = dice.choice((b"\xff", b"\xc3\x28", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"K\xfchlraum", b"\x80"))
    field = dice.choice(("sensor_id", "store_id", "event_ts"))
    before, after = spoken.saying(**{field: '"?"'}).encode().split(b"?")
    return before + wrong + after, ("invalid_utf8",)


def line_too_long(spoken: Spoken, dice: Random) -> Made:
    return padded(spoken, LONGEST_LINE + dice.choice((1, 2, dice.randrange(3, 5_000)))), ("line_too_long",)


def padded(spoken: Spoken, length: int) -> str:
    """The reading with a note that makes its line exactly this long."""
    return spoken.saying(note='"' + "." * (length - len(spoken.saying(note='""'))) + '"')


def missing(spoken: Spoken, dice: Random) -> Made:
    field = dice.choice(REQUIRED)
    return spoken.saying(**{field: dice.choice(MISSING[field])}), (f"missing_{field}",)


def wrong_type(spoken: Spoken, dice: Random) -> Made:
    field = dice.choice(tuple(TYPES))
    return spoken.saying(**{field: dice.choice(TYPES[field])}), (f"wrong_type_{field}",)


def bad_event_ts(spoken: Spoken, dice: Random) -> Made:
    return spoken.saying(event_ts=dice.choice(bad_times(spoken.event_ms))), ("bad_event_ts",)


def temperature_out_of_range(spoken: Spoken, dice: Random) -> Made:
    return spoken.saying(temperature=dice.choice(TEMPERATURES)), ("temperature_out_of_range",)


def battery_out_of_range(spoken: Spoken, dice: Random) -> Made:
    return spoken.saying(battery_pct=dice.choice(BATTERIES)), ("battery_out_of_range",)


def several(spoken: Spoken, dice: Random) -> Made:
    """Two or three fields are wrong, each for a reason of its own."""
    changed: dict[str, str | None] = {}
    reasons = []
    for field in dice.sample(tuple(TYPES), dice.choice((2, 2, 3))):
        told, reason = dice.choice(_wrong_ways(field, spoken))
        changed[field] = told
        reasons.append(reason)
    return spoken.saying(**changed), tuple(reasons)


def _wrong_ways(field: str, spoken: Spoken) -> list[tuple[str | None, str]]:
    ways: list[tuple[str | None, str]] = [(text, f"wrong_type_{field}") for text in TYPES[field][:2]]
    if field in REQUIRED:
        ways += [(text, f"missing_{field}") for text in MISSING[field]]
    if field == "event_ts":
        ways += too_early_or_future(spoken.arrived_ms)
    if field == "temperature":
        ways += [(text, "temperature_out_of_range") for text in TEMPERATURES[:3]]
    if field == "battery_pct":
        ways += [(text, "battery_out_of_range") for text in BATTERIES[:3]]
    return ways


WAYS: dict[str, Callable[[Spoken, Random], Made]] = {
    way.__name__: way
    for way in (
        malformed_json,
        not_an_object,
        invalid_utf8,
        line_too_long,
        missing,
        wrong_type,
        bad_event_ts,
        temperature_out_of_range,
        battery_out_of_range,
        several,
    )
}
