"""What a place that keeps files tells about them."""

from __future__ import annotations

from dataclasses import dataclass


def is_hidden(name: str) -> bool:
    """Of a file or a folder: not for us, or not yet."""
    return name[:1] in (".", "_")


@dataclass(frozen=True)
class Entry:
    """A file as a listing shows it."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True)
class Seen:
    """A file's content, and a mark by which its place tells whether it is still the same."""

    content: bytes
    mark: bytes | str
