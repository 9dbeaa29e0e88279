"""Things that happen to a sensor now and then: at most one in each block of time, and wholly inside it."""

from dataclasses import dataclass

import numpy as np

from simulator import chance
from simulator.chance import Flags, Floats, Ints
from simulator.stores import World


@dataclass(frozen=True)
class Happening:
    """A row for each reading: how long ago the episode of its block began, how long it lasts, how strong it is (0: there is none)."""

    age_ms: Floats
    length_ms: Floats
    strength: Floats

    @property
    def goes_on(self) -> Flags:
        return (self.strength > 0) & (self.age_ms >= 0) & (self.age_ms < self.length_ms)


@dataclass(frozen=True)
class Habit:
    """How often something happens, and how: ranges of its length and its strength."""

    topic: str
    block_ms: int
    share: float
    length_ms: tuple[float, float]
    strength: tuple[float, float]
    night_share: float | None = None

    def at(self, world: World, sensor: Ints, event_ms: Ints, blocks_before: int = 0) -> Happening:
        """What the habit does to readings; blocks_before looks at what happened earlier and may still be felt."""
        block = event_ms // self.block_ms - blocks_before
        first = int(block.min())
        table = self._table(world, np.arange(first, int(block.max()) + 1))
        start, length, strength = (column[block - first, sensor] for column in table)
        return Happening(event_ms - start, length, strength)

    def _table(self, world: World, blocks: Ints) -> tuple[Floats, Floats, Floats]:
        """Start, length and strength for each block and sensor: far fewer than there are readings."""
        keys = (blocks[:, None], world.sensor[None, :])
        happens = chance.uniform(world.seed, self.topic, *keys) < self._share(blocks)[:, None]
        # Long ones are rare: the cube keeps most of them near the shortest.
        shortest, longest = self.length_ms
        length = shortest + (longest - shortest) * chance.uniform(world.seed, self.topic + " length", *keys) ** 3
        start = blocks[:, None] * self.block_ms + chance.uniform(world.seed, self.topic + " start", *keys) * (self.block_ms - length)
        strength = np.where(happens, chance.between(*self.strength, world.seed, self.topic + " strength", *keys), 0.0)
        return start, length, strength

    def _share(self, blocks: Ints) -> Floats:
        hour = blocks * self.block_ms // 3_600_000 % 24
        return np.where((hour >= 6) & (hour < 21), self.share, self.share if self.night_share is None else self.night_share)
