"""Why a sensor was silent (P14): `input` when all of all stores were, `store` when all of its store were, else `sensor`.

A sweep over time: at each moment when someone is first waited for, retires, falls silent or returns, count who is waited
for and how many of them are in an outage. Where the two are equal, it is dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from spark_jobs.transforms.inventory import Expectation
from spark_jobs.transforms.track import AFTER_ALL, BEFORE_ALL, micros

Ints = NDArray[np.int64]
CAUSES = np.array(["sensor", "store", "input"])


@dataclass(frozen=True)
class Spans:
    """Of sensors, in stores, from a moment until before another."""

    sensors: Sequence[str]
    stores: Sequence[str]
    since: Ints
    until: Ints


@dataclass(frozen=True)
class Counts:
    """At each moment of change in a store: how many sensors are waited for from then on, and how many of them are silent."""

    stores: Ints
    at: Ints
    until: Ints
    expected: Ints
    silent: Ints


def waited_for(expected: Iterable[Expectation], first_heard: Mapping[str, datetime]) -> Spans:
    """From its first reading on a sensor is waited for, as long as it is active."""
    sensors, stores, starts, ends = list[str](), list[str](), list[int](), list[int]()
    for each in expected:
        if heard := first_heard.get(each.sensor_id):
            since, until = max(micros(each.since, BEFORE_ALL), micros(heard, 0)), micros(each.until, AFTER_ALL)
            if since < until:
                sensors.append(each.sensor_id)
                stores.append(each.store_id)
                starts.append(since)
                ends.append(until)
    return Spans(sensors, stores, np.array(starts, np.int64), np.array(ends, np.int64))


def causes(outages: Spans, waited_for: Spans) -> list[str]:
    """The cause of each outage. An open one reaches as far as silence can be judged."""
    stores = {name: code for code, name in enumerate(dict.fromkeys((*waited_for.stores, *outages.stores)))}
    homes = np.array([stores[name] for name in outages.stores], np.int64)
    counts = _counts(np.array([stores[name] for name in waited_for.stores], np.int64), waited_for, outages)
    rank = np.zeros(len(homes), np.int64)
    is_dark = (counts.expected >= 2) & (counts.silent == counts.expected)
    for store in np.unique(counts.stores[is_dark]).tolist():
        here, dark = homes == store, is_dark & (counts.stores == store)
        rank[here] = _overlaps(outages.since[here], outages.until[here], counts.at[dark], counts.until[dark])
    rank[_overlaps(outages.since, outages.until, *_dark_input(counts))] = 2
    return [str(cause) for cause in CAUSES[rank]]


def _counts(stores: Ints, waited: Spans, outages: Spans) -> Counts:
    which, outage = _pairs(waited.sensors, outages.sensors)
    since, until = np.maximum(waited.since[which], outages.since[outage]), np.minimum(waited.until[which], outages.until[outage])
    both = since < until
    silent_stores, since, until = stores[which][both], since[both], until[both]
    ones, noughts = np.ones(len(stores), np.int64), np.zeros(len(silent_stores), np.int64)
    silents = np.ones(len(silent_stores), np.int64)
    at = np.concatenate((waited.since, waited.until, since, until))
    where = np.concatenate((stores, stores, silent_stores, silent_stores))
    expected = np.concatenate((ones, -ones, noughts, noughts))
    silent = np.concatenate((0 * ones, 0 * ones, silents, -silents))
    (where, at), (expected, silent) = _summed((where, at), (expected, silent))
    expected, silent = np.cumsum(expected), np.cumsum(silent)  # of each store they end at 0, so the next one starts there
    return Counts(where, at, np.append(at[1:], AFTER_ALL)[: len(at)], expected, silent)


def _pairs(left: Sequence[str], right: Sequence[str]) -> tuple[Ints, Ints]:
    """Places in left and right that have the same name."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(left):
        places.setdefault(name, []).append(place)
    pairs = [(one, other) for other, name in enumerate(right) for one in places.get(name, ())]
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _summed(keys: tuple[Ints, ...], values: tuple[Ints, ...]) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
    """Values with the same keys added up, in the order of the keys."""
    order = np.lexsort(keys[::-1])
    ordered = tuple(key[order] for key in keys)
    if not len(order):
        return ordered, values
    is_new = np.append(True, np.any([key[1:] != key[:-1] for key in ordered], axis=0))
    starts = np.flatnonzero(is_new)
    return tuple(key[starts] for key in ordered), tuple(np.add.reduceat(value[order], starts) for value in values)


def _dark_input(counts: Counts) -> tuple[Ints, Ints]:
    """When all of two or more stores that wait for anyone were silent."""
    is_first = np.append(True, counts.stores[1:] != counts.stores[:-1])[: len(counts.stores)]
    waits = (counts.expected > 0).astype(np.int64)
    steps = [np.where(is_first, value, value - np.roll(value, 1)) for value in (counts.expected, counts.silent, waits)]
    (at,), (expected, silent, stores) = _summed((counts.at,), tuple(steps))
    is_dark = (np.cumsum(stores) >= 2) & (np.cumsum(silent) == np.cumsum(expected))
    return at[is_dark], np.append(at[1:], AFTER_ALL)[: len(at)][is_dark]


def _overlaps(since: Ints, until: Ints, dark_from: Ints, dark_until: Ints) -> NDArray[np.bool_]:
    """Whether a span shares a moment with one of the dark ones, which are in order and apart."""
    if not len(dark_from):
        return np.zeros(len(since), bool)
    place = np.searchsorted(dark_until, since, "right")
    return (place < len(dark_from)) & (dark_from[np.minimum(place, len(dark_from) - 1)] < until)
