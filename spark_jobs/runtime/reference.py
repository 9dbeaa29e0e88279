"""The reference files of a lake, read and checked before a run writes anything. What they may say: `include/reference.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from include.reference import FILES, BrokenReference, Rows, parsed
from include.settings import Settings
from spark_jobs.runtime import storage
from spark_jobs.runtime.errors import Stop


@dataclass(frozen=True)
class Reference:
    """All reference files; an absent file is an empty one."""

    rows: dict[str, Rows]

    def schema_and_rows(self, name: str) -> tuple[str, list[tuple[Any, ...]]]:
        fields = next(file.fields for file in FILES if file.name == name)
        schema = ", ".join(f"`{field.name}` {field.type}" for field in fields)
        return schema, [tuple(row[field.name] for field in fields) for row in self.rows[name]]


def load(settings: Settings) -> Reference:
    return Reference(check(settings))


def check(settings: Settings) -> dict[str, Rows]:
    """A broken file stops the run with file, line and what to do."""
    try:
        return {file.name: parsed(file.name, storage.read(f"{settings.lake}/reference/{file.name}.csv") or b"") for file in FILES}
    except BrokenReference as broken:
        raise Stop(str(broken)) from None
