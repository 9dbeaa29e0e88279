"""Work that does not come from the landing stream: replays of quarantine, and files that changed after they were taken.

A request is a small file in the lake. It is done once its batch stands in the ledger, and only then is the file removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from spark_jobs.runtime import storage
from spark_jobs.runtime.entry import Entry
from spark_jobs.runtime.lake import Lake


@dataclass(frozen=True)
class Request:
    number: int
    kind: str  # replay or changed
    reason: str = ""
    files: list[dict[str, str | int]] = field(default_factory=list)

    @property
    def origin(self) -> str:
        """A name of its own for its batch: clocks may go back, and numbers with them."""
        return f"request-{self.number}"

    @property
    def entries(self) -> list[Entry]:
        return [Entry(str(file["path"]), int(file["size"]), int(file["modified_ms"])) for file in self.files]


def ask_for_replay(lake_place: str, reason: str) -> Request:
    return _ask(lake_place, Request(_number(), "replay", reason=reason))


def ask_for_changed_files(lake_place: str, files: list[Entry]) -> Request:
    return _ask(lake_place, Request(_number(), "changed", files=[asdict(file) for file in files]))


def _number() -> int:
    """Tells requests apart, and puts them in order; it says nothing about the data."""
    return time.time_ns() // 1_000_000


def _ask(lake_place: str, request: Request) -> Request:
    storage.write_text(f"{lake_place}/control/requests/{request.number}.json", json.dumps(asdict(request)))
    return request


def pending(lake: Lake) -> Iterator[Request]:
    folder = lake.place("control", "requests")
    for name in storage.names(folder):
        if name.endswith(".json"):
            yield Request(**json.loads(storage.read_text(f"{folder}/{name}") or "{}"))


def done(lake: Lake, request: Request) -> None:
    lake.delete("control", "requests", f"{request.number}.json")
    lake.delete("control", "replays", str(request.number))
