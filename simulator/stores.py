"""The stores and their sensors: what stands where, how it behaves by nature, and the sensors with a story of their own."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator import chance, timestamps
from simulator.chance import Flags, Floats, Ints

# In this order, one for each store, as long as at most half of a store's sensors are special.
ROLES = ("slow", "retired", "never_reported", "not_in_inventory", "joins_later", "not_in_inventory", "patient")
SLOW_EVERY_S, SLOW_SILENT_AFTER_S = 300, 600
RETIRES_AFTER, LAST_WORD_AFTER = timestamps.HOUR, 50 * timestamps.MINUTE
JOINS_AFTER = 30 * timestamps.MINUTE
FREEZER_C, CHILLER_C = (-21.0, -15.0), (0.0, 6.0)


@dataclass(frozen=True)
class World:
    """All that stays the same from call to call."""

    seed: int
    stores: int
    sensors: int
    cadence_ms: int
    origin_ms: int

    @property
    def sensor_count(self) -> int:
        return self.stores * self.sensors

    @cached_property
    def sensor(self) -> Ints:
        return np.arange(self.sensor_count)

    @cached_property
    def store(self) -> Ints:
        """The store of each sensor."""
        return self.sensor // self.sensors

    @cached_property
    def store_ids(self) -> list[str]:
        width = max(3, len(str(self.stores)))
        return [f"store-{number:0{width}}" for number in range(1, self.stores + 1)]

    @cached_property
    def sensor_ids(self) -> list[str]:
        width = max(4, len(str(self.sensor_count)))
        return [f"sensor-{number:0{width}}" for number in range(1, self.sensor_count + 1)]

    @cached_property
    def roles(self) -> dict[int, str]:
        """The special sensors: the last ones of their stores."""
        places = {role_number: divmod(role_number, self.stores) for role_number in range(len(ROLES))}
        return {
            (store + 1) * self.sensors - 1 - row: ROLES[role_number]
            for role_number, (row, store) in places.items()
            if self.sensors - 1 - row >= max(3, self.sensors / 2)
        }

    def with_role(self, role: str) -> list[int]:
        return [sensor for sensor, its_role in self.roles.items() if its_role == role]

    def is_freezer(self, store: int) -> bool:
        return store % 3 == 1

    @cached_property
    def base_c(self) -> Floats:
        """The temperature each room is set to, well inside its store's limits."""
        low, high = np.array([FREEZER_C if self.is_freezer(store) else CHILLER_C for store in range(self.stores)]).T
        middle: Floats = ((low + high) / 2)[self.store]
        return middle + chance.between(-0.7, 0.7, self.seed, "base", self.sensor)

    @cached_property
    def resolution_milli(self) -> Ints:
        """Some sensors measure tenths of a degree, some hundredths, some thousandths."""
        return np.take(np.array([100, 10, 1]), (chance.bits(self.seed, "resolution", self.sensor) % np.uint64(3)).astype(np.int64))

    @cached_property
    def phase_ms(self) -> Ints:
        """When, within the cadence, a sensor speaks."""
        return (chance.uniform(self.seed, "phase", self.sensor) * (self.cadence_ms - self.jitter_ms)).astype(np.int64)

    @property
    def jitter_ms(self) -> int:
        return min(400, self.cadence_ms // 4)

    @cached_property
    def battery_start(self) -> Floats:
        """One sensor in twenty is near its end: it passes 20 % within hours."""
        return np.where(self.battery_is_tired, chance.between(20.3, 21.8, self.seed, "tired", self.sensor), self._battery_fresh)

    @cached_property
    def battery_per_hour(self) -> Floats:
        return np.where(self.battery_is_tired, 0.8, chance.between(0.005, 0.03, self.seed, "drain", self.sensor))

    @cached_property
    def battery_is_tired(self) -> Flags:
        return chance.uniform(self.seed, "battery", self.sensor) < 0.05

    @property
    def _battery_fresh(self) -> Floats:
        return chance.between(30, 100, self.seed, "fresh", self.sensor)
