"""What a call delivered: exact counts of lines, and the story of the span."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np

from simulator.interruptions import Interruption
from simulator.lines import Text, reasons_of
from simulator.rows import DUPLICATES, KINDS, NEW_READINGS, Rows
from simulator.stores import World
from simulator.timestamps import to_datetime


@dataclass
class Delivery:
    """`kinds` counts each line once; `reasons` counts every reason a quarantined line has."""

    world: World
    start_ms: int
    as_of_ms: int
    files: list[Path] = field(default_factory=list)
    unpacked_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    on_the_way: int = 0
    silences: list[Interruption] = field(default_factory=list)
    cut_offs: list[Interruption] = field(default_factory=list)
    input_stops: list[Interruption] = field(default_factory=list)

    @property
    def as_of(self) -> datetime:
        return to_datetime(self.as_of_ms)

    @property
    def lines(self) -> int:
        return self.kinds.total()

    @property
    def readings(self) -> int:
        """Lines that are a reading nobody sent before."""
        return sum(self.kinds[kind] for kind in NEW_READINGS)

    @property
    def duplicates(self) -> int:
        return sum(self.kinds[kind] for kind in DUPLICATES)

    @property
    def blank(self) -> int:
        return self.kinds["blank"]

    @property
    def quarantined(self) -> int:
        return self.lines - self.readings - self.duplicates - self.blank

    def book(self, rows: Rows, text: Text) -> None:
        self.unpacked_bytes += len(text.data)
        counts = np.bincount(rows["kind"], minlength=len(KINDS)).tolist()
        for kind, count in enumerate(counts):
            if count:
                self.kinds[KINDS[kind]] += count
                for reason in reasons_of(kind, None):
                    self.reasons[reason] += count
        for special in text.specials.values():
            self.reasons.update(special.reasons)

    def book_break(self, lost: int) -> None:
        self.kinds["truncated_file"] += 1
        self.reasons["truncated_file"] += 1
        self.lost += lost
