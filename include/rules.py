"""The alert rules, as data: what opens an alert and what ends it, how grave it is, and what the person who gets it should do first.

A rule has a kind (the classes below); a new rule of a known kind is one more entry in RULES. `at_store` changes it for a store:
    Rule("door_left_open", DoorLeftOpen(for_s=300), …, at_store={"store-7": DoorLeftOpen(for_s=900)})
and None there switches it off. A reading is judged by the rule of the store it names; of a session or an episode the first one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["info", "warning", "critical"]


def _span(seconds: int) -> str:
    return f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s"


@dataclass(frozen=True)
class Outage:
    """Opens with an outage of the sensor and ends with it."""

    @property
    def opens(self) -> str:
        return "an outage of the sensor"

    @property
    def ends(self) -> str:
        return "with the outage"


@dataclass(frozen=True)
class Drop:
    """A reading more than `by_c` below the sensor's previous one, at most `within_s` older. A moment: it ends at once."""

    by_c: float
    within_s: int

    @property
    def opens(self) -> str:
        return f"a reading more than {self.by_c:g} °C below the sensor's previous one, at most {_span(self.within_s)} older"

    @property
    def ends(self) -> str:
        return "at once: it is a moment"


@dataclass(frozen=True)
class OutOfLimits:
    """Readings beyond the store's limits in force at their time, the first and the last of them at least `for_s` apart.

    Once open, the first reading inside by `clears_by_c` ends it; before that, any reading inside does. Silence ends nothing.
    """

    side: Literal["above", "below"]
    for_s: int
    clears_by_c: float

    @property
    def opens(self) -> str:
        return (
            f"every reading {self.side} the store's limit in force at its time, the first and the last of them at least {_span(self.for_s)} apart; "
            "readings at whose time no limit is in force are passed over"
        )

    @property
    def ends(self) -> str:
        return f"the first reading inside by {self.clears_by_c:g} °C; before it opened, any reading inside; silence ends nothing"


@dataclass(frozen=True)
class BatteryLow:
    """A level below `below_pct` opens it, one of `until_pct` or more ends it."""

    below_pct: float
    until_pct: float

    @property
    def opens(self) -> str:
        return f"a battery level below {self.below_pct:g} %"

    @property
    def ends(self) -> str:
        return f"a level of {self.until_pct:g} % or more"


@dataclass(frozen=True)
class RiseAfterDoor:
    """After the first reading of a door session, at most `within_s` later, one at least `by_c` warmer. Once for a session, a moment."""

    by_c: float
    within_s: int

    @property
    def opens(self) -> str:
        return f"a reading at least {self.by_c:g} °C warmer than a door session's first one, at most {_span(self.within_s)} after it; once for a session"

    @property
    def ends(self) -> str:
        return "at once: from the session's first reading to the confirming one"


@dataclass(frozen=True)
class DoorLeftOpen:
    """A door session at least `for_s` long. Open while its last reading is the sensor's last and at most `heard_within_s` old."""

    for_s: int
    heard_within_s: int = 120

    @property
    def opens(self) -> str:
        return f"a door session at least {_span(self.for_s)} long"

    @property
    def ends(self) -> str:
        return f"the session's last reading; open while that is the sensor's last one and at most {_span(self.heard_within_s)} old"


Kind = Outage | Drop | OutOfLimits | BatteryLow | RiseAfterDoor | DoorLeftOpen


@dataclass(frozen=True)
class Rule:
    name: str
    when: Kind
    severity: Severity
    advice: str
    at_store: Mapping[str, Kind | None] = field(default_factory=dict)

    def at(self, store_id: str) -> Kind | None:
        """What counts for a reading of that store; None: the rule does not hold there."""
        return self.at_store.get(store_id, self.when)

    @property
    def variants(self) -> list[Kind]:
        return [self.when, *(kind for kind in self.at_store.values() if kind is not None)]


RULES = (
    Rule(
        "missed_heartbeat",
        Outage(),
        "warning",
        "Is it one sensor, its store or all input? Look at the outage's cause, then at battery and gateway.",
    ),
    Rule("sudden_drop", Drop(by_c=5.0, within_s=600), "warning", "Look at the sensor: was it moved, or is it failing?"),
    Rule(
        "too_warm",
        OutOfLimits("above", for_s=300, clears_by_c=0.5),
        "critical",
        "Check the door, then the compressor; move goods that must not warm up.",
    ),
    Rule("too_cold", OutOfLimits("below", for_s=300, clears_by_c=0.5), "critical", "Check the thermostat; look for goods that froze."),
    Rule(
        "door_then_rise", RiseAfterDoor(by_c=2.0, within_s=600), "warning", "Close the door, and see that the temperature comes down again."
    ),
    Rule("door_left_open", DoorLeftOpen(for_s=300), "warning", "Close the door."),
    Rule("low_battery", BatteryLow(below_pct=20.0, until_pct=25.0), "info", "Change the battery before the sensor falls silent."),
)
