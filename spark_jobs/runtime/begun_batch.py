"""The batch at hand: written down before the first of its writes. Whoever comes after a crash finishes it under the same name, before anything else,
whatever became of the checkpoint: of files it takes the same ones again, of messages those that `raw_messages` has."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from spark_jobs.runtime import storage
from spark_jobs.runtime.entry import Entry
from spark_jobs.runtime.lake import Lake

PLACE = ("control", "begun.json")


@dataclass(frozen=True)
class BegunBatch:
    origin: str
    number: int
    files: list[Entry] = field(default_factory=list)
    topic: str = ""  # of messages


def begin(lake: Lake, batch: BegunBatch) -> None:
    lake.write_text(json.dumps(asdict(batch)), *PLACE)


def left(lake: Lake) -> BegunBatch | None:
    text = storage.read_text(lake.place(*PLACE))
    if not text:
        return None
    fields = json.loads(text)
    return BegunBatch(**{**fields, "files": [Entry(**file) for file in fields["files"]]})


def done(lake: Lake) -> None:
    """The ledger has it. Written over, not deleted: a driver that sleeps here, and wakes up when another has begun a batch, must not undo that."""
    lake.write_text("", *PLACE)
