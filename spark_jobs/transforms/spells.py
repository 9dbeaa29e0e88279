"""Spells beyond a threshold (too warm, too cold, battery low): when one opens, how long it holds, what ends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.rules import BatteryLow, OutOfLimits, Rule
from spark_jobs.transforms.limits import Limits
from spark_jobs.transforms.track import SECOND, Episode, Evidence, Mask, Track


@dataclass(frozen=True)
class Series:
    """The readings that a rule judges, by their places in the track; all others are passed over."""

    track: Track
    places: NDArray[np.int64]
    is_out: Mask
    is_clear: Mask  # inside by enough to end what is open
    badness: NDArray[np.float64]
    hold: NDArray[np.int64]  # how long the readings must be out before it opens

    @property
    def times(self) -> NDArray[np.int64]:
        return self.track.times[self.places]


@dataclass(frozen=True)
class Spell:
    """Places in the series: from its first reading to before the one that ended it; that one is past the last where nothing did."""

    first: int
    stop: int
    has_opened: bool


def series(rule: Rule, track: Track, limits: Limits) -> Series:
    count = len(track)
    judged, is_out, is_clear = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, bool)
    badness, hold = np.zeros(count), np.zeros(count, np.int64)
    for kind, here in track.variants(rule):
        if isinstance(kind, OutOfLimits):
            sign = 1 if kind.side == "above" else -1
            limit, is_limited = limits.of(track, kind.side)
            excess = sign * (track.temperatures - limit)
            out, clear, bad, known = excess > 0, excess <= -round(kind.clears_by_c * 1000), 1.0 * sign * track.temperatures, is_limited
            hold[here] = kind.for_s * SECOND
        elif isinstance(kind, BatteryLow):
            known = ~np.isnan(track.levels)
            out, clear, bad = track.levels < kind.below_pct, track.levels >= kind.until_pct, -track.levels
        else:
            raise TypeError(f"{rule.name} has no threshold")
        judged[here], is_out[here], is_clear[here], badness[here] = known[here], out[here], clear[here], bad[here]
    places = np.flatnonzero(judged)
    return Series(track, places, is_out[places], is_clear[places], badness[places], hold[places])


def spells(judged: Series) -> Iterator[Spell]:
    """In order; those that never opened too, because while one goes on nothing is settled."""
    times, count = judged.times, len(judged.places)
    outs, insides, clears = (np.flatnonzero(which) for which in (judged.is_out, ~judged.is_out, judged.is_clear))
    place = 0
    while (at := int(np.searchsorted(outs, place))) < len(outs):
        first = int(outs[at])
        stop = _next(insides, first, count)
        has_opened = bool(times[stop - 1] - times[first] >= judged.hold[first])
        if has_opened:
            stop = _next(clears, first, count)
        yield Spell(first, stop, has_opened)
        place = stop


def _next(places: NDArray[np.int64], after: int, count: int) -> int:
    at = int(np.searchsorted(places, after))
    return int(places[at]) if at < len(places) else count


def episode(judged: Series, spell: Spell, rule: Rule) -> Episode:
    places = judged.places[spell.first : spell.stop]
    worst = int(places[int(np.argmax(judged.badness[spell.first : spell.stop]))])
    track, first = judged.track, int(places[0])
    return Episode(
        int(track.times[first]),
        _end(judged, spell),
        track.store(first),
        _peak(rule, track.evidence(worst)),
        track.evidence(first),
        track.evidence(worst),
        track.evidence(int(places[-1])),
    )


def continued(judged: Series, rule: Rule, known: Episode) -> tuple[Episode, Spell | None]:
    """An episode that was open, with the readings that came after its last one; and where in the series it goes on."""
    ends = np.flatnonzero(judged.is_clear)
    stop = int(ends[0]) if len(ends) else len(judged.places)
    last, worst = known.last, known.worst
    if stop > 0:
        place = int(np.argmax(judged.badness[:stop]))
        evidence = judged.track.evidence(int(judged.places[place]))
        worst = evidence if _is_worse(rule, evidence, worst) else worst
        last = judged.track.evidence(int(judged.places[stop - 1]))
    assert worst is not None
    spell = Spell(0, stop, True)
    found = Episode(known.started_at, _end(judged, spell), known.store_id, _peak(rule, worst), known.first, worst, last)
    return found, spell


def _end(judged: Series, spell: Spell) -> int | None:
    return int(judged.times[spell.stop]) if spell.stop < len(judged.places) else None


def _is_worse(rule: Rule, evidence: Evidence, than: Evidence | None) -> bool:
    """Of equally bad readings the earliest is the worst."""
    if than is None:
        return True
    new, old = _peak(rule, evidence), _peak(rule, than)
    return bool(new > old if isinstance(rule.when, OutOfLimits) and rule.when.side == "above" else new < old)


def _peak(rule: Rule, evidence: Evidence) -> float:
    return float(evidence["battery_pct" if isinstance(rule.when, BatteryLow) else "temperature_c"])
