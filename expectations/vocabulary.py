"""The words a suite is written in: what is measured, what its limit is called, and how bad it is to miss it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from include.settings import Settings

Severity = Literal["critical", "warning"]
Unit = Literal["", "%", "s"]
Limit = Callable[[Settings], float]


@dataclass(frozen=True)
class Expectation:
    """One sentence about one measure. The limits name settings, so that a threshold has one home."""

    measure: str
    name: str
    at_least: Limit | None
    at_most: Limit | None
    unit: Unit
    judged_from: tuple[str, Limit] | None = None  # another measure, and how much of it makes this one worth judging
    worst_of: str | None = None  # a measure by store; the page names the lowest
    severity: Severity = "critical"


@dataclass(frozen=True)
class Suite:
    table: str
    expectations: tuple[Expectation, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """What has to be counted for this table, in the order of the suite."""
        wanted: list[str] = []
        for each in self.expectations:
            wanted += [each.measure, each.judged_from[0]] if each.judged_from else [each.measure]
        return tuple(dict.fromkeys(wanted))

    @property
    def details(self) -> tuple[str, ...]:
        """What may be told besides: it is shown and not judged."""
        return tuple(each.worst_of for each in self.expectations if each.worst_of)


def suite(table: str, *expectations: Expectation) -> Suite:
    return Suite(table, expectations)


def critical(expectation: Expectation) -> Expectation:
    """Missed: the run is held."""
    return replace(expectation, severity="critical")


def warning(expectation: Expectation) -> Expectation:
    """Missed: it is shown, and the run goes on."""
    return replace(expectation, severity="warning")


def none(measure: str, name: str) -> Expectation:
    return Expectation(measure, name, at_least=nought, at_most=nought, unit="")


def at_most(measure: str, limit: Limit, name: str, *, unit: Unit = "%", judged_from: tuple[str, Limit] | None = None) -> Expectation:
    return Expectation(measure, name, at_least=None, at_most=limit, unit=unit, judged_from=judged_from)


def at_least(measure: str, limit: Limit, name: str, *, unit: Unit = "%", worst_of: str | None = None) -> Expectation:
    return Expectation(measure, name, at_least=limit, at_most=None, unit=unit, worst_of=worst_of)


def nought(_: Settings) -> float:
    return 0
