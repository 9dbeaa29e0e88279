"""What came of sending a message to somebody outside."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sent:
    outcome: str  # delivered, refused, or waiting for another time
    attempts: int
    detail: str
