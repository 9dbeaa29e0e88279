"""What was seen and what was allowed, as a person reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from expectations.vocabulary import Expectation, Unit
from include.settings import Settings

Value: TypeAlias = float | Mapping[str, float | None] | None
NOTHING = "nothing to judge"


def limit(expectation: Expectation, settings: Settings) -> str:
    low, high = expectation.at_least, expectation.at_most
    if low is not None and high is not None:
        return exactly(low(settings), expectation.unit)
    text = f"at least {exactly(low(settings), expectation.unit)}" if low else ""
    text = f"at most {exactly(high(settings), expectation.unit)}" if high else text
    if expectation.judged_from:
        counted, enough = expectation.judged_from
        text += f", from {enough(settings)} {counted} on"
    return text


def observed(expectation: Expectation, measures: Mapping[str, Value], settings: Settings) -> str:
    value = number(measures[expectation.measure])
    if value is None:
        return NOTHING
    bound = expectation.at_least or expectation.at_most
    text = about(value, expectation.unit, apart_from=bound(settings) if bound else value)
    if expectation.judged_from:
        counted, enough = expectation.judged_from
        count = number(measures[counted]) or 0
        text += f" of {count:.0f} {counted}" + ("" if count >= enough(settings) else ", too few to judge")
    if expectation.worst_of:
        text += worst(measures.get(expectation.worst_of))
    return text


def worst(by_store: Value) -> str:
    """The store that keeps the average down; of several the first by name."""
    if not isinstance(by_store, Mapping):
        return ""
    known = sorted((value, store) for store, value in by_store.items() if value is not None)
    return f"; lowest: {known[0][1]} with {about(known[0][0], '%')}" if known else ""


def number(value: Value) -> float | None:
    return None if value is None or isinstance(value, Mapping) else float(value)


def exactly(value: float, unit: Unit) -> str:
    return f"{100 * value:.10g} %" if unit == "%" else f"{value:.10g} {unit}".strip()


def about(value: float, unit: Unit, apart_from: float | None = None) -> str:
    """A share to the tenth of a percent, or finer where it would otherwise read like the limit that it missed."""
    if unit != "%":
        return exactly(value, unit)
    texts = [f"{100 * value:.{digits}f}" for digits in (1, 3, 6, 9)]
    missed = [] if apart_from is None or apart_from == value else [round(100 * apart_from, 9)]
    return next((text for text in texts if float(text) not in missed), texts[-1]) + " %"
