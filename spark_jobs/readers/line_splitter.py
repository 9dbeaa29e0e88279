"""Cut a stream of bytes into lines with their byte offset, in bounded memory whatever the input.

Lines end with LF or CRLF; a byte-order mark at a line's start belongs to no line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from spark_jobs.readers.unpacker import Broken, Readable

BLOCK_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"


@dataclass
class Lines:
    """Consecutive lines without their ends, and where each starts in the unpacked text."""

    texts: list[bytes]
    positions: npt.NDArray[np.int64]


class BrokenOff(Exception):
    """A packed file stopped before its end; `rest` is what was unpacked of its last line, perhaps nothing."""

    def __init__(self, position: int, rest: bytes) -> None:
        super().__init__(position)
        self.position, self.rest = position, rest


def split(stream: Readable, max_line_bytes: int, start: int = 0, end: int | None = None) -> Iterator[Lines]:
    """The lines that start in [start, end); of an over-long one just enough to see that it is."""
    offset = _line_start(stream, start)
    carry = _Carry(max_line_bytes + len(BOM) + 2)
    while end is None or offset < end:
        try:
            piece = stream.read(BLOCK_BYTES)
        except Broken as broken:
            raise BrokenOff(*_unmarked(carry.head, offset)) from broken
        cut = piece.rfind(b"\n") + 1
        if not piece:
            break
        if cut and carry.dropped:
            newline = piece.find(b"\n") + 1
            carry.add(piece[: newline - 1])
            yield _single(carry.line(), offset)
            offset += carry.size + 1
            carry.clear()
            piece, cut = piece[newline:], cut - newline
        if cut:
            block = carry.head + piece[:cut]
            yield _lines(block, offset, end)
            offset += len(block)
            carry.clear()
        carry.add(piece[cut:])
    if carry.size and (end is None or offset < end):
        last = _single(carry.line(is_ended=False), offset)
        if last.texts[0] or carry.dropped:
            yield last


class _Carry:
    """The beginning of a line whose end has not been read yet, cut to `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.clear()

    def clear(self) -> None:
        self.head, self.size, self._return, self._drops_blanks = b"", 0, b"", True

    def add(self, piece: bytes) -> None:
        room = self.limit - len(self.head)
        self.size += len(piece)
        self.head += piece[:room]
        # Of what is dropped it must be known whether it is blank. A carriage return may be the first half of the line's end,
        # or part of the line: the next byte tells.
        dropped = self._return + piece[room:]
        self._return = dropped[-1:] if dropped.endswith(b"\r") else b""
        self._drops_blanks = self._drops_blanks and not dropped.removesuffix(b"\r").strip(b" \t")

    @property
    def dropped(self) -> bool:
        return self.size > len(self.head)

    def line(self, is_ended: bool = True) -> bytes:
        """Of a cut line the last byte, which lies beyond the limit and is never kept, tells that it is not blank."""
        if not self.dropped:
            return self.head
        is_blank = self._drops_blanks and (is_ended or not self._return) and not self.head.removeprefix(BOM).strip(b" \t")
        return self.head[: -len(BOM)] if is_blank else self.head[:-1] + b"x"


def _line_start(stream: Readable, start: int) -> int:
    """Where the first line that starts at or after `start` begins; the stream is left there."""
    if start == 0:
        return 0
    stream = cast(BinaryIO, stream)  # only a plain file is read from its middle
    offset = start - 1
    stream.seek(offset)
    while piece := stream.read(BLOCK_BYTES):
        newline = piece.find(b"\n")
        if newline >= 0:
            return stream.seek(offset + newline + 1)
        offset += len(piece)
    return offset


def _lines(block: bytes, offset: int, end: int | None) -> Lines:
    texts = block.split(b"\n")
    texts.pop()  # the block ends with LF
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    positions = offset + np.cumsum(lengths + 1) - lengths - 1
    if end is not None and positions[-1] >= end:
        keep = int(np.searchsorted(positions, end))
        texts, positions = texts[:keep], positions[:keep]
    if b"\r\n" in block:
        texts = [text[:-1] if text.endswith(b"\r") else text for text in texts]
    if BOM in block:
        for i in [i for i, text in enumerate(texts) if text.startswith(BOM)]:
            positions[i], texts[i] = _unmarked(texts[i], int(positions[i]))
    return Lines(texts, positions)


def _single(text: bytes, offset: int) -> Lines:
    position, text = _unmarked(text, offset)
    return Lines([text], np.array([position], np.int64))


def _unmarked(text: bytes, position: int) -> tuple[int, bytes]:
    return (position + len(BOM), text[len(BOM) :]) if text.startswith(BOM) else (position, text)
