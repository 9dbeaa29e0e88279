"""What the store board shows, from one published snapshot: every store at a glance, and one store on a time axis. Plain rows; no page, no Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from include.acknowledged import said_of
from published.snapshot import Snapshot

SEVERITIES = ("critical", "warning", "info")
POINTS = 96  # of a picture: a day in quarters of an hour
Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """A stretch of time: what was measured in it."""

    at: datetime
    low: float
    average: float
    high: float


@dataclass(frozen=True)
class Span:
    starts: datetime
    ends: datetime


@dataclass
class Store:
    """One line of the board."""

    store_id: str
    temperatures: list[Point] = field(default_factory=list)
    completeness: float | None = None  # of its settled minutes
    last_seen_at: datetime | None = None
    sensors: Counter[str] = field(default_factory=Counter)  # by status
    silent: list[Row] = field(default_factory=list)  # their heartbeats
    alerts: Counter[str] = field(default_factory=Counter)  # open ones by severity
    unseen: int = 0  # open alerts that nobody has acknowledged

    @property
    def graveness(self) -> tuple[Any, ...]:
        """What needs a person comes first."""
        return (*(-self.alerts[severity] for severity in SEVERITIES), -len(self.silent), self.store_id)


@dataclass
class Sensor:
    """One sensor of a store, on the time axis."""

    sensor_id: str
    status: str
    temperatures: list[Point] = field(default_factory=list)
    outages: list[Row] = field(default_factory=list)
    door_sessions: list[Row] = field(default_factory=list)
    alerts: list[Row] = field(default_factory=list)


@dataclass
class StorePage:
    store: Store
    span: Span
    limits: list[Row]  # in force in the span, as the reference file has them
    sensors: list[Sensor]
    repairs: list[datetime]  # settled minutes that late readings changed
    alerts: list[Row]  # open ones and those of the span, with what people `said` of them


def day_until(snapshot: Snapshot, hours: int = 24) -> Span:
    ends: datetime = snapshot.run["as_of"]
    return Span(ends - timedelta(hours=hours), ends)


def stores(snapshot: Snapshot) -> list[Store]:
    """All of them, those that need somebody first."""
    span, found = day_until(snapshot), dict[str, Store]()
    minutes = _minutes(snapshot, span)
    points = _points(minutes, "store_id", "window_start", span)
    for row in minutes.filter(pc.field("is_final")).group_by("store_id").aggregate([("completeness", "mean")]).to_pylist():
        _of(found, row["store_id"]).completeness = row["completeness_mean"]
    for store_id, temperatures in points.items():
        _of(found, store_id).temperatures = temperatures
    for beat in snapshot.dataset("heartbeats").to_table().to_pylist():
        _add_sensor(_of(found, beat["store_id"]), beat)
    said = snapshot.dataset("acknowledgements").to_table().to_pylist()
    for alert in snapshot.dataset("alerts").to_table(filter=ds.field("status") == "open").to_pylist():
        _add_alert(_of(found, alert["store_id"]), alert, said)
    return sorted(found.values(), key=lambda store: store.graveness)


def store(snapshot: Snapshot, store_id: str, limits: Iterable[Row], hours: int = 24) -> StorePage | None:
    """None where nobody knows it."""
    span, one = day_until(snapshot, hours), Store(store_id)
    here = ds.field("store_id") == store_id
    minutes = _minutes(snapshot, span, here)
    one.temperatures = _points(minutes, "store_id", "window_start", span).get(store_id, [])
    one.completeness = pc.mean(minutes.filter(pc.field("is_final"))["completeness"]).as_py()
    sensors = {beat["sensor_id"]: Sensor(beat["sensor_id"], beat["status"]) for beat in _heartbeats(snapshot, here, one)}
    said = snapshot.dataset("acknowledgements").to_table().to_pylist()
    alerts = []
    for alert in _episodes(snapshot, "alerts", span, here & (ds.field("status") != "retracted")):
        alerts.append({**alert, "said": said_of(alert, said)})
        _sensor(sensors, alert).alerts.append(alerts[-1])
        if alert["status"] == "open":
            _add_alert(one, alert, said)
    for outage in _episodes(snapshot, "outages", span, here):
        _sensor(sensors, outage).outages.append(outage)
    for session in _episodes(snapshot, "door_sessions", span, here):
        _sensor(sensors, session).door_sessions.append(session)
    for sensor_id, points in _readings(snapshot, span, here).items():
        _sensor(sensors, {"sensor_id": sensor_id}).temperatures = points
    if not sensors and not one.temperatures:
        return None
    repairs = minutes.filter(pc.field("is_final") & (pc.field("revision") > 0))["window_start"].to_pylist()
    in_force = [row for row in limits if row["store_id"] == store_id and _meets(row["valid_from"], row["valid_to"], span)]
    order = sorted(alerts, key=lambda row: (row["status"] != "open", SEVERITIES.index(row["severity"]), row["started_at"]))
    return StorePage(one, span, in_force, [sensors[name] for name in sorted(sensors)], sorted(repairs), order)


def _of(found: dict[str, Store], store_id: str) -> Store:
    return found.setdefault(store_id, Store(store_id))


def _sensor(found: dict[str, Sensor], row: Row) -> Sensor:
    """One that has moved on, or is not in the inventory, has its lane, too."""
    return found.setdefault(row["sensor_id"], Sensor(row["sensor_id"], "elsewhere"))


def _add_sensor(one: Store, beat: Row) -> None:
    one.sensors[beat["status"]] += 1
    one.last_seen_at = max(filter(None, (one.last_seen_at, beat["last_seen_at"])), default=None)
    if beat["status"] == "silent":
        one.silent.append(beat)


def _add_alert(one: Store, alert: Row, said: list[Row]) -> None:
    one.alerts[alert["severity"]] += 1
    one.unseen += not said_of(alert, said)


def _heartbeats(snapshot: Snapshot, here: Any, one: Store) -> list[Row]:
    beats = snapshot.dataset("heartbeats").to_table(filter=here).to_pylist()
    for beat in beats:
        _add_sensor(one, beat)
    return list(beats)


def _minutes(snapshot: Snapshot, span: Span, where: Any = None) -> pa.Table:
    columns = [
        "store_id",
        "window_start",
        "temperature_min_c",
        "temperature_avg_c",
        "temperature_max_c",
        "completeness",
        "is_final",
        "revision",
    ]
    inside = _days("window_date", span) & (ds.field("window_start") >= span.starts) & (ds.field("window_start") < span.ends)
    return snapshot.dataset("store_minutes").to_table(columns=columns, filter=inside if where is None else inside & where)


def _readings(snapshot: Snapshot, span: Span, here: Any) -> dict[str, list[Point]]:
    inside = _days("event_date", span) & (ds.field("event_ts") >= span.starts) & (ds.field("event_ts") < span.ends)
    found = snapshot.dataset("readings").to_table(columns=["sensor_id", "event_ts", "temperature_c"], filter=inside & here)
    named = {f"temperature_{which}_c": found["temperature_c"] for which in ("min", "avg", "max")}
    return _points(pa.table({"sensor_id": found["sensor_id"], "event_ts": found["event_ts"], **named}), "sensor_id", "event_ts", span)


def _episodes(snapshot: Snapshot, table: str, span: Span, where: Any) -> list[Row]:
    """Those that reach into the span."""
    ends = ds.field("ended_at")
    inside = (ds.field("started_at") < span.ends) & (ends.is_null() | (ends >= span.starts))
    return list(snapshot.dataset(table).to_table(filter=inside & where).to_pylist())


def _days(column: str, span: Span) -> Any:
    return (ds.field(column) >= span.starts.date()) & (ds.field(column) <= span.ends.date())


def _points(rows: pa.Table, who: str, when: str, span: Span) -> dict[str, list[Point]]:
    """At most so many for each; where nothing was measured there is none."""
    width_ms = max(1, (span.ends - span.starts) // timedelta(milliseconds=POINTS))
    since = pc.milliseconds_between(pa.scalar(span.starts, rows[when].type), rows[when])
    kept = rows.append_column("slot", pc.divide(since, width_ms)).filter(pc.field("temperature_avg_c").is_valid())
    measures = [("temperature_min_c", "min"), ("temperature_avg_c", "mean"), ("temperature_max_c", "max")]
    found = defaultdict[str, list[Point]](list)
    for row in kept.group_by([who, "slot"]).aggregate(measures).sort_by([(who, "ascending"), ("slot", "ascending")]).to_pylist():
        at = span.starts + timedelta(milliseconds=row["slot"] * width_ms)
        found[row[who]].append(Point(at, row["temperature_min_c_min"], row["temperature_avg_c_mean"], row["temperature_max_c_max"]))
    return dict(found)


def _meets(starts: datetime | None, ends: datetime | None, span: Span) -> bool:
    return (starts is None or starts < span.ends) and (ends is None or ends > span.starts)
