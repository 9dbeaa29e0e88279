"""Where the simulation stopped: kept beside the lake's data, so that the next call goes on from there."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simulator import timestamps
from simulator.options import DEFAULT_START, OPTION_NAMES, Options, OptionsError
from simulator.rows import ROW, Rows, empty
from simulator.stores import World

STATE_FILE = "sample.json"
# These belong to one call, or are known by where the state lies.
_NOT_KEPT = {"lake", "start", "truth", "readings"}


@dataclass(frozen=True)
class State:
    """The world, the moment the next call begins, and the lines that were sent and have not arrived."""

    world: World
    next_start_ms: int
    pending: Rows
    options: dict[str, Any]
    goes_on: bool

    def save(self, lake: Path) -> None:
        content = {
            "world": asdict(self.world),
            "next_start": timestamps.to_iso(self.next_start_ms),
            "options": self.options,
            "pending_columns": list(ROW.names or ()),
            "pending": [list(row) for row in self.pending.tolist()],
        }
        unfinished = lake / f".{STATE_FILE}.part"
        unfinished.write_text(json.dumps(content) + "\n", encoding="utf-8")
        os.replace(unfinished, lake / STATE_FILE)


def kept_options(lake: Path) -> dict[str, Any]:
    """What the last call on this lake was asked for; nothing when there was none."""
    path = lake / STATE_FILE
    if not path.exists():
        return {}
    options = _content(path)["options"]
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items() if name in OPTION_NAMES}


def resume_or_begin(options: Options) -> State:
    path = options.lake / STATE_FILE
    kept = {name: _plain(value) for name, value in asdict(options).items() if name not in _NOT_KEPT}
    if not path.exists():
        origin_ms = timestamps.from_iso(options.start or DEFAULT_START)
        world = World(options.seed, options.stores, options.sensors, options.cadence_ms, origin_ms)
        return State(world, origin_ms, empty(), kept, goes_on=False)
    content = _content(path)
    next_start_ms = timestamps.from_iso(content["next_start"])
    world = World(**content["world"])
    _refuse_another_world(path, world, next_start_ms, options)
    pending = np.array([tuple(row) for row in content["pending"]], dtype=ROW)
    return State(world, next_start_ms, pending, kept, goes_on=True)


def _refuse_another_world(path: Path, world: World, next_start_ms: int, options: Options) -> None:
    pairs = (
        ("seed", world.seed, options.seed),
        ("stores", world.stores, options.stores),
        ("sensors", world.sensors, options.sensors),
        ("cadence", world.cadence_ms / 1000, options.cadence_ms / 1000),
    )
    for name, was, asked in pairs:
        if was != asked:
            raise OptionsError(f"{name} was {was:g} when {path} was begun, not {asked:g}; keep it, or simulate into another lake")
    if options.start is not None and timestamps.from_iso(options.start) != next_start_ms:
        goes_on_at = timestamps.to_iso(next_start_ms)
        raise OptionsError(f"{path} goes on at {goes_on_at}, not at {options.start}; leave start out, or simulate into another lake")


def _content(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OptionsError(f"{path} cannot be read ({error}); remove it to begin anew, in an empty landing folder") from error
    return content


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
