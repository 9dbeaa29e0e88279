"""Small worlds, and a reader of landing files that knows nothing of the simulator."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard

from simulator import Delivery, Options, simulate


class Line(NamedTuple):
    file: str
    offset: int
    text: bytes
    arrived_ms: int


def unpacked(path: Path) -> bytes:
    packed = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(packed)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read()
    return packed


def lines_of(path: Path, landing: Path) -> list[Line]:
    """Lines as the contract cuts them: LF or CRLF ends a line, a byte-order mark at its start belongs to no line."""
    text, arrived_ns = unpacked(path), path.stat().st_mtime_ns
    assert arrived_ns % 1_000_000 == 0, "arrival stamps are whole milliseconds"
    found, start = [], 0
    while start < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        begin = start + 3 if text.startswith(b"\xef\xbb\xbf", start) else start
        found.append(Line(path.relative_to(landing).as_posix(), begin, text[begin:end].removesuffix(b"\r"), arrived_ns // 1_000_000))
        start = end + 1
    return found


class Lake:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "lake"
        self.landing = self.path / "landing"
        self.truth_path = folder / "truth.jsonl"

    def simulate(self, **options: Any) -> Delivery:
        return simulate(Options(**{"lake": self.path, "truth": self.truth_path, "stores": 3, "sensors": 4, **options}))

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.landing.rglob("*") if path.is_file())

    @property
    def lines(self) -> list[Line]:
        return [line for path in self.files for line in lines_of(path, self.landing)]

    @property
    def truth(self) -> list[dict[str, Any]]:
        return [json.loads(fact) for fact in self.truth_path.read_text().splitlines()]


@pytest.fixture(scope="session")
def a_lake(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Lake]:
    return lambda name: Lake(tmp_path_factory.mktemp(name))


@pytest.fixture
def lake(a_lake: Callable[[str], Lake]) -> Lake:
    return a_lake("lake")
