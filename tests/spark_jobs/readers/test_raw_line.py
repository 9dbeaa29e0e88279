"""The raw line behind a row (P1), also where nothing is left of it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from include.settings import Settings
from spark_jobs.readers.raw_line import lines_at

TEXT = b"first\nlast\n"
CASES = {
    "the lines of a good file, and nothing behind them": ("x.jsonl.gz", gzip.compress(TEXT), [b"first", b"last", None, None]),
    "the empty rest of a file without its checksum": ("x.jsonl.gz", gzip.compress(TEXT)[:-8], [b"first", b"last", b"", None]),
    "a plain file is never broken off": ("x.jsonl", TEXT, [b"first", b"last", None, None]),
}


@pytest.mark.parametrize(("name", "content", "lines"), CASES.values(), ids=CASES)
def test_a_position_leads_to_its_line(tmp_path: Path, name: str, content: bytes, lines: list[bytes | None]) -> None:
    (tmp_path / name).write_bytes(content)
    assert lines_at(str(tmp_path / name), [0, 6, len(TEXT), len(TEXT) + 1], Settings()) == lines
