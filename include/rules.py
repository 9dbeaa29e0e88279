"""The alert rules, as data: what opens an alert, how grave it is, and what the person who gets it should do first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outage:
    """Opens with an outage of the sensor and ends with it."""


@dataclass(frozen=True)
class Drop:
    """A reading more than `by_c` below the sensor's previous one, at most `within_s` older. A moment: it ends at once."""

    by_c: float
    within_s: int


@dataclass(frozen=True)
class Rule:
    name: str
    when: Outage | Drop
    severity: str
    advice: str


RULES = (
    Rule(
        "missed_heartbeat",
        Outage(),
        "warning",
        "Is it one sensor, its store or all input? Look at the outage's cause, then at battery and gateway.",
    ),
    Rule("sudden_drop", Drop(by_c=5.0, within_s=600), "warning", "Look at the sensor: was it moved, or is it failing?"),
)
