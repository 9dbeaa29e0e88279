"""Chance that does not depend on the order of asking: a hash of the seed, a topic and whole numbers."""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GOLDEN = 0x9E3779B97F4A7C15
_ALL_64 = 0xFFFFFFFFFFFFFFFF


def bits(seed: int, topic: str, *keys: Any) -> Bits:
    """64 random bits for each combination of the keys (whole numbers or arrays of them, broadcast together)."""
    start = (seed * _GOLDEN + zlib.crc32(topic.encode()) * 0xBF58476D1CE4E5B9) & _ALL_64
    state = np.full(1, start, dtype=np.uint64)
    for key in keys:
        state = _mixed(state ^ (np.asarray(key).astype(np.int64).view(np.uint64) * np.uint64(_GOLDEN)))
    return state


def uniform(seed: int, topic: str, *keys: Any) -> Floats:
    """A number in [0, 1) for each combination of the keys."""
    return (bits(seed, topic, *keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def between(low: float, high: float, seed: int, topic: str, *keys: Any) -> Floats:
    return low + (high - low) * uniform(seed, topic, *keys)


def spread(low: float, high: float, seed: int, topic: str, *keys: Any) -> Floats:
    """Between low and high, as many small ones as large ones on a logarithmic scale: delays are like that."""
    return low * (high / low) ** uniform(seed, topic, *keys)


def _mixed(state: Bits) -> Bits:
    """The finaliser of splitmix64, in place: every input bit reaches every output bit."""
    state += np.uint64(_GOLDEN)
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return state
