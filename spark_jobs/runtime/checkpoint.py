"""A stream's checkpoint: which batches were begun and which were finished, as Spark writes it down.

It can always be made anew: `raw_files` and `raw_messages` know what was taken, `begun_batch` what was half done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Stop

LOGS = ("offsets", "commits", "sources/0")
VERSION = "v1"  # the first line of each of Spark's own files; that of Kafka's has a zero byte before it


@dataclass(frozen=True)
class Checkpoint:
    place: str

    @property
    def id(self) -> str:
        """A new checkpoint has a new id, and so its batches have names that were never used."""
        text = storage.read_text(f"{self.place}/metadata") or ""
        if not _is_json(text):
            raise self._refusal(f"{self.place}/metadata")
        return str(json.loads(text)["id"])

    @property
    def is_whole(self) -> bool:
        """No batch was begun and not committed: with no new input there is nothing that a stream would do."""
        return self._numbers("offsets") <= self._numbers("commits")

    @property
    def last_begun(self) -> int | None:
        return max(self._numbers("offsets"), default=None)

    @property
    def last_committed(self) -> int | None:
        return max(self._numbers("offsets") & self._numbers("commits"), default=None)

    def offsets(self, number: int | None) -> dict[str, Any]:
        """Where the stream's one source stood at the end of that batch; the file has a version, the batch's clock, and a line per source."""
        text = storage.read_text(f"{self.place}/offsets/{number}") if number is not None else None
        if text is not None and not _is_log(text):
            raise self._refusal(f"{self.place}/offsets/{number}")
        return dict(json.loads(text.splitlines()[2])) if text else {}

    def _numbers(self, log: str) -> set[int]:
        return {int(name) for name in storage.names(f"{self.place}/{log}") if name.isdigit()}

    def refuse_if_damaged(self, trouble: Exception) -> None:
        """Called when the stream broke off: was it the checkpoint? Then say so, and the way out."""
        damaged = next(self._damaged(), None)
        if damaged is None and "Checksum" in str(trouble) and self.place in str(trouble):
            damaged = self.place
        if damaged is not None:
            raise self._refusal(damaged) from trouble

    def _refusal(self, damaged: str) -> Stop:
        return Stop(
            f"{damaged} is damaged, so Spark cannot tell what is new. No line is lost or doubled. Type: make recover, then run the pass again."
        )

    def _damaged(self) -> Iterator[str]:
        metadata = storage.read_text(f"{self.place}/metadata")
        if metadata is None and not any(self._numbers(log) for log in LOGS):
            return  # there is none yet: whatever broke off the stream, it was not the checkpoint
        if not _is_json(metadata):
            yield f"{self.place}/metadata"
        for log in LOGS:
            for name in storage.names(f"{self.place}/{log}"):
                if not name.startswith(".") and not _is_log(storage.read_text(f"{self.place}/{log}/{name}")):
                    yield f"{self.place}/{log}/{name}"


def _is_log(text: str | None) -> bool:
    version, *entries = (text or "").splitlines() or [""]
    return version.lstrip("\0") == VERSION and bool(entries) and all(entry == "-" or _is_json(entry) for entry in entries)


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True
