"""The same readings in a lake on local files and in one on an S3 server of this machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from benchmark import lakes
from benchmark.lakes import Lake
from benchmark.measure import Cost
from tests.servers.running import running
from tests.servers.s3_server import BUCKET
from tests.servers.seaweedfs import SeaweedFS

INPUT = ("landing", "reference")


class Twins:
    """Every pass is one over a fresh lake. On S3 a file arrives when it is put, so the local ones arrive when they are copied."""

    def __init__(self, origin: Lake, folder: Path, server: SeaweedFS) -> None:
        self._origin, self._folder, self._server, self._numbers = origin, folder, server, count()
        self._booked: list[str] = []

    def on_files(self) -> Cost:
        place = self._folder / str(next(self._numbers))
        for part in INPUT:
            shutil.copytree(self._origin.place / part, place / part, copy_function=shutil.copyfile)
        return self._same(lakes.pass_over(str(place), self._origin.as_of))

    def on_s3(self) -> Cost:
        place = str(next(self._numbers))
        for path in (path for part in INPUT for path in (self._origin.place / part).rglob("*") if path.is_file()):
            self._server.client().upload_file(str(path), BUCKET, f"{place}/{path.relative_to(self._origin.place)}")
        return self._same(lakes.pass_over(f"s3a://{BUCKET}/{place}", self._origin.as_of, self._server.environment))

    def _same(self, cost: Cost) -> Cost:
        """Each must have booked what the first one did."""
        booked = re.findall(r"^batch \S+: (.+)$", cost.output, re.MULTILINE)
        self._booked = self._booked or booked
        if not booked or booked != self._booked:
            raise lakes.Failed(f"one pass over the same readings booked {self._booked}, another {booked}")
        return cost


@contextmanager
def twins(origin: Lake, folder: Path) -> Iterator[Twins]:
    with running(SeaweedFS(folder / "seaweedfs")) as server:
        yield Twins(origin, folder, server)
