"""What the jobs counted, checked before anything is judged: a measure that was forgotten must not pass as one that is fine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from expectations.vocabulary import Suite
from expectations.wording import Value, number

Measures: TypeAlias = Mapping[str, Mapping[str, Value]]


class MeasureError(ValueError):
    """The counts do not fit the suites; nothing was judged."""


def check(measures: Measures, suites: Sequence[Suite]) -> None:
    if unknown := sorted(set(measures) - {suite.table for suite in suites}):
        raise MeasureError(f"No suite judges {', '.join(unknown)}; nothing was judged. Write one in expectations/, or leave the table out.")
    for suite in suites:
        check_table(suite, measures.get(suite.table, {}))


def check_table(suite: Suite, counted: Mapping[str, Value]) -> None:
    if missing := [name for name in suite.measures if name not in counted]:
        raise MeasureError(
            f"{suite.table}: {', '.join(missing)} was not counted; nothing was judged. Count it, or give None if nothing is there."
        )
    if unknown := sorted(set(counted) - {*suite.measures, *suite.details}):
        raise MeasureError(f"{suite.table}: no expectation asks for {', '.join(unknown)}; nothing was judged. Correct the name.")
    for name in suite.measures:
        value = number(counted[name])
        if value is not None and not math.isfinite(value):
            raise MeasureError(f"{suite.table}: {name} is {value}, which is no count; nothing was judged. Give None if nothing is there.")
    for expectation in suite.expectations:
        needed = (expectation.judged_from or (expectation.measure,))[0]
        if counted[needed] is None and counted[expectation.measure] is not None:
            raise MeasureError(f"{suite.table}: {expectation.measure} was counted without {needed}; nothing was judged. Count both.")
