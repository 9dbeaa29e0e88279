"""What goes wrong on the way: each reading has one fault at most, drawn by its share.

A copy never arrives before its original, and only a reading without any other fault has a copy. So the original always
wins, and what becomes of every line is known here, where it is made.
"""

import numpy as np

from simulator import chance
from simulator.chance import Flags, Ints
from simulator.gateways import Gateways
from simulator.options import Options
from simulator.rows import KIND, Rows, together
from simulator.timestamps import DAY, HOUR, MINUTE, SECOND

FUTURE_AFTER = 5 * MINUTE
SAME_INSTANT = 0.25  # the share of conflicts that arrive in the original's own file


def with_faults(rows: Rows, options: Options, gateways: Gateways) -> Rows:
    """Give the readings their faults and their arrival, and add the lines that faults bring along."""
    seed = gateways.world.seed
    fault = _drawn_faults(rows, options, seed)
    rows["kind"] = fault
    special = np.flatnonzero(fault != KIND["good"])
    rows["dice"][special] = chance.bits(seed, "dice", rows["sensor"][special], rows["event_ms"][special])

    _delay_late_lines(rows, seed)
    _stamp(rows, gateways)
    copies = [_near(rows, gateways), _far(rows, gateways), _conflicts(rows, gateways), rows[rows["kind"] == KIND["blank"]]]
    rows["kind"][np.isin(rows["kind"], [KIND["duplicate_near"], KIND["duplicate_far"], KIND["conflict"]])] = KIND["original"]
    rows["kind"][rows["kind"] == KIND["blank"]] = KIND["good"]
    _disorder(rows, gateways)
    _set_clocks_ahead(rows, seed)
    return together(rows, *copies)


def _drawn_faults(rows: Rows, options: Options, seed: int) -> Ints:
    shares = {
        "duplicate_near": options.duplicates / 2,
        "duplicate_far": options.duplicates / 2,
        "conflict": options.conflicts,
        "late": options.late,
        "out_of_order": options.out_of_order,
        "wrong_clock": options.wrong_clock,
        "bad": options.bad,
        "odd": options.odd,
        "blank": options.blank,
    }
    codes = np.array([KIND[name] for name in (*shares, "good")])
    lots = chance.uniform(seed, "fault", rows["sensor"], rows["event_ms"])
    return codes[np.searchsorted(np.cumsum(list(shares.values())), lots, side="right")]


def _stamp(rows: Rows, gateways: Gateways) -> None:
    store = gateways.world.store[rows["sensor"]]
    rows["arrived_ms"], waited = gateways.arrivals(store, rows["queued_ms"])
    rows["kind"][waited[rows["kind"][waited] == KIND["good"]]] = KIND["buffered"]


def _delay_late_lines(rows: Rows, seed: int) -> None:
    late = rows["kind"] == KIND["late"]
    rows["queued_ms"][late] += _delays(rows[late], seed, 15 * MINUTE, 5 * HOUR)


def _near(rows: Rows, gateways: Gateways) -> Rows:
    """Said again at once: in the same file or the next."""
    copies: Rows = rows[rows["kind"] == KIND["duplicate_near"]]
    copies["queued_ms"] += _delays(copies, gateways.world.seed, 1, gateways.file_ms)
    _stamp(copies, gateways)
    return copies


def _far(rows: Rows, gateways: Gateways) -> Rows:
    copies: Rows = rows[rows["kind"] == KIND["duplicate_far"]]
    copies["queued_ms"] = copies["arrived_ms"] + _delays(copies, gateways.world.seed, 30 * MINUTE, 6 * HOUR)
    _stamp(copies, gateways)
    return copies


def _conflicts(rows: Rows, gateways: Gateways) -> Rows:
    """Said again, otherwise: later, or in the same file, where the colder one wins wherever it stands."""
    copies: Rows = rows[rows["kind"] == KIND["conflict"]]
    world = gateways.world
    lots = chance.uniform(world.seed, "same instant", copies["sensor"], copies["event_ms"])
    together = lots < SAME_INSTANT
    _contradict(copies, together, world.stores)
    arrived = copies["arrived_ms"].copy()
    # The dice put the warmer copy before or after its original.
    beside = np.where(copies["dice"] & np.uint64(1), 1, -1)
    queued = copies["queued_ms"] + beside
    copies["queued_ms"] = arrived + _delays(copies, world.seed, MINUTE, 3 * HOUR)
    _stamp(copies, gateways)
    copies["arrived_ms"][together], copies["queued_ms"][together] = arrived[together], queued[together]
    return copies


def _contradict(copies: Rows, together: Flags, stores: int) -> None:
    """Most conflicts are about the temperature; of those later, some are about the door, the battery or the store."""
    about = np.where(together, 0, (copies["dice"] >> np.uint64(8)) % np.uint64(8))
    warmer = about <= (4 if stores > 1 else 5)
    copies["milli"][warmer] += (1 + (copies["dice"][warmer] >> np.uint64(16)) % np.uint64(4_900)).astype(np.int32)
    copies["store"][(about == 5) & ~warmer] = (copies["store"][(about == 5) & ~warmer] + 1) % stores
    copies["door"][about == 6] ^= True
    copies["battery"][about == 7] ^= 1


def _disorder(rows: Rows, gateways: Gateways) -> None:
    """Moved to another place in its file; the arrival stays."""
    moved = np.flatnonzero(rows["kind"] == KIND["out_of_order"])
    lots = chance.uniform(gateways.world.seed, "disorder", rows["sensor"][moved], rows["event_ms"][moved])
    rows["queued_ms"][moved] += ((2 * lots - 1) * gateways.file_ms).astype(np.int64)


def _set_clocks_ahead(rows: Rows, seed: int) -> None:
    wrong = np.flatnonzero(rows["kind"] == KIND["wrong_clock"])
    ahead = _delays(rows[wrong], seed, SECOND, 30 * DAY)
    rows["event_ms"][wrong] = rows["arrived_ms"][wrong] + FUTURE_AFTER + ahead


def _delays(rows: Rows, seed: int, shortest_ms: int, longest_ms: int) -> Ints:
    return chance.spread(shortest_ms, longest_ms, seed, "delay", rows["sensor"], rows["event_ms"]).astype(np.int64)
