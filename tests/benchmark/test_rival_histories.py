"""The rival against the oracle: random histories, every table by value. It leaves out evidence, and the bytes of quarantined lines."""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmark import rival
from tests.oracle import readings, reference
from tests.oracle.comparison import BUILT
from tests.oracle.histories import MINUTE, SECOND, START_MS, History, Line, histories, iso

Rows = list[dict[str, Any]]
HEADERS = {
    "sensors": ("sensor_id", "store_id", "active_from", "retired_at", "silent_after_s", "expected_every_s"),
    "limits": ("store_id", "valid_from", "valid_to", "low_c", "high_c"),
    "suppressions": ("store_id", "sensor_id", "rule", "from", "to", "reason"),
}
TIMES = ("active_from", "retired_at", "valid_from", "valid_to", "from", "to")
NOT_THE_RIVALS = ("evidence",)
SLOPE = "slope_c_per_hour"


@st.composite
def with_gaps_in_limits(draw: st.DrawFn) -> History:
    """A history some of whose limits have one side only, or begin later: readings are passed over then."""
    history = draw(histories())
    missing = st.sampled_from([{}, {}, {"low_c": None}, {"high_c": None}, {"valid_from": history.as_of_ms - 60_000}])
    later = st.sampled_from([0, 0, 120_000])
    limits = [
        row | draw(missing) if row["valid_to"] is None else row | {"valid_to": row["valid_to"] - draw(later)} for row in history.limits
    ]
    return replace(history, limits=tuple(limits))


WARM, COLD = (5.1, 5.1, 7.1, 5.0, 4.501, 4.5, 2.0), (-1.1, -1.1, -4.0, -1.0, -0.501, -0.5, 2.0)
SENSORS = {"a1": WARM, "a2": WARM, "a3": COLD, "a4": COLD}


def stretches(temperatures: tuple[float, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    every_s, doors, levels = (30, 60, 60, 120, 121), (True, True, False, None), (19.9, 20, 24.9, 25, None)
    return st.tuples(st.integers(1, 4), *map(st.sampled_from, (every_s, temperatures, doors, levels)))


@st.composite
def restless(draw: st.DrawFn) -> History:
    """Sensors around their limits, with their doors and batteries, up to the same end: every reading may open, keep or clear something."""
    end, lines = START_MS + 60 * MINUTE, []
    for sensor_id, temperatures in SENSORS.items():
        time = end
        for count, seconds, temperature, door_open, battery_pct in draw(st.lists(stretches(temperatures), min_size=3, max_size=12)):
            for _ in range(count):
                fields = {"sensor_id": sensor_id, "store_id": "store-a", "temperature": temperature, "event_ts": iso(time)}
                lines.append(Line(json.dumps(fields | {"door_open": door_open, "battery_pct": battery_pct}).encode(), time))
                time -= seconds * SECOND
    changes = st.sampled_from([(10, 10), (14, 6), (20, 20), (24, 14)])
    until, since = (end - minutes * MINUTE for minutes in draw(changes))
    limits = ({"valid_from": None, "valid_to": until, "low_c": -1.0}, {"valid_from": since, "valid_to": None, "low_c": None})
    windows = ({"from": until, "to": since, "reason": "defrost"}, {"from": None, "to": end - 5 * MINUTE, "reason": "restocking"})
    return History(
        tuple(lines),
        end + draw(st.sampled_from([0, 150_000, 150_001])),
        limits=tuple({"store_id": "store-a", "high_c": 5.0} | row for row in limits),
        suppressions=tuple({"store_id": "store-a", "sensor_id": None, "rule": None} | row for row in windows),
    )


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(history=with_gaps_in_limits())
def test_any_history_gives_the_oracles_tables(history: History) -> None:
    agrees(history)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(history=restless())
def test_restless_sensors_give_the_oracles_tables(history: History) -> None:
    agrees(history)


def agrees(history: History) -> None:
    read = readings.read_history([readings.Line(line.text, line.arrived_ms) for line in history.lines])
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as db:
        place = Path(folder)
        _write_files(place, history)
        rival.make(db, place / "landing", place / "reference", iso(history.as_of_ms))

        assert _readings(db) == {(*key, row.temperature, row.store_id, row.arrived_ms) for key, row in read.winners.items()}, history
        assert _reasons(db) == Counter((row.line.arrived_ms, tuple(sorted(row.reasons))) for row in read.quarantined), history
        for name, build in BUILT.items():
            expected = _plain(build(read.winners, _reference(history), history.as_of_ms))
            assert _as_expected(_rows(db, name, expected), expected) == expected, f"{name}\n{history}"


def _write_files(place: Path, history: History) -> None:
    (place / "reference").mkdir()
    for name, header in HEADERS.items():
        with (place / "reference" / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            rows = ([_cell(column, row[column]) for column in header] for row in getattr(history, name))
            csv.writer(file).writerows([header, *rows])
    (place / "landing").mkdir()
    for arrived_ms, lines in history.files():
        path = place / "landing" / f"{arrived_ms}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        os.utime(path, ns=(arrived_ms * 1_000_000, arrived_ms * 1_000_000))


def _cell(column: str, value: Any) -> Any:
    return "" if value is None else iso(value) if column in TIMES else value


def _reference(history: History) -> reference.Reference:
    windows = ({"from_ms": row["from"], "to_ms": row["to"]} | row for row in history.suppressions)
    return reference.Reference(
        tuple(reference.Sensor(**row) for row in history.sensors),
        tuple(reference.Limit(**row) for row in history.limits),
        tuple(reference.Suppression(**{name: row[name] for name in row if name not in ("from", "to")}) for row in windows),
    )


def _readings(db: duckdb.DuckDBPyConnection) -> set[tuple[Any, ...]]:
    rows = db.execute("SELECT sensor_id, epoch_ms(event_ts), temperature_mc, store_id, epoch_ms(arrived_at) FROM readings").fetchall()
    assert len(set(rows)) == len(rows)
    return set(rows)


def _reasons(db: duckdb.DuckDBPyConnection) -> Counter[Any]:
    rows = db.execute("SELECT epoch_ms(arrived_at), list_sort(reasons) FROM quarantine").fetchall()
    return Counter((arrived_ms, tuple(reasons)) for arrived_ms, reasons in rows)


def _rows(db: duckdb.DuckDBPyConnection, table: str, expected: Rows) -> Rows:
    """The rival's, in the oracle's words: its columns only, times in milliseconds."""
    columns = list(expected[0]) if expected else ["*"]
    found = db.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
    return _plain([dict(zip(columns, map(_value, row), strict=False)) for row in found])


def _value(value: Any) -> Any:
    return round(value.replace(tzinfo=UTC).timestamp() * 1000) if isinstance(value, datetime) else value


def _plain(rows: Rows) -> Rows:
    kept = ({name: value for name, value in row.items() if name not in NOT_THE_RIVALS} for row in rows)
    return sorted(kept, key=lambda row: [str(value) for name, value in row.items() if name != SLOPE])


def _as_expected(rows: Rows, expected: Rows) -> Rows:
    """A slope within a billionth of the expected one counts as equal to it."""
    for row, other in zip(rows, expected, strict=False):
        if row.get(SLOPE) is not None and other[SLOPE] is not None and math.isclose(row[SLOPE], other[SLOPE], rel_tol=1e-9):
            row[SLOPE] = other[SLOPE]
    return rows
