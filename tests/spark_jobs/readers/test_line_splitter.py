"""Lines and their byte offsets, against a naive splitter, whatever the block size and wherever the stream is cut into parts."""

from __future__ import annotations

import errno
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.readers import line_splitter
from spark_jobs.readers.line_splitter import BOM, split

LIMIT = 20
PIECES = st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\r", BOM, b" ", b"\t", b"x" * 9, b" " * 30])


def naive(text: bytes) -> list[tuple[int, bytes]]:
    lines, offset = [], 0
    parts = text.split(b"\n")
    for i, part in enumerate(parts):
        start, is_last = offset, i == len(parts) - 1
        offset += len(part) + 1
        if is_last and part in (b"", BOM):
            break
        line = part if is_last or not part.endswith(b"\r") else part[:-1]
        if line.startswith(BOM):
            start, line = start + len(BOM), line[len(BOM) :]
        is_blank = not line.strip(b" \t")
        lines.append((start, b"" if is_blank else line[:LIMIT]))
    return lines


def found(text: bytes, start: int = 0, end: int | None = None) -> list[tuple[int, bytes]]:
    pairs = (
        (int(position), line)
        for lines in split(io.BytesIO(text), LIMIT, start, end)
        for position, line in zip(lines.positions, lines.texts, strict=True)
    )
    return [(position, b"" if not line.strip(b" \t") else line[:LIMIT]) for position, line in pairs]


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=30), st.integers(1, 12), st.integers(0, 80))
def test_every_line_is_found_once_at_its_offset(pieces: list[bytes], block: int, cut: int) -> None:
    text, whole = b"".join(pieces), line_splitter.BLOCK_BYTES
    line_splitter.BLOCK_BYTES = block
    try:
        assert found(text) == naive(text)
        assert found(text, 0, cut) + found(text, cut, None) == naive(text)
    finally:
        line_splitter.BLOCK_BYTES = whole


def test_a_line_of_many_megabytes_is_cut_and_its_neighbours_are_whole() -> None:
    text = b"one\n" + b"x" * 5_000_000 + b"\nthree"
    lines = [(int(p), t) for part in split(io.BytesIO(text), 65536) for p, t in zip(part.positions, part.texts, strict=True)]
    assert [(position, len(line)) for position, line in lines] == [(0, 3), (4, 65541), (5_000_005, 5)]


def test_a_disk_that_fails_is_no_fault_of_the_file() -> None:
    """It must not be booked as broken off: the next attempt may read it."""

    class Failing:
        def read(self, size: int = -1) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        list(split(Failing(), LIMIT))
