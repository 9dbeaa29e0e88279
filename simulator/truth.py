"""The truth about every line: where it stands and what must become of it, as intended when it was made."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from simulator.lines import Text, form_of, reasons_of
from simulator.rows import KINDS, Rows
from simulator.stores import World


class Truth:
    """A line of JSON for each line; None as path writes nothing."""

    def __init__(self, path: Path | None, world: World, goes_on: bool) -> None:
        self._world = world
        self._facts: list[dict[str, Any]] = []
        self._file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a" if goes_on else "w", encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def note_lines(self, start: int, rows: Rows, text: Text) -> None:
        if self._file is None:
            return
        offsets = start + np.cumsum(text.lengths) - text.lengths
        columns = (offsets.tolist(), *(rows[column].tolist() for column in ("arrived_ms", "kind", "sensor", "event_ms", "milli")))
        for place, (offset, arrived_ms, kind, sensor, event_ms, milli) in enumerate(zip(*columns, strict=True)):
            special = text.specials.get(place)
            reasons = reasons_of(kind, special)
            fact = _fact(offset + (special.mark if special else 0), arrived_ms, KINDS[kind], form_of(kind, special), reasons)
            if KINDS[kind] not in ("bad", "blank"):
                fact |= {"sensor_id": self._world.sensor_ids[sensor], "event_ms": event_ms, "temperature_milli": milli}
            self._facts.append(fact)

    def note_break(self, offset: int, arrived_ms: int) -> None:
        self._facts.append(_fact(offset, arrived_ms, "truncated_file", "truncated_file", ("truncated_file",)))

    def file_landed(self, name: str) -> None:
        """A file's name is certain only when it has landed."""
        if self._file is not None:
            self._file.writelines(json.dumps({"file": name, **fact}) + "\n" for fact in self._facts)
        self._facts.clear()


def _fact(offset: int, arrived_ms: int, kind: str, form: str, reasons: tuple[str, ...]) -> dict[str, Any]:
    return {"offset": offset, "arrived_at": arrived_ms, "kind": kind, "form": form, "reasons": list(reasons)}
