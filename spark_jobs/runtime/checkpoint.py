"""The stream's checkpoint: which files Spark has shown us. It can always be made anew, because `raw_files` knows what was taken."""

from __future__ import annotations

import json
from collections.abc import Iterator

from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.lake import Lake

LOGS = ("offsets", "commits", "sources/0")
VERSION = "v1"  # the first line of each of Spark's own files


class Checkpoint:
    def __init__(self, lake: Lake, name: str) -> None:
        self.lake, self.place = lake, lake.place("checkpoints", name)

    @property
    def id(self) -> str:
        """A new checkpoint has a new one, and so its batches have names that were never used."""
        return str(json.loads(storage.read_text(f"{self.place}/metadata") or "")["id"])

    def is_whole(self) -> bool:
        """No batch was begun and not committed: with nothing new there is nothing that a stream would do."""
        begun, committed = (set(storage.names(f"{self.place}/{log}")) for log in ("offsets", "commits"))
        return begun <= committed

    def refuse_if_damaged(self, trouble: Exception) -> None:
        """Called when the stream broke off: was it the checkpoint? Then say so, and the way out."""
        damaged = next(self._damaged(), None)
        if damaged is None and "Checksum" in str(trouble) and self.place in str(trouble):
            damaged = self.place
        if damaged is not None:
            raise Stop(
                f"{damaged} is damaged, so Spark cannot tell which files are new. No line is lost or doubled. Type: make recover, then run the "
                "pass again."
            ) from trouble

    def _damaged(self) -> Iterator[str]:
        if not _is_json(storage.read_text(f"{self.place}/metadata")):
            yield f"{self.place}/metadata"
        for log in LOGS:
            for name in storage.names(f"{self.place}/{log}"):
                if not name.startswith(".") and not _is_log(storage.read_text(f"{self.place}/{log}/{name}")):
                    yield f"{self.place}/{log}/{name}"

    def remove(self) -> None:
        storage.delete(self.place)


def _is_log(text: str | None) -> bool:
    version, *entries = (text or "").splitlines() or [""]
    return version == VERSION and all(entry == "-" or _is_json(entry) for entry in entries)


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True
