"""What the readings of a window say together: the measures that store_minutes and store_trends share."""

from __future__ import annotations

from tests.oracle.lines import Reading


def degrees(value: int) -> float:
    """Thousandths as `temperature_c`: that integer / 1000."""
    return value / 1000


def measures(readings: list[Reading]) -> dict[str, int | float | None]:
    """Count, temperatures and the share of open doors; nulls where nobody said."""
    temperatures = [reading.temperature for reading in readings]
    return {
        "readings": len(readings),
        "temperature_avg_c": (sum(temperatures) / len(temperatures)) / 1000 if temperatures else None,
        "temperature_min_c": degrees(min(temperatures)) if temperatures else None,
        "temperature_max_c": degrees(max(temperatures)) if temperatures else None,
        "door_open_share": _door_open_share(readings),
    }


def _door_open_share(readings: list[Reading]) -> float | None:
    # Open among the readings that say.
    said = [reading.door_open for reading in readings if reading.door_open is not None]
    return sum(said) / len(said) if said else None
