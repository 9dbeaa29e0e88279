"""Lines that look unusual and are good all the same: they say exactly what the plain line would have said."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from simulator.bad_lines import LONGEST_LINE, padded
from simulator.spoken import Spoken, json_object
from simulator.timestamps import SECOND, to_datetime

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
RARE = {"longest_line": 0.01}
UNKNOWN_FIELDS = (
    '"firmware":"4.1.0"',
    '"Temperature":999',
    '"raw":{"adc":[1,2,{"temperature":99}]}',
    '"näme":"Kühlraum ❄"',
    '"rssi":-71,"":null',
)
BLANKS = (b"", b" ", b"\t", b"   ", b" \t ")
LINE_ENDS = (b"\n", b"\n", b"\n", b"\r\n")


class OddLine(NamedTuple):
    """`mark` stands before the line and belongs to no line."""

    text: bytes
    mark: bytes
    end: bytes
    form: str


def odd_line(spoken: Spoken, dice: Random) -> OddLine:
    form = dice.choices(tuple(FORMS), [RARE.get(form, 1.0) for form in FORMS])[0]
    mark = BYTE_ORDER_MARK if form == "byte_order_mark" else b""
    end = b"\r\n" if form == "crlf" else b"\n"
    return OddLine(FORMS[form](spoken, dice).encode(), mark, end, form)


def blank_line(dice: Random) -> OddLine:
    return OddLine(dice.choice(BLANKS), b"", dice.choice(LINE_ENDS), "blank")


def _plain(spoken: Spoken, dice: Random) -> str:
    return spoken.line


def _extra_fields(spoken: Spoken, dice: Random) -> str:
    return "{" + dice.choice(UNKNOWN_FIELDS) + "," + spoken.line[1:]


def _repeated_key(spoken: Spoken, dice: Random) -> str:
    """Of a repeated key the last counts, whatever the first was."""
    name = dice.choice(("temperature", "sensor_id", "event_ts", "door_open"))
    return f'{{"{name}":{dice.choice(("null", "-12345", "[]"))},' + spoken.line[1:]


def _event_id(spoken: Spoken, dice: Random) -> str:
    return spoken.saying(event_id=f'"{dice.getrandbits(64):016x}"')


def _null_optional(spoken: Spoken, dice: Random) -> str:
    return spoken.saying(**dict.fromkeys(dice.sample(("door_open", "battery_pct", "event_id"), 2), "null"))


def _without_optional(spoken: Spoken, dice: Random) -> str:
    left_out = dice.choice((("door_open",), ("battery_pct",), ("door_open", "battery_pct")))
    return spoken.saying(**dict.fromkeys(left_out))


def _other_offset(spoken: Spoken, dice: Random) -> str:
    minutes, suffix = dice.choice(((60, "+01:00"), (330, "+0530"), (-300, "-05"), (-210, "-03:30"), (0, "+00:00")))
    moment = to_datetime(spoken.event_ms, minutes).replace(tzinfo=None)
    return spoken.saying(event_ts=f'"{moment.isoformat(timespec="milliseconds")}{suffix}"')


def _other_fraction(spoken: Spoken, dice: Random) -> str:
    """A comma, or more digits than a millisecond has: those are cut, not rounded."""
    seconds = f"{to_datetime(spoken.event_ms):%Y-%m-%dT%H:%M:%S}"
    fraction = f"{spoken.event_ms % SECOND:03}"
    return spoken.saying(event_ts=f'"{seconds}{dice.choice((".", ","))}{fraction}{dice.choice(("", "9", "999", "000999", "999999999"))}Z"')


def _spaced(spoken: Spoken, dice: Random) -> str:
    inner = " , ".join(f'"{name}" :\t{text}' for name, text in spoken.fields.items())
    return dice.choice(("", "  ", "\t")) + "{ " + inner + " }" + dice.choice(("", " ", "\t"))


def _shuffled(spoken: Spoken, dice: Random) -> str:
    return json_object(dict(dice.sample(tuple(spoken.fields.items()), len(spoken.fields))))


def _escaped(spoken: Spoken, dice: Random) -> str:
    return spoken.line.replace("sensor-", "sensor\\u002d").replace('"temperature"', '"temper\\u0061ture"')


def _number_form(spoken: Spoken, dice: Random) -> str:
    temperature = spoken.fields["temperature"]
    battery = spoken.fields["battery_pct"]
    return spoken.saying(temperature=temperature + dice.choice(("e0", "E+00", "000")), battery_pct=battery + dice.choice((".0", "e0")))


def _longest_line(spoken: Spoken, dice: Random) -> str:
    return padded(spoken, LONGEST_LINE)


FORMS: dict[str, Callable[[Spoken, Random], str]] = {
    "crlf": _plain,
    "byte_order_mark": _plain,
    "extra_fields": _extra_fields,
    "repeated_key": _repeated_key,
    "event_id": _event_id,
    "null_optional": _null_optional,
    "without_optional": _without_optional,
    "other_offset": _other_offset,
    "other_fraction": _other_fraction,
    "spaced": _spaced,
    "shuffled": _shuffled,
    "escaped": _escaped,
    "number_form": _number_form,
    "longest_line": _longest_line,
}
