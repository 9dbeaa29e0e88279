"""The board's pages, as a browser gets them: what stands on them, who may see them, and who may acknowledge."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.core_api.security import get_user
from deltalake import DeltaTable
from fastapi.testclient import TestClient

from board import app as board_app
from tests.dags.board_lakes import a_lake, ago, minutes
from tests.dags.visitors import visit, words

Ask = Callable[..., TestClient]
ALERT = {
    "alert_id": "ab" * 16, "rule": "too_warm", "severity": "critical", "sensor_id": "sensor-1", "store_id": "store-1", "started_at": ago(2),
    "ended_at": None, "peak": 9.5, "status": "open", "limit_low_c": 0.0, "limit_high_c": 5.0,
}  # fmt: skip
HEARTBEAT = {"store_id": "store-1", "status": "reporting", "last_seen_at": ago(0), "silent_since": None, "cause": None, "as_of": ago(0)}
ROWS = {
    "store_minutes": [*minutes("store-1", 30, completeness=0.5), *minutes("store-2", 1, temperature=-20)],
    "heartbeats": [
        HEARTBEAT | {"sensor_id": "sensor-1"},
        HEARTBEAT | {"sensor_id": "sensor-2", "status": "silent", "last_seen_at": ago(5), "silent_since": ago(5), "cause": "store"},
        HEARTBEAT | {"sensor_id": "sensor-3", "store_id": "store-2"},
        HEARTBEAT | {"sensor_id": "<script>", "store_id": "store 3/4", "status": "never_reported", "last_seen_at": None},
    ],
    "alerts": [
        ALERT,
        ALERT | {"alert_id": "cd" * 16, "rule": "low_battery", "severity": "info", "peak": None, "started_at": ago(20)},
        ALERT | {"alert_id": "ef" * 16, "status": "retracted", "ended_at": ago(1)},
        ALERT | {"alert_id": "01" * 16, "status": "resolved", "started_at": ago(60), "ended_at": ago(50)},
    ],
    "outages": [{"sensor_id": "sensor-2", "store_id": "store-1", "started_at": ago(5), "ended_at": None, "cause": "store"}],
    "door_sessions": [
        {
            "sensor_id": "sensor-1",
            "store_id": "store-1",
            "started_at": ago(3),
            "ended_at": ago(2.9),
            "readings": 3,
            "peak_c": 7.0,
            "rise_c": 2.0,
        }
    ],
    "readings": [
        {"sensor_id": "sensor-1", "store_id": "store-1", "event_ts": ago(hours / 10), "temperature_c": hours / 10}
        for hours in range(1, 400)
    ],
}


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """A browser of somebody with these rights, on a lake with these rows."""

    def asked(*rights: str, rows: dict[str, Any] | None = None, status: str = "published") -> TestClient:
        if not (tmp_path / "lake").exists():
            a_lake(tmp_path / "lake", rows or ROWS, status)
        return visit(monkeypatch, tmp_path / "lake", *rights)

    return asked


def test_who_needs_somebody_comes_first(ask: Ask) -> None:
    page = ask("GET").get("/").text
    told = words(page)
    assert told.startswith(
        "Cold stores Quality Data Docs Cold stores published run night, up to 08 Nov 2025 12:00 UTC, published 7 min ago"
    )
    first = told.index(
        "store-1 1 critical 1 info 2 not acknowledged 1 reporting sensor-2 silent (store) 50.0 % complete 08 Nov 12:00 last reading"
    )
    second = told.index("store 3/4 no open alert 0 reporting – complete never last reading")
    third = told.index("store-2 no open alert 1 reporting 100.0 % complete 08 Nov 12:00 last reading")
    assert first < second < third
    assert page.count('<svg class="spark"') == 3 and 'aria-label="1.0 to 3.0 °C in 24 hours"' in page and "no readings" in page


def test_a_store_on_one_time_axis(ask: Ask) -> None:
    page = ask("GET", "POST").get("/stores/store-1").text
    for drawn in (
        '<rect class="critical"', "too_warm (critical, open) from 08 Nov 10:00 and still", '<rect class="outage"', "silent from 08 Nov 07:00 and still; cause: store",
        '<rect class="door"', "door open from 08 Nov 09:00 to 08 Nov 09:06; up to 7.0 °C", "sensor-1 <tspan", "sensor-2 <tspan",
    ):  # fmt: skip
        assert drawn in page, drawn
    told = words(page)
    assert "critical too_warm sensor-1, open, from 08 Nov 10:00, peak 9.5, limits 0.0 to 5.0 °C" in told
    assert "retracted" not in told and "06 Nov" not in told, "what is withdrawn, or over before the span, is not there"
    assert "06 Nov 00:00 to 06 Nov 10:00" in words(ask("GET").get("/stores/store-1?hours=72").text)


def test_limits_and_repairs_are_drawn(ask: Ask, tmp_path: Path) -> None:
    rows = ROWS | {"store_minutes": [*minutes("store-1", 3), *minutes("store-1", 1 / 60, revision=1)]}
    browser = ask("GET", rows=rows)
    (tmp_path / "lake/reference").mkdir()
    limits = tmp_path / "lake/reference/limits.csv"
    limits.write_text(
        "store_id,valid_from,valid_to,low_c,high_c\nstore-1,2025-11-08T00:00:00Z,,0,5\nstore-2,,,1,4\nstore-1,,2025-11-01,7,8\n"
    )
    page = browser.get("/stores/store-1").text
    assert re.findall(r"limit (\S+) °C", page) == ["0", "5"]
    assert page.count('<path class="repair"') == 1 and "late readings changed the minute 2025-11-08 11:59" in page
    limits.write_text("nonsense")
    assert browser.get("/stores/store-1").status_code == 200


def test_an_acknowledgement_is_on_the_page_and_in_the_table_with_who_and_why(ask: Ask, tmp_path: Path) -> None:
    browser = ask("GET", "POST")
    assert browser.get("/").text.count("2 not acknowledged") == 1
    answer = browser.post("/acknowledge", data={"alert_id": "ab" * 16, "store_id": "store-1", "comment": "the <door> was open"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/stores/store-1#{'ab' * 16}")
    (row,) = DeltaTable(str(tmp_path / "lake/tables/acknowledgements")).to_pyarrow_table().to_pylist()
    assert (row["acknowledged_by"], row["comment"], row["alert_id"], row["seen_until"]) == ("Ada", "the <door> was open", "ab" * 16, ago(0))
    assert "the &lt;door&gt; was open" in browser.get("/stores/store-1").text
    assert browser.get("/").text.count("1 not acknowledged") == 1


def test_who_may_only_look_is_shown_no_form_and_refused(ask: Ask, tmp_path: Path) -> None:
    viewer = ask("GET")
    page = viewer.get("/stores/store-1").text
    assert "<form" not in page and "Your role may look, not acknowledge." in page
    refused = viewer.post("/acknowledge", data={"alert_id": "ab" * 16, "store_id": "store-1", "comment": "x"})
    assert refused.status_code == 403
    assert DeltaTable(str(tmp_path / "lake/tables/acknowledgements")).version() == 0
    stranger = ask()
    assert [stranger.get(path).status_code for path in ("/", "/stores/store-1")] == [403, 403]


def test_without_a_login_nothing_is_shown(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = ask("GET")
    monkeypatch.delitem(board_app.app.dependency_overrides, get_user)
    codes = [browser.get(path).status_code for path in ("/", "/stores/store-1")]
    assert [*codes, browser.post("/acknowledge", data={"alert_id": "a", "store_id": "b", "comment": "c"}).status_code] == [401, 401, 401]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"alert_id": "ff" * 16, "comment": "x"}, "there is no alert ffff"),
        ({"alert_id": "ef" * 16, "comment": "x"}, "is retracted"),
        ({"alert_id": "ab" * 16, "comment": "  "}, "say who has seen to the alert and why"),
    ],
)
def test_what_cannot_be_acknowledged_is_told(ask: Ask, data: dict[str, str], told: str) -> None:
    answer = ask("GET", "POST").post("/acknowledge", data={"store_id": "store-1", **data})
    assert answer.status_code == 409 and told in words(answer.text) and 'href="/stores/store-1"' in answer.text


def test_odd_names_are_shown_as_they_are_and_never_run(ask: Ask) -> None:
    assert 'href="/stores/store%203/4"' in ask("GET").get("/").text
    page = ask("GET").get("/stores/store%203/4").text
    assert "&lt;script&gt; <tspan" in page and "<script> <tspan" not in page


def test_a_held_run_is_told_and_an_unknown_store_too(ask: Ask) -> None:
    told = words(ask("GET", status="held").get("/").text)
    assert "Cold stores held run night" in told and "The last run, morning, is held" in told
    assert ask("GET").get("/stores/nowhere").status_code == 404
    assert ask("GET").get("/stores/store-1?hours=5").status_code == 400


def test_a_lake_without_a_run_says_what_to_do(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = ask("GET")
    monkeypatch.setenv("COLDSTORE_LAKE", str(tmp_path / "empty"))
    assert "take a pass first" in words(browser.get("/").text)


def test_a_page_needs_nothing_from_elsewhere(ask: Ask) -> None:
    for path in ("/", "/stores/store-1"):
        assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//|@import|url\(""", ask("GET").get(path).text)
