"""Rows become landing files: one for each upload of a gateway, in the order of their place."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator import chance
from simulator.delivery import Delivery
from simulator.gateways import Gateways
from simulator.landing_file import LandingFile
from simulator.lines import LineWriter, Text
from simulator.options import Options
from simulator.rows import KIND, Rows, in_files
from simulator.timestamps import MINUTE, to_datetime
from simulator.truth import Truth

ROWS_AT_ONCE = 50_000
UNENDED_SHARE = 0.05  # of the files, when odd lines are wanted: the last line has no line end


@dataclass(frozen=True)
class Landing:
    options: Options
    gateways: Gateways
    writer: LineWriter
    delivery: Delivery
    truth: Truth

    def receive(self, rows: Rows) -> None:
        if len(rows) == 0:
            return
        for uploaded in in_files(rows, self._gateway(rows)):
            self._write_file(uploaded, int(self._gateway(uploaded[:1])[0]))

    def _gateway(self, rows: Rows) -> chance.Ints:
        return self.gateways.of_store(self.gateways.world.store[rows["sensor"]])

    def _write_file(self, rows: Rows, gateway: int) -> None:
        arrived_ms = int(rows["arrived_ms"][0])
        number = arrived_ms // self.options.file_ms + gateway
        form = self.options.formats[number % len(self.options.formats)]
        lots = chance.uniform(self.gateways.world.seed, "file", gateway, arrived_ms, np.arange(3))
        breaks_off = form != "plain" and lots[0] < self.options.truncated
        with LandingFile(self._folder(gateway, arrived_ms), self._stem(arrived_ms), form, arrived_ms) as file:
            if not (breaks_off and self._write_part(file, rows, lots[2])):
                self._write_whole(file, rows, is_unended=lots[1] < UNENDED_SHARE and self.options.odd > 0)
        self.delivery.files.append(file.path)
        self.truth.file_landed(file.path.relative_to(self.options.landing_root).as_posix())

    def _write_whole(self, file: LandingFile, rows: Rows, is_unended: bool) -> None:
        written = 0
        for start in range(0, len(rows), ROWS_AT_ONCE):
            block = rows[start : start + ROWS_AT_ONCE]
            text = self.writer.write(block)
            if is_unended and start + len(block) == len(rows) and block["kind"][-1] != KIND["blank"]:
                text = _without_last_end(text)
            file.write(text.data)
            self.delivery.book(block, text)
            self.truth.note_lines(written, block, text)
            written += len(text.data)

    def _write_part(self, file: LandingFile, rows: Rows, lot: float) -> bool:
        """An upload that died. What it loses for good are only readings of which there is no copy."""
        originals = np.flatnonzero(rows["kind"] == KIND["original"])
        last_needed = int(originals[-1]) if len(originals) else 0
        may_be_lost = np.flatnonzero(rows["kind"] == KIND["good"])
        may_be_lost = may_be_lost[may_be_lost > last_needed]
        if len(may_be_lost) == 0:
            return False
        broken = int(may_be_lost[int(lot * len(may_be_lost))])
        kept, last = self.writer.write(rows[:broken]), self.writer.write(rows[broken : broken + 1]).data
        # Every fourth one breaks exactly between two lines.
        left = last[: 0 if broken % 4 == 0 else 1 + int(lot * 1e6) % (len(last) - 3)]
        file.write(kept.data + left)
        file.break_off()
        self.delivery.book(rows[:broken], kept)
        self.delivery.book_break(lost=len(rows) - broken)
        self.truth.note_lines(0, rows[:broken], kept)
        self.truth.note_break(len(kept.data), int(rows["arrived_ms"][0]))
        return True

    def _folder(self, gateway: int, arrived_ms: int) -> Path:
        source = "all-stores" if self.gateways.one_for_all else self.gateways.world.store_ids[gateway]
        return self.options.landing_root / source / f"{to_datetime(arrived_ms):%Y-%m-%d}"

    def _stem(self, arrived_ms: int) -> str:
        return f"{to_datetime(arrived_ms):{'%H%M' if self.options.file_ms >= MINUTE else '%H%M%S'}}"


def _without_last_end(text: Text) -> Text:
    data = text.data.removesuffix(b"\n").removesuffix(b"\r")
    lengths = text.lengths.copy()
    lengths[-1] -= len(text.data) - len(data)
    return Text(data, lengths, text.specials)
