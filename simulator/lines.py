"""The text of many lines at once: every part of a line is looked up in a table, and the padding is thrown away."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from simulator.bad_lines import bad_line
from simulator.chance import Ints
from simulator.odd_lines import blank_line, odd_line
from simulator.physics import COLDEST_C, WARMEST_C
from simulator.rows import KIND, KINDS, Rows
from simulator.spoken import Row, as_plain_rows, spoken, temperature_text
from simulator.stores import World
from simulator.timestamps import MINUTE

# Conflicting copies are up to 4.9 degrees warmer than the warmest room.
COLDEST_MILLI, WARMEST_MILLI = round(COLDEST_C * 1000), round(WARMEST_C * 1000) + 5_000
REASON_OF_KIND = {KIND["conflict"]: ("conflicting_duplicate",), KIND["wrong_clock"]: ("event_ts_in_future",)}
IS_ONE_BY_ONE = np.isin(np.arange(len(KINDS)), [KIND["odd"], KIND["bad"], KIND["blank"]])


@dataclass(frozen=True)
class Special:
    """What is to be known of a line that was written by hand; its first `mark` bytes belong to no line."""

    text: bytes
    form: str
    reasons: tuple[str, ...] = ()
    mark: int = 0


@dataclass(frozen=True)
class Text:
    """Lines in a row: their bytes, the length of each with its end, and the special ones by their place."""

    data: bytes
    lengths: Ints
    specials: dict[int, Special] = field(default_factory=dict)


class Table:
    """Texts by number, as fixed-width bytes filled up with zeros, and their lengths."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = np.array([text.encode() for text in texts])
        self.lengths = np.char.str_len(self.texts)


class LineWriter:
    def __init__(self, world: World, bad_kinds: tuple[str, ...]) -> None:
        self.world = world
        self.bad_kinds = bad_kinds
        self.sensors = Table(f'{{"sensor_id":"{sensor}","store_id":"' for sensor in world.sensor_ids)
        self.stores = Table(f'{store}","temperature":' for store in world.store_ids)
        self.temperatures = _temperature_table()
        self.doors = Table((',"door_open":false', ',"door_open":true'))
        self.batteries = Table(f',"battery_pct":{level},"event_ts":"' for level in range(101))
        self.seconds = _second_table()

    def write(self, rows: Rows) -> Text:
        plain, lengths = self._plain_lines(rows)
        places = np.flatnonzero(IS_ONE_BY_ONE[rows["kind"]])
        if len(places) == 0:
            return Text(plain, lengths)
        specials = dict(zip(places.tolist(), map(self._special, as_plain_rows(rows[places])), strict=True))
        ends = np.cumsum(lengths)
        pieces, done = [], 0
        for place, special in specials.items():
            pieces += [plain[done : ends[place] - lengths[place]], special.text]
            done = ends[place]
        lengths[places] = [len(special.text) for special in specials.values()]
        return Text(b"".join([*pieces, plain[done:]]), lengths, specials)

    def _plain_lines(self, rows: Rows) -> tuple[bytes, Ints]:
        minutes, minute = _minute_table(rows["event_ms"])
        parts: list[tuple[Table, NDArray[np.integer]]] = [
            (self.sensors, rows["sensor"]),
            (self.stores, rows["store"]),
            (self.temperatures, rows["milli"] - COLDEST_MILLI),
            (self.doors, rows["door"].view(np.int8)),
            (self.batteries, rows["battery"]),
            (minutes, minute),
            (self.seconds, rows["event_ms"] % MINUTE),
        ]
        lines = np.empty(len(rows), dtype=[(str(place), table.texts.dtype) for place, (table, _) in enumerate(parts)])
        lengths = np.zeros(len(rows), dtype=np.int64)
        for place, (table, number) in enumerate(parts):
            lines[str(place)] = table.texts[number]
            lengths += table.lengths[number]
        return lines.tobytes().translate(None, b"\0"), lengths

    def _special(self, row: Row) -> Special:
        dice = Random(row.dice)
        if row.kind == KIND["blank"]:
            blank = blank_line(dice)
            return Special(blank.text + blank.end, blank.form)
        said = spoken(row, self.world)
        if row.kind == KIND["bad"]:
            bad = bad_line(said, self.bad_kinds, dice)
            return Special(bad.text + b"\n", bad.kind, bad.reasons)
        odd = odd_line(said, dice)
        return Special(odd.mark + odd.text + odd.end, odd.form, mark=len(odd.mark))


def reasons_of(kind: int, special: Special | None) -> tuple[str, ...]:
    return special.reasons if special else REASON_OF_KIND.get(kind, ())


def form_of(kind: int, special: Special | None) -> str:
    return special.form if special else KINDS[kind]


@cache
def _temperature_table() -> Table:
    return Table(temperature_text(milli) for milli in range(COLDEST_MILLI, WARMEST_MILLI + 1))


@cache
def _second_table() -> Table:
    return Table(f':{ms // 1000:02}.{ms % 1000:03}Z"}}\n' for ms in range(MINUTE))


def _minute_table(event_ms: Ints) -> tuple[Table, Ints]:
    minutes, number = np.unique(event_ms // MINUTE, return_inverse=True)
    return Table(np.datetime_as_string(minutes.astype("datetime64[m]")).tolist()), number
