"""One call: readings of the next hours, their faults and their way into landing files, piece by piece of time."""

from collections.abc import Iterator
from dataclasses import replace

from simulator import interruptions
from simulator.delivery import Delivery
from simulator.faults import with_faults
from simulator.gateways import Gateways
from simulator.landing import Landing
from simulator.lines import LineWriter
from simulator.options import Options
from simulator.readings import readings_between
from simulator.reference import write_reference
from simulator.rows import together
from simulator.state import resume_or_begin
from simulator.stores import World
from simulator.truth import Truth

# Memory is bounded by the readings made at once; the result does not depend on it.
READINGS_AT_ONCE = 250_000


def simulate(options: Options) -> Delivery:
    """Write the landing files of the next span of time; the Delivery tells what is in them."""
    options.check()
    state = resume_or_begin(options)
    start_ms = state.next_start_ms
    end_ms = options.end_ms(start_ms)
    options.lake.mkdir(parents=True, exist_ok=True)
    options.landing_root.mkdir(parents=True, exist_ok=True)
    write_reference(options.lake, state.world, start_ms, end_ms, state.goes_on)

    delivery = _told(state.world, options, start_ms, end_ms)
    pending = state.pending
    with Truth(options.truth, state.world, state.goes_on) as truth:
        gateways = Gateways(state.world, options.file_ms, options.one_file_for_all_stores, options.cut_off_hours)
        landing = Landing(options, gateways, LineWriter(state.world, options.bad_kinds), delivery, truth)
        for since_ms, until_ms in _pieces(state.world, options.file_ms, start_ms, end_ms):
            made = with_faults(readings_between(state.world, options, since_ms, until_ms), options, gateways)
            rows = together(pending, made)
            # What is made later arrives later, so nothing more can come into a file that has arrived by now.
            has_arrived = rows["arrived_ms"] <= until_ms
            landing.receive(rows.compress(has_arrived))
            pending = rows.compress(~has_arrived)
    delivery.on_the_way = len(pending)
    replace(state, next_start_ms=end_ms, pending=pending).save(options.lake)
    return delivery


def _pieces(world: World, file_ms: int, start_ms: int, end_ms: int) -> Iterator[tuple[int, int]]:
    """Each ends with a file if it can: then hardly a line waits for the next piece."""
    step = max(1, READINGS_AT_ONCE // world.sensor_count) * world.cadence_ms
    if step >= file_ms // 2:
        step = max(1, step // file_ms) * file_ms
    since_ms = start_ms
    while since_ms < end_ms:
        until_ms = min(since_ms - since_ms % step + step, end_ms)
        yield since_ms, until_ms
        since_ms = until_ms


def _told(world: World, options: Options, start_ms: int, end_ms: int) -> Delivery:
    span = (start_ms, end_ms)
    return Delivery(
        world,
        start_ms,
        end_ms,
        silences=interruptions.silences(world, options.silent, *span),
        cut_offs=interruptions.cut_offs(world, options.cut_off_hours, *span),
        input_stops=interruptions.input_stops(world, options.input_stop_minutes, *span),
    )
