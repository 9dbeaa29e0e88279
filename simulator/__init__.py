"""A simulator of cold stores: seeded readings with every fault the lake must bear, written as landing files.

`simulate(Options(lake=...))` writes the files and tells what it wrote. Whatever happens is a pure function of the seed,
the sensor and the time, so that four hours in one call and two calls of two hours give the same lines.
"""

from simulator.delivery import Delivery
from simulator.options import Options, OptionsError
from simulator.simulation import simulate

__all__ = ["Delivery", "Options", "OptionsError", "simulate"]
