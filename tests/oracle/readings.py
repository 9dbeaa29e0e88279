"""All lines of a history, in any order: the readings that won, the quarantine, and the books.

Read as:
- temperatures are compared by their thousandths, also between duplicates ("the integer that every … comparison uses");
- null against a value "says something else"; another event_id alone does not;
- a line is booked under its own store_id, a conflicting duplicate too; what cannot be read under None; a blank under no store;
- texts compare by code point (as their UTF-8 bytes do); false is smaller than true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.oracle.clock import is_late
from tests.oracle.lines import Blank, Reading, Rejected, read_line

Winners = dict[tuple[str, int], Reading]


@dataclass(frozen=True)
class Line:
    """A line's bytes without its end, when it arrived, and whether it is what is left of a truncated file's last one."""

    content: bytes
    arrived_ms: int
    is_truncated: bool = False


@dataclass(frozen=True)
class Quarantined:
    """A line with its reasons, sorted; the store where it could be read."""

    line: Line
    reasons: tuple[str, ...]
    store_id: str | None


@dataclass(frozen=True)
class History:
    """What a lake holds after all lines were read."""

    winners: Winners
    duplicates: list[Line]
    quarantined: list[Quarantined]
    blank: int
    books: dict[str, int]
    books_by_store: dict[str | None, dict[str, int]]

    @property
    def conflicting_duplicates(self) -> list[Quarantined]:
        """The duplicates that said something else."""
        return [row for row in self.quarantined if row.reasons == ("conflicting_duplicate",)]


def read_history(lines: Iterable[Line]) -> History:
    """Sort every line into its one place."""
    read = [(line, _read(line)) for line in lines]
    valid = [(line, outcome) for line, outcome in read if isinstance(outcome, Reading)]
    winners = winners_of(reading for _, reading in valid)
    quarantined = [Quarantined(line, outcome.reasons, outcome.store_id) for line, outcome in read if isinstance(outcome, Rejected)]
    duplicates: list[tuple[Line, Reading]] = []
    won: set[tuple[str, int]] = set()
    for line, reading in valid:
        winner = winners[_key(reading)]
        if reading == winner and _key(reading) not in won:
            won.add(_key(reading))
        elif _says(reading) == _says(winner):
            duplicates.append((line, reading))
        else:
            quarantined.append(Quarantined(line, ("conflicting_duplicate",), reading.store_id))
    blank = sum(isinstance(outcome, Blank) for _, outcome in read)
    by_store = _books_by_store(winners, [reading for _, reading in duplicates], quarantined)
    books = {
        "lines_read": len(read),
        "readings_new": len(winners),
        "duplicates": len(duplicates),
        "quarantined": len(quarantined),
        "blank": blank,
        "late_rows": sum(is_late(reading) for reading in winners.values()),
    }
    return History(winners, [line for line, _ in duplicates], quarantined, blank, books, by_store)


def winners_of(readings: Iterable[Reading]) -> Winners:
    """The first to arrive of each (sensor_id, event_ts); of the same instant the smallest."""
    winners: Winners = {}
    for reading in readings:
        rival = winners.get(_key(reading))
        if rival is None or _precedence(reading) < _precedence(rival):
            winners[_key(reading)] = reading
    return winners


def by_sensor(winners: Winners) -> dict[str, list[Reading]]:
    """Each sensor's readings in event time."""
    histories: dict[str, list[Reading]] = {}
    for reading in sorted(winners.values(), key=lambda reading: (reading.sensor_id, reading.event_ms)):
        histories.setdefault(reading.sensor_id, []).append(reading)
    return histories


def by_store(winners: Winners) -> dict[str, list[Reading]]:
    """Each store's readings in event time."""
    histories: dict[str, list[Reading]] = {}
    for reading in sorted(winners.values(), key=lambda reading: (reading.store_id, reading.event_ms, reading.sensor_id)):
        histories.setdefault(reading.store_id, []).append(reading)
    return histories


def _read(line: Line) -> Reading | Rejected | Blank:
    # What is left of the last line of a truncated file, even if empty, is this row and nothing else.
    if line.is_truncated:
        return Rejected(("truncated_file",))
    return read_line(line.content, line.arrived_ms)


def _key(reading: Reading) -> tuple[str, int]:
    return reading.sensor_id, reading.event_ms


def _says(reading: Reading) -> tuple:
    return reading.temperature, reading.door_open, reading.battery_pct, reading.store_id


def _precedence(reading: Reading) -> tuple:
    tie_break = (reading.temperature, reading.store_id, reading.door_open, reading.battery_pct, reading.event_id)
    return reading.arrived_ms, *(_null_first(value) for value in tie_break)


def _null_first(value: object) -> tuple:
    return () if value is None else (value,)


def _books_by_store(winners: Winners, duplicates: list[Reading], quarantined: list[Quarantined]) -> dict[str | None, dict[str, int]]:
    counts = {
        "readings_new": Counter(reading.store_id for reading in winners.values()),
        "duplicates": Counter(reading.store_id for reading in duplicates),
        "quarantined": Counter(row.store_id for row in quarantined),
        "late_rows": Counter(reading.store_id for reading in winners.values() if is_late(reading)),
    }
    stores = {store for counted in counts.values() for store in counted}
    return {store: {column: counted[store] for column, counted in counts.items()} for store in stores}
