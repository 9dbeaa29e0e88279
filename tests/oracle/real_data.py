"""Recordings of real sensors as histories: landing lines as the contract has them, when they arrived, and reference files that make them speak.

A recording is `<folder>/<name>/events_public.parquet`, its rows in the order of arrival (`_src_row`). What its sensors measured stays as it is;
what no recording has is added with a fixed seed: gateways that upload a file every few minutes, some of them hours late, and lines sent twice.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.oracle.clock import HOUR, MINUTE, SECOND
from tests.oracle.histories import History, Line, iso

Row = dict[str, Any]

UPLOAD_TAKES_MS = (SECOND, 20 * SECOND)
# One upload in five is late; nothing arrives after as_of.
UPLOAD_IS_LATE_BY = (*[0] * 12, 5 * MINUTE, 3 * HOUR, 30 * HOUR)
ONE_IN_SENT_TWICE, ONE_OF_THEM_CHANGED = 50, 5


def as_recorded(row: Row, before: Row | None) -> Row:
    return {}


def with_local_time(row: Row, before: Row | None) -> Row:
    """The fridge's gateway wrote its own time."""
    local = datetime.fromtimestamp(row["event_ms"] / 1000, timezone(timedelta(hours=2)))
    return {"event_ts": local.isoformat(timespec="seconds")}


def with_door_of_its_jumps(row: Row, before: Row | None) -> Row:
    """Nobody recorded a door: one is taken to be open beside a mote whose temperature has just jumped. The time is not the recording's 1970."""
    jumped = before is not None and abs(row["temperature"] - before["temperature"]) >= 0.3
    return {"event_ts": iso(row["event_ms"]), "door_open": jumped}


@dataclass(frozen=True)
class Recording:
    """A stretch of a data set, the pace of its files, and the limits (low, high) before and after they change in its middle."""

    name: str
    since: str
    file_every_ms: int
    limits: tuple[tuple[float, float], tuple[float, float]]
    sensors: tuple[str, ...] = ()  # empty: all
    starts_ms: int = 0  # when the recording's clock showed 1970
    volts: tuple[float, float] | None = None  # battery_pct is made of these, empty and full: nobody recorded a cell that runs low
    changes: Callable[[Row, Row | None], Row] = as_recorded


RECORDINGS = (
    # Both floors fall silent at 18:06 and return at 23:22; a sensor shows 579.27 °C now and then.
    Recording("keti_sdh", "2013-08-27T17:26:00Z", 5 * MINUTE, ((22.6, 23.0), (23.0, 23.6))),
    # The door closed for two experiments, five days of nothing, then the door open for hours.
    Recording("room_climate", "2016-03-24T14:30:00Z", 10 * MINUTE, ((21.4, 21.6), (20.7, 21.0))),
    # Twelve motes beside each other; some drop to 0 °C for a while, then the heating starts.
    Recording(
        "intel_lab_5day", "2004-02-29T16:00:00Z", 10 * MINUTE, ((17.0, 24.0), (16.8, 20.0)),
        sensors=tuple(f"mote-{number}" for number in range(16, 28)), starts_ms=1_077_926_400_000, changes=with_door_of_its_jumps,
    ),
    # Cells that lose their charge from hour to hour, and single rounds that were lost.
    Recording("ulb_library_wsn", "2006-11-13T00:00:00Z", 5 * MINUTE, ((21.2, 21.6), (20.6, 21.0)), volts=(2.6, 3.0)),
    # One fridge, heard in bursts; its cell is weaker when it is cold.
    Recording(
        "ruuvi_fridge", "2020-05-05T00:00:00Z", 30 * MINUTE, ((1.0, 2.5), (2.7, 3.2)), volts=(2.88, 2.96), changes=with_local_time,
    ),
    # Fahrenheit, taken for Celsius: only the coldest hours of the machine are temperatures that a store can have.
    Recording("nab", "2014-01-05T00:00:00Z", 24 * HOUR, ((40.0, 55.0), (30.0, 58.0))),
)  # fmt: skip


def history(folder: Path, recording: Recording, lines: int) -> History:
    """The first so many lines of the stretch, those sent twice on top; as of a minute after the last reading."""
    chance = random.Random(recording.name)
    rows = stretch(folder, recording, lines)
    as_of = max(row["event_ms"] for row in rows) + MINUTE
    sent = [
        (row["event_ms"], Line(text, arrived_ms))
        for row, text, arrived_ms in zip(rows, landing_lines(rows, recording), arrivals(rows, recording, as_of, chance), strict=True)
    ]
    first, middle = min(row["event_ms"] for row in rows), sorted(row["event_ms"] for row in rows)[len(rows) // 2]
    places = {row["sensor_id"]: row["store_id"] for row in rows}
    return History(
        tuple(line for _, line in sent) + tuple(sent_twice(sent, chance)),
        as_of,
        tuple(inventory(places, middle)),
        tuple(limits(sorted(set(places.values())), recording, middle)),
        tuple(suppressions(places, first, middle)),
    )


def stretch(folder: Path, recording: Recording, lines: int) -> list[Row]:
    """The stretch's rows in the order of arrival, each with its event_ms."""
    since = round(datetime.fromisoformat(recording.since).timestamp() * 1000) - recording.starts_ms
    wanted: list[tuple[str, str, Any]] = [("_event_ms", ">=", since)]
    if recording.sensors:
        wanted.append(("sensor_id", "in", recording.sensors))
    recorded = pq.read_table(folder / recording.name / "events_public.parquet", filters=wanted)
    rows = recorded.sort_by([("_event_ms", "ascending"), ("_src_row", "ascending")]).slice(0, lines).to_pylist()
    return sorted((row | {"event_ms": row["_event_ms"] + recording.starts_ms} for row in rows), key=lambda row: row["_src_row"])


def landing_lines(rows: list[Row], recording: Recording) -> Iterator[bytes]:
    """Each row as a gateway sends it; what it does not know is not said."""
    before: dict[str, Row] = {}
    for row in rows:
        said = row | battery(row, recording) | recording.changes(row, before.get(row["sensor_id"]))
        before[row["sensor_id"]] = row
        fields = {name: said[name] for name in ("sensor_id", "store_id", "temperature", "door_open", "battery_pct", "event_ts")}
        yield json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def battery(row: Row, recording: Recording) -> Row:
    if recording.volts is None:
        return {}
    empty, full = recording.volts
    return {"battery_pct": round(100 * (row["_battery_v"] - empty) / (full - empty), 1)}


def arrivals(rows: list[Row], recording: Recording, as_of: int, chance: random.Random) -> Iterator[int]:
    """Each store's gateway uploads what its sensors sent since its last upload; a row that steps back in time is sent after those before it."""
    sent: dict[str, int] = {}
    uploads: dict[tuple[str, int], int] = {}
    for row in rows:
        sent[row["sensor_id"]] = max(row["event_ms"], sent.get(row["sensor_id"], 0))
        number = sent[row["sensor_id"]] // recording.file_every_ms
        upload = (row["store_id"], number)
        if upload not in uploads:
            due = (number + 1) * recording.file_every_ms + chance.randint(*UPLOAD_TAKES_MS)
            uploads[upload] = min(due + chance.choice(UPLOAD_IS_LATE_BY), as_of)
        yield uploads[upload]


def sent_twice(sent: list[tuple[int, Line]], chance: random.Random) -> Iterator[Line]:
    """Some lines again in any file after their reading (so before their own, when that was late); a few of them say something else."""
    uploads = sorted({line.arrived_ms for _, line in sent})
    for number, (event_ms, line) in enumerate(chance.sample(sent, len(sent) // ONE_IN_SENT_TWICE)):
        fields = json.loads(line.text)
        if number % ONE_OF_THEM_CHANGED == 0:
            fields["temperature"] = round(fields["temperature"] + 0.1, 3)
        yield Line(json.dumps(fields).encode(), chance.choice(uploads[bisect_left(uploads, event_ms) :]))


def inventory(places: dict[str, str], middle: int) -> Iterator[Row]:
    """Every other sensor, some with a word of their own, and one that nobody has ever heard."""
    words = cycle(({"silent_after_s": 600}, {"active_from": middle}, {"retired_at": middle}, {"expected_every_s": 300}, {}))
    unsaid = dict.fromkeys(("active_from", "retired_at", "silent_after_s", "expected_every_s"))
    for sensor_id, word in zip(sorted(places)[::-2], words, strict=False):
        yield {"sensor_id": sensor_id, "store_id": places[sensor_id], **unsaid, **word}
    yield {"sensor_id": "spare", "store_id": min(places.values()), **unsaid}


def limits(stores: list[str], recording: Recording, middle: int) -> Iterator[Row]:
    """The same for every store, with a change in the middle."""
    for store_id in stores:
        for since, until, (low, high) in zip((None, middle), (middle, None), recording.limits, strict=True):
            yield {"store_id": store_id, "valid_from": since, "valid_to": until, "low_c": low, "high_c": high}


def suppressions(places: dict[str, str], first: int, middle: int) -> Iterator[Row]:
    """One sensor is being mended all the time; its whole store is restocked in the first half of the first half."""
    sensor_id = max(places)
    everything = {"store_id": places[sensor_id], "sensor_id": None, "rule": None, "from": first, "to": (first + middle) // 2}
    yield everything | {"sensor_id": sensor_id, "rule": "missed_heartbeat", "to": None, "reason": "maintenance"}
    yield everything | {"reason": "restocking"}
