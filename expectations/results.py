"""What the judges said of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from expectations.vocabulary import Severity

RESULTS = "results"  # the folder beside the Data Docs' pages that has what they are made of, one JSON file each


@dataclass(frozen=True)
class Result:
    table: str
    expectation: str
    severity: Severity
    success: bool
    observed: str
    limit: str


def is_held(results: Iterable[Result]) -> bool:
    """A run is held when anything critical failed; a warning is only shown."""
    return any(result.severity == "critical" and not result.success for result in results)
