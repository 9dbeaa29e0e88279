"""Temperature, door and battery of a sensor at a moment: a function of the world and the time, with no memory."""

import numpy as np

from simulator import chance
from simulator.chance import Flags, Floats, Ints
from simulator.episodes import Habit
from simulator.stores import World
from simulator.timestamps import DAY, HOUR, MINUTE, SECOND

DOOR = Habit("door", 20 * MINUTE, share=0.35, length_ms=(30 * SECOND, 6 * MINUTE), strength=(1.0, 5.0), night_share=0.04)
SUDDEN_DROP = Habit("drop", 2 * HOUR, share=0.012, length_ms=(2 * MINUTE, 8 * MINUTE), strength=(6.0, 9.0))
WEAK_COOLING = Habit("cooling", 4 * HOUR, share=0.02, length_ms=(25 * MINUTE, 90 * MINUTE), strength=(3.5, 7.0))

DOOR_WARMS_IN, DOOR_COOLS_IN = 150 * SECOND, 240 * SECOND
DROP_RECOVERS_IN = 4 * MINUTE
DEFROST_LASTS = 25 * MINUTE
COLDEST_C, WARMEST_C = -45.0, 35.0


def temperatures_milli(world: World, sensor: Ints, event_ms: Ints, noise_c: Floats) -> tuple[Ints, Flags]:
    """Thousandths of a degree, at the sensor's own resolution, and whether its door is open."""
    door_c, is_open = _door(world, sensor, event_ms)
    drop = SUDDEN_DROP.at(world, sensor, event_ms)
    drop_c = drop.strength * (drop.age_ms >= 0) * np.exp(-np.maximum(drop.age_ms - drop.length_ms, 0) / DROP_RECOVERS_IN)
    weak = WEAK_COOLING.at(world, sensor, event_ms)
    weak_c = weak.strength * weak.goes_on * np.sin(np.pi * weak.age_ms / weak.length_ms)
    celsius = world.base_c[sensor] + _rhythm(world, sensor, event_ms) + _defrost(world, sensor, event_ms)
    celsius += door_c + weak_c - drop_c + noise_c
    step = world.resolution_milli[sensor]
    milli = np.rint(np.clip(celsius, COLDEST_C, WARMEST_C) * 1000 / step).astype(np.int64) * step
    return milli, is_open


def batteries_pct(world: World, sensor: Ints, event_ms: Ints) -> Ints:
    """Sinks slowly; a battery at 4 % is changed for a full one."""
    hours = (event_ms - world.origin_ms) / HOUR
    spent = 100 - world.battery_start[sensor] + world.battery_per_hour[sensor] * hours
    return np.floor(100 - spent % 96).astype(np.int64)


def defrost_period_ms(world: World, store: Ints) -> Ints:
    return chance.between(6 * HOUR, 8 * HOUR, world.seed, "defrost period", store).astype(np.int64)


def defrost_offset_ms(world: World, store: Ints) -> Ints:
    return (chance.uniform(world.seed, "defrost offset", store) * defrost_period_ms(world, store)).astype(np.int64)


def _rhythm(world: World, sensor: Ints, event_ms: Ints) -> Floats:
    """Warmest in the afternoon, with the compressor's ripple on top."""
    ripple_ms = chance.between(12 * MINUTE, 25 * MINUTE, world.seed, "ripple", world.sensor)[sensor]
    day = 0.5 * np.sin(2 * np.pi * (event_ms % DAY - 9 * HOUR) / DAY)
    return np.asarray(day + 0.25 * np.sin(2 * np.pi * (event_ms % ripple_ms) / ripple_ms))


def _defrost(world: World, sensor: Ints, event_ms: Ints) -> Floats:
    """A store's plant defrosts all its rooms together."""
    stores = np.arange(world.stores)
    store = world.store[sensor]
    into = (event_ms - defrost_offset_ms(world, stores)[store]) % defrost_period_ms(world, stores)[store]
    rise_c = chance.between(3.0, 6.0, world.seed, "defrost rise", world.sensor)[sensor]
    return np.asarray(np.where(into < DEFROST_LASTS, rise_c * (1 - np.cos(2 * np.pi * into / DEFROST_LASTS)) / 2, 0.0))


def _door(world: World, sensor: Ints, event_ms: Ints) -> tuple[Floats, Flags]:
    """Air warms while a door is open and cools after it closed, also when that was in the block before."""
    warmth = np.zeros(len(sensor))
    is_open = np.zeros(len(sensor), dtype=bool)
    for blocks_before in (0, 1):
        door = DOOR.at(world, sensor, event_ms, blocks_before)
        felt = np.flatnonzero((door.strength > 0) & (door.age_ms >= 0))
        age, length = door.age_ms[felt], door.length_ms[felt]
        risen = door.strength[felt] * (1 - np.exp(-np.minimum(age, length) / DOOR_WARMS_IN))
        warmth[felt] += risen * np.exp(-np.maximum(age - length, 0) / DOOR_COOLS_IN)
        is_open |= door.goes_on
    return warmth, is_open
