"""Gateways collect what sensors say and upload it every few minutes; the upload is the arrival of all that is in it."""

from dataclasses import dataclass

import numpy as np

from simulator import chance
from simulator.chance import Ints
from simulator.interruptions import cut_offs
from simulator.stores import World
from simulator.timestamps import SECOND


@dataclass(frozen=True)
class Gateways:
    world: World
    file_ms: int
    one_for_all: bool
    cut_off_hours: float

    def of_store(self, store: Ints) -> Ints:
        return np.zeros_like(store) if self.one_for_all else store

    def arrivals(self, store: Ints, sent_ms: Ints) -> tuple[Ints, Ints]:
        """When lines sent by sensors arrive, and the places of those that waited in the gateway of a store that was cut off."""
        arrived = self._next_upload(store, sent_ms)
        waited = np.zeros(len(arrived), dtype=bool)
        if len(arrived) == 0:
            return arrived, np.flatnonzero(waited)
        undisturbed = arrived.copy()
        for cut in cut_offs(self.world, self.cut_off_hours, int(undisturbed.min()), int(undisturbed.max()) + 1):
            held = (store == cut.who) & (undisturbed >= cut.started_ms) & (undisturbed < cut.ended_ms)
            waited |= held
            arrived[held] = self._next_upload(store[held], np.full(int(held.sum()), cut.ended_ms))
        return arrived, np.flatnonzero(waited)

    def _next_upload(self, store: Ints, sent_ms: Ints) -> Ints:
        gateway = self.of_store(store)
        slot = sent_ms // self.file_ms
        upload = self._upload(gateway, slot)
        missed = sent_ms > upload
        upload[missed] = self._upload(gateway[missed], slot[missed] + 1)
        return upload

    def _upload(self, gateway: Ints, slot: Ints) -> Ints:
        """A few seconds before the slot is over, so that all that has arrived by its end is there at its end."""
        latest = min(9 * SECOND, self.file_ms // 4)
        early = 1 + chance.bits(self.world.seed, "upload", gateway, slot) % np.uint64(latest)
        return (slot + 1) * self.file_ms - early.astype(np.int64)
