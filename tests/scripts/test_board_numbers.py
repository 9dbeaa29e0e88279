"""The board's numbers are those of a SQL query on the same snapshot; the statements are written for what the board promises, not after its code."""

from __future__ import annotations

from typing import Any

import pytest

from published import board
from published.snapshot import published
from scripts.sql import answer, connected
from tests.lakes import TestLake

AT_A_GLANCE = """
WITH clock AS (SELECT max(as_of) AS until FROM runs WHERE status = 'published'),
day AS (SELECT * FROM store_minutes, clock WHERE window_start >= until - INTERVAL 24 HOUR AND window_start < until)
SELECT store_id,
       (SELECT round(avg(completeness), 9) FROM day WHERE day.store_id = h.store_id AND is_final) AS completeness,
       count(*) FILTER (status = 'reporting') AS reporting,
       list(sensor_id || ' ' || cause ORDER BY sensor_id) FILTER (status = 'silent') AS silent,
       max(last_seen_at) AS last_seen_at,
       (SELECT count(*) FROM alerts a WHERE a.store_id = h.store_id AND a.status = 'open' AND severity = 'critical') AS critical,
       (SELECT count(*) FROM alerts a WHERE a.store_id = h.store_id AND a.status = 'open' AND severity = 'warning') AS warning,
       (SELECT count(*) FROM alerts a WHERE a.store_id = h.store_id AND a.status = 'open' AND severity = 'info') AS info,
       (SELECT count(*) FROM alerts a WHERE a.store_id = h.store_id AND a.status = 'open'
          AND NOT EXISTS (SELECT 1 FROM acknowledgements k WHERE k.alert_id = a.alert_id)) AS unseen,
       (SELECT min(temperature_min_c) FROM day WHERE day.store_id = h.store_id) AS lowest,
       (SELECT max(temperature_max_c) FROM day WHERE day.store_id = h.store_id) AS highest
FROM heartbeats h GROUP BY store_id ORDER BY store_id
"""


def rows(lake: TestLake, statement: str) -> list[dict[str, Any]]:
    return list(answer(connected(published(lake.settings.lake), lake.settings), statement).to_pylist())


def test_every_store_at_a_glance(told_lake: TestLake) -> None:
    shown = [
        {
            "store_id": store.store_id, "completeness": store.completeness and round(store.completeness, 9), "reporting": store.sensors["reporting"],
            "silent": [f"{beat['sensor_id']} {beat['cause']}" for beat in store.silent] or None, "last_seen_at": store.last_seen_at,
            **{severity: store.alerts[severity] for severity in board.SEVERITIES}, "unseen": store.unseen,
            "lowest": min((point.low for point in store.temperatures), default=None), "highest": max((point.high for point in store.temperatures), default=None),
        }
        for store in sorted(board.stores(published(told_lake.settings.lake)), key=lambda store: store.store_id)
    ]  # fmt: skip
    asked = rows(told_lake, AT_A_GLANCE)
    assert shown == asked
    assert [row["store_id"] for row in asked] == ["store-1", "store-2"] and asked[0]["critical"] and asked[0]["silent"], (
        "else it compares nothing"
    )


@pytest.mark.parametrize("table", ["alerts", "outages", "door_sessions"])
def test_what_is_drawn_for_a_store(told_lake: TestLake, table: str) -> None:
    page = board.store(published(told_lake.settings.lake), "store-1", [])
    assert page is not None
    drawn = sorted((row["sensor_id"], row["started_at"], row["ended_at"]) for sensor in page.sensors for row in getattr(sensor, table))
    not_retracted = "AND status <> 'retracted'" if table == "alerts" else ""
    asked = rows(
        told_lake,
        f"SELECT sensor_id, started_at, ended_at FROM {table} WHERE store_id = 'store-1' {not_retracted} ORDER BY ALL",
    )
    assert drawn == [tuple(row.values()) for row in asked]
