"""The readings that all sensors make in a span of time: who speaks when, and what it measures."""

import numpy as np

from simulator import chance, physics
from simulator.chance import Flags, Ints
from simulator.interruptions import input_stops, silences
from simulator.options import Options
from simulator.rows import KIND, Rows, empty
from simulator.stores import JOINS_AFTER, LAST_WORD_AFTER, SLOW_EVERY_S, World
from simulator.timestamps import SECOND

QUICKEST_MS, SLOWEST_MS = 200, 4_000
NOISE_C = 0.2


def readings_between(world: World, options: Options, start_ms: int, end_ms: int) -> Rows:
    """A row for each reading with start <= event time < end, and the moment it left the sensor."""
    ticks = np.arange(start_ms // world.cadence_ms, (end_ms - 1) // world.cadence_ms + 1)
    dice = chance.bits(world.seed, "reading", ticks[:, None], world.sensor[None, :])
    # One draw, cut into four numbers of 16 bits: jitter, way to the gateway and two for the noise.
    jitter, way, noise, more_noise = ((dice >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64) for shift in (0, 16, 32, 48))
    event_ms = ticks[:, None] * world.cadence_ms + world.phase_ms[None, :] + (jitter * world.jitter_ms >> 16)
    speaks = (event_ms >= start_ms) & (event_ms < end_ms)
    _hush(speaks, event_ms, world, options)

    _, sensor = np.nonzero(speaks)
    rows = empty(len(sensor))
    if len(rows) == 0:
        return rows
    rows["sensor"], rows["store"], rows["kind"] = sensor, world.store[sensor], KIND["good"]
    rows["event_ms"] = spoken_ms = event_ms[speaks]
    noise_c = (noise[speaks] + more_noise[speaks] - 0xFFFF).astype(np.float64) * (NOISE_C / 0xFFFF)
    rows["milli"], rows["door"] = physics.temperatures_milli(world, sensor, spoken_ms, noise_c)
    rows["battery"] = physics.batteries_pct(world, sensor, spoken_ms)
    rows["queued_ms"] = spoken_ms + QUICKEST_MS + (way[speaks] * (SLOWEST_MS - QUICKEST_MS) >> 16)
    return rows


def _hush(speaks: Flags, event_ms: Ints, world: World, options: Options) -> None:
    """Take away what is never said: silent sensors, the stop of all input, and sensors with a story."""
    first, last = int(event_ms.min()), int(event_ms.max()) + 1
    for silence in silences(world, options.silent, first, last):
        its_ms = event_ms[:, silence.who]
        speaks[:, silence.who] &= (its_ms < silence.started_ms) | (its_ms >= silence.ended_ms)
    for stop in input_stops(world, options.input_stop_minutes, first, last):
        speaks &= (event_ms < stop.started_ms) | (event_ms >= stop.ended_ms)
    for sensor, role in world.roles.items():
        its_ms = event_ms[:, sensor]
        if role == "never_reported":
            speaks[:, sensor] = False
        elif role == "retired":
            speaks[:, sensor] &= its_ms < world.origin_ms + LAST_WORD_AFTER
        elif role == "joins_later":
            speaks[:, sensor] &= its_ms >= world.origin_ms + JOINS_AFTER
        elif role == "slow":
            slow_ms = SLOW_EVERY_S * SECOND
            tick_ms = its_ms - its_ms % world.cadence_ms
            speaks[:, sensor] &= tick_ms // slow_ms != (tick_ms - world.cadence_ms) // slow_ms
