"""A reading as its sensor would say it, field by field, for the few lines that are written one by one."""

from dataclasses import dataclass
from typing import NamedTuple

from simulator.rows import Rows
from simulator.stores import World
from simulator.timestamps import reading_time


class Row(NamedTuple):
    """One row of `rows.ROW` as plain numbers."""

    sensor: int
    store: int
    event_ms: int
    milli: int
    door: bool
    battery: int
    kind: int
    queued_ms: int
    arrived_ms: int
    dice: int


@dataclass(frozen=True)
class Spoken:
    """The JSON text of each field."""

    fields: dict[str, str]
    event_ms: int
    arrived_ms: int

    @property
    def line(self) -> str:
        return json_object(self.fields)

    def saying(self, **changed: str | None) -> str:
        """The line with some fields said otherwise, or (None) left out."""
        return json_object({name: text for name, text in {**self.fields, **changed}.items() if text is not None})


def json_object(fields: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}"


def as_plain_rows(rows: Rows) -> list[Row]:
    return [Row(*row) for row in rows.tolist()]


def spoken(row: Row, world: World) -> Spoken:
    fields = {
        "sensor_id": f'"{world.sensor_ids[row.sensor]}"',
        "store_id": f'"{world.store_ids[row.store]}"',
        "temperature": temperature_text(row.milli),
        "door_open": "true" if row.door else "false",
        "battery_pct": str(row.battery),
        "event_ts": f'"{reading_time(row.event_ms)}"',
    }
    return Spoken(fields, row.event_ms, row.arrived_ms)


def temperature_text(milli: int) -> str:
    """One to three decimals, as many as it takes."""
    whole, thousandths = divmod(abs(milli), 1000)
    decimals = f"{thousandths:03}".rstrip("0") or "0"
    return f"{'-' if milli < 0 else ''}{whole}.{decimals}"
