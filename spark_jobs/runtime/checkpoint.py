"""A stream's checkpoint: which batches were begun and which were finished, as Spark writes it down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Stop


@dataclass(frozen=True)
class Checkpoint:
    place: str

    @property
    def id(self) -> str:
        """A new checkpoint has a new id, and so its batches have names that were never used."""
        text = storage.read_text(f"{self.place}/metadata")
        if text is None:
            raise Stop(f"the checkpoint {self.place} has no metadata file: it is damaged. Move the folder away and run the pass again.")
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
        return dict(json.loads(text.splitlines()[2])) if text else {}

    def _numbers(self, log: str) -> set[int]:
        return {int(name) for name in storage.names(f"{self.place}/{log}") if name.isdigit()}
