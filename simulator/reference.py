"""The lake's reference files: which sensors there are, each store's limits, and when alerts are expected."""

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from simulator import physics
from simulator.stores import CHILLER_C, FREEZER_C, RETIRES_AFTER, SLOW_EVERY_S, SLOW_SILENT_AFTER_S, World
from simulator.timestamps import DAY, HOUR, MINUTE, to_iso

SENSORS = ("sensor_id", "store_id", "active_from", "retired_at", "silent_after_s", "expected_every_s")
LIMITS = ("store_id", "valid_from", "valid_to", "low_c", "high_c")
SUPPRESSIONS = ("store_id", "sensor_id", "rule", "from", "to", "reason")
IN_SERVICE_BEFORE = 30 * DAY
PLANNED_AHEAD = 12 * HOUR
DEFAULT_EVERY_S, DEFAULT_SILENT_AFTER_S = 60, 120
PATIENT_SILENT_AFTER_S = 300

Row = tuple[object, ...]


def write_reference(lake: Path, world: World, start_ms: int, end_ms: int, goes_on: bool) -> None:
    """A person may change these files; going on adds the windows that were not planned before, and touches nothing else."""
    folder = lake / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    for name, header, rows in (("sensors", SENSORS, _sensors(world)), ("limits", LIMITS, _limits(world))):
        if not (folder / f"{name}.csv").exists():
            _write(folder / f"{name}.csv", header, rows)
    suppressions = folder / "suppressions.csv"
    if not suppressions.exists():
        _write(suppressions, SUPPRESSIONS, [*_planned_work(world), *_defrosts(world, world.origin_ms - DAY, end_ms + PLANNED_AHEAD)])
    elif goes_on:
        _append(suppressions, _defrosts(world, start_ms + PLANNED_AHEAD, end_ms + PLANNED_AHEAD))


def _sensors(world: World) -> list[Row]:
    every_s = world.cadence_ms / 1000
    usual_every = "" if every_s <= DEFAULT_EVERY_S else round(every_s)
    usual_silence = "" if 3 * every_s < DEFAULT_SILENT_AFTER_S else round(4 * every_s)
    since = world.origin_ms - IN_SERVICE_BEFORE
    rows: list[Row] = []
    for sensor, store in enumerate(world.store.tolist()):
        role = world.roles.get(sensor)
        active_from, retired_at, silence, every = to_iso(since), "", usual_silence, usual_every
        if role == "not_in_inventory":
            continue
        if role == "slow":
            silence, every = SLOW_SILENT_AFTER_S, SLOW_EVERY_S
        elif role == "patient":
            silence = max(PATIENT_SILENT_AFTER_S, usual_silence or 0)
        elif role == "retired":
            retired_at = to_iso(world.origin_ms + RETIRES_AFTER)
        elif role == "joins_later":
            active_from = to_iso(world.origin_ms + 30 * MINUTE)
        rows.append((world.sensor_ids[sensor], world.store_ids[store], active_from, retired_at, silence, every))
    return rows


def _limits(world: World) -> list[Row]:
    """The first store is told to keep its goods a degree cooler from one hour after the beginning on."""
    since = to_iso(world.origin_ms - IN_SERVICE_BEFORE)
    changed = to_iso(world.origin_ms + HOUR)
    rows: list[Row] = []
    for store, store_id in enumerate(world.store_ids):
        low, high = FREEZER_C if world.is_freezer(store) else CHILLER_C
        if store == 0:
            rows += [(store_id, since, changed, low, high), (store_id, changed, "", low, high - 1)]
        else:
            rows.append((store_id, since, "", low, high))
    return rows


def _planned_work(world: World) -> list[Row]:
    restocking = (world.origin_ms + 15 * MINUTE, world.origin_ms + 60 * MINUTE)
    return [
        (world.store_ids[0], "", "door_left_open", *map(to_iso, restocking), "restocking"),
        (world.store_ids[-1], world.sensor_ids[-1], "", to_iso(world.origin_ms), to_iso(world.origin_ms + 2 * HOUR), "maintenance"),
    ]


def _defrosts(world: World, start_ms: int, end_ms: int) -> list[Row]:
    """The windows that begin in the span: a little longer than the defrosting itself, for the air to cool again."""
    stores = np.arange(world.stores)
    periods, offsets = physics.defrost_period_ms(world, stores).tolist(), physics.defrost_offset_ms(world, stores).tolist()
    windows = []
    for store_id, period, offset in zip(world.store_ids, periods, offsets, strict=True):
        first = -((offset - start_ms) // period)
        for begun in range(offset + first * period, end_ms, period):
            windows.append((begun, store_id, begun + physics.DEFROST_LASTS + 5 * MINUTE))
    return [(store_id, "", "too_warm", to_iso(begun), to_iso(ended), "defrost") for begun, store_id, ended in sorted(windows)]


def _write(path: Path, header: tuple[str, ...], rows: Iterable[Row]) -> None:
    unfinished = path.with_name(f".{path.name}.part")
    with unfinished.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    unfinished.replace(path)


def _append(path: Path, rows: Iterable[Row]) -> None:
    """Only what is not there yet: a call that died is repeated."""
    there = path.read_text(encoding="utf-8").splitlines()
    known = {tuple(row) for row in csv.reader(there[1:])}
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(row for row in rows if tuple(map(str, row)) not in known)
