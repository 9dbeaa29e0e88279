"""What a call did, for the person who made it."""

from collections import Counter
from collections.abc import Iterator

from simulator.delivery import Delivery
from simulator.interruptions import Interruption
from simulator.options import Options
from simulator.rows import KINDS
from simulator.timestamps import HOUR, clock_time, to_iso

MOST_NAMED = 6


def summary(delivery: Delivery, options: Options) -> Iterator[str]:
    world = delivery.world
    hours = (delivery.as_of_ms - delivery.start_ms) / HOUR
    yield f"{world.stores} stores with {world.sensors} sensors each, {hours:g} hours from {to_iso(delivery.start_ms)}, seed {world.seed}"
    yield f"  {len(delivery.files):,} files in {options.landing_root}, {delivery.unpacked_bytes / 1e6:,.1f} MB unpacked"
    books = (delivery.lines, delivery.readings, delivery.duplicates, delivery.quarantined, delivery.blank)
    yield "  {:,} lines = {:,} readings + {:,} duplicates + {:,} for quarantine + {:,} blank".format(*books)
    yield f"  lines by kind: {_counts(delivery.kinds, KINDS)}"
    yield f"  reasons: {_counts(delivery.reasons, tuple(sorted(delivery.reasons)))}"
    for cut in delivery.cut_offs[:MOST_NAMED]:
        ended = "its buffer follows in a later call" if cut.ended_ms > delivery.as_of_ms else "then uploaded its buffer"
        yield f"  {world.store_ids[cut.who]} was cut off {_span(cut)}, {ended}"
    if len(delivery.cut_offs) > MOST_NAMED:
        yield f"  {len(delivery.cut_offs) - MOST_NAMED:,} more stores were cut off later"
    if delivery.input_stops:
        yield f"  all input stopped {_listed([_span(stop) for stop in delivery.input_stops])}"
    if delivery.silences:
        yield f"  fell silent: {_listed([f'{world.sensor_ids[silence.who]} {_span(silence)}' for silence in delivery.silences])}"
    if delivery.lost:
        yield f"  {delivery.reasons['truncated_file']:,} uploads broke off and lost {delivery.lost:,} lines"
    yield f"  {delivery.on_the_way:,} lines are still on their way; the next call delivers them"
    yield f"as_of={to_iso(delivery.as_of_ms)}"


def _counts(counted: Counter[str], names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {counted[name]:,}" for name in names if counted[name]) or "none"


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _span(what: Interruption) -> str:
    return f"{clock_time(what.started_ms)}-{clock_time(what.ended_ms)}"
