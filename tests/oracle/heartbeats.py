"""heartbeats: one row for each sensor in the inventory or ever seen, and whether it is alive at as_of.

Read as: a retired sensor that reported keeps its last_seen_at; silent_since and cause are null unless the status is `silent`.
"""

from __future__ import annotations

from tests.oracle import outages
from tests.oracle.clock import heard_until
from tests.oracle.lines import Reading
from tests.oracle.readings import Winners, by_sensor
from tests.oracle.reference import Reference


def build(winners: Winners, reference: Reference, as_of: int) -> list[dict]:
    """The rows, by sensor."""
    histories = by_sensor(winners)
    open_outages = {row["sensor_id"]: row for row in outages.build(winners, reference, as_of) if row["ended_at"] is None}
    everyone = histories.keys() | {sensor.sensor_id for sensor in reference.sensors}
    rows = []
    for sensor_id in sorted(everyone):
        last = histories[sensor_id][-1] if sensor_id in histories else None
        status = _status(sensor_id, last, reference, as_of)
        outage = open_outages[sensor_id] if status == "silent" else None
        sensor = reference.sensor(sensor_id)
        rows.append(
            {
                "sensor_id": sensor_id,
                "store_id": sensor.store_id if sensor else last.store_id,
                "status": status,
                "last_seen_at": last.event_ms if last else None,
                "silent_since": outage["started_at"] if outage else None,
                "cause": outage["cause"] if outage else None,
                "as_of": as_of,
            }
        )
    return rows


def _status(sensor_id: str, last: Reading | None, reference: Reference, as_of: int) -> str:
    sensor = reference.sensor(sensor_id)
    # Retired goes before all others.
    if sensor and sensor.is_retired(as_of):
        return "retired"
    if last is None:
        return "never_reported"
    # `reporting` unless heard_until − last_seen_at > its timeout.
    if heard_until(as_of) - last.event_ms > reference.silent_after_ms(sensor_id):
        return "silent"
    return "reporting"
