"""When sensors fall silent, when a store's gateway is cut off, and when all input stops; planned from the origin on."""

from dataclasses import dataclass

import numpy as np

from simulator import chance
from simulator.stores import World
from simulator.timestamps import HOUR, MINUTE

SILENCE_BLOCK = 2 * HOUR
LONGEST_SILENCE = 5 * HOUR
STOP_PERIOD = 6 * HOUR


@dataclass(frozen=True)
class Interruption:
    """From started_ms until before ended_ms; `who` is a sensor, a store, or nothing when it is everybody."""

    who: int
    started_ms: int
    ended_ms: int


def silences(world: World, share: float, start_ms: int, end_ms: int) -> list[Interruption]:
    """In each two hours the same share of sensors falls silent, for minutes or for hours; one at least."""
    if share == 0:
        return []
    count = max(1, round(share * world.sensor_count))
    found = []
    for block in _blocks(world, SILENCE_BLOCK, start_ms - LONGEST_SILENCE, end_ms):
        lots = chance.bits(world.seed, "silence", block, world.sensor)
        chosen = np.argsort(lots, kind="stable")[:count]
        begun = _at(world, SILENCE_BLOCK, block) + chance.between(10 * MINUTE, 100 * MINUTE, world.seed, "silence start", block, chosen)
        ended = begun + chance.spread(4 * MINUTE, LONGEST_SILENCE, world.seed, "silence length", block, chosen)
        found += [Interruption(int(who), int(since), int(until)) for who, since, until in zip(chosen, begun, ended, strict=True)]
    return _touching(found, start_ms, end_ms)


def cut_offs(world: World, hours: float, start_ms: int, end_ms: int) -> list[Interruption]:
    """One store at a time cannot upload; its gateway keeps what the sensors say."""
    if hours == 0:
        return []
    period = round(max(2 * HOUR, 2 * hours * HOUR))
    found = []
    for block in _blocks(world, period, start_ms - period, end_ms):
        who = int(chance.bits(world.seed, "cut off", block)[0] % np.uint64(world.stores))
        begun = _at(world, period, block) + int(chance.between(0.1, 0.2, world.seed, "cut off start", block)[0] * period)
        found.append(Interruption(who, begun, begun + round(hours * HOUR)))
    return _touching(found, start_ms, end_ms)


def input_stops(world: World, minutes: float, start_ms: int, end_ms: int) -> list[Interruption]:
    """Nobody's readings are taken, and nobody keeps them."""
    if minutes == 0:
        return []
    length = round(minutes * MINUTE)
    period = max(STOP_PERIOD, 4 * length)
    found = []
    for block in _blocks(world, period, start_ms - period, end_ms):
        begun = _at(world, period, block) + int(chance.between(60 * MINUTE, 100 * MINUTE, world.seed, "input stop", block)[0])
        found.append(Interruption(-1, begun, begun + length))
    return _touching(found, start_ms, end_ms)


def _blocks(world: World, length_ms: int, start_ms: int, end_ms: int) -> range:
    return range(max(0, (start_ms - world.origin_ms) // length_ms), max(0, (end_ms - world.origin_ms) // length_ms + 1))


def _at(world: World, length_ms: int, block: int) -> int:
    return world.origin_ms + block * length_ms


def _touching(found: list[Interruption], start_ms: int, end_ms: int) -> list[Interruption]:
    return [one for one in found if one.started_ms < end_ms and one.ended_ms > start_ms]
