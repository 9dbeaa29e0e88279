"""The page on quality: what the checks saw over the runs, what was allowed when, and Great Expectations' own pages, behind the same login."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from board import pictures
from published.quality import Mark, Trend, of_lake
from tests.dags.board_lakes import AS_OF, a_lake, write
from tests.dags.visitors import visit, words

Ask = Callable[..., TestClient]
SEEN = {
    ("store_minutes", "sensors report by their cadence"): ["97.3 %; lowest: store-1 with 85.7 %", "88.0 %", "nothing to judge", "91.0 %"],
    ("readings", "readings arrive in time"): ["2.2 %", "0.0 %", "3.0 %", "4.0 %"],
    ("quarantine", "few lines are quarantined"): ["0.6 %", "0.6 %", "40.0 %", "0.1 %"],
    ("quarantine", "the input can be read"): ["0.6 % of 22056 lines", "0.6 % of 22056 lines", "40.0 % of 200 lines", "0.1 % of 90 lines"],
}
PAGE = "<html><head><title>x</title></head><body><script src='https://example.com/x.js'></script>seen 0.6 %</body></html>"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Four runs, the third of them held; before the last one the limit of late readings was raised."""
    place = a_lake(tmp_path / "lake", {})
    statuses = ["published", "published", "held", "published"]
    runs = [
        {"run_id": f"run-{number}", "number": number + 2, "as_of": AS_OF + timedelta(hours=number), "status": status}
        for number, status in enumerate(statuses)
    ]
    write(place, "runs", runs, mode="append")
    results = []
    for (table, expectation), seen in SEEN.items():
        for number, observed in enumerate(seen):
            limit = {"store_minutes": "at least 90 %", "readings": "at most 10 %" if number < 3 else "at most 25 %"}.get(
                table, "at most 20 %"
            )
            success = observed not in ("88.0 %", "40.0 %", "40.0 % of 200 lines")
            is_critical = expectation == "the input can be read"
            row = {"run_id": f"run-{number}", "table": table, "expectation": expectation, "success": success, "observed": observed}
            results.append({**row, "limit": limit, "severity": "critical" if is_critical else "warning"})
    write(place, "quality_results", results)
    (place / "data_docs/validations/readings/run-3/20251108T120000Z").mkdir(parents=True)
    (place / "data_docs/validations/readings/run-3/20251108T120000Z/counts-readings.html").write_text(PAGE)
    (place / "data_docs/index.html").write_text(PAGE)
    (place / "secret.html").write_text("not for everyone")
    return place


@pytest.fixture
def ask(lake: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    return partial(visit, monkeypatch, lake)


def test_each_share_over_the_runs_as_the_checks_saw_it(lake: Path) -> None:
    found = of_lake(str(lake))
    assert [(trend.name, [mark.percent for mark in trend.marks]) for trend in found.trends] == [
        ("Completeness", [97.3, 88.0, None, 91.0]), ("Late readings", [2.2, 0.0, 3.0, 4.0]), ("Quarantined lines", [0.6, 0.6, 40.0, 0.1]),
    ]  # fmt: skip
    assert [mark.success for mark in found.trends[0].marks] == [True, False, True, True]
    assert [mark.status for mark in found.trends[0].marks] == ["published", "published", "held", "published"]


def test_thresholds_have_their_history(lake: Path) -> None:
    late = of_lake(str(lake)).trends[1]
    assert [(limit, mark.run_id) for limit, mark in late.thresholds] == [("at most 25 %", "run-3"), ("at most 10 %", "run-0")]


def test_what_did_not_hold_in_the_last_run_is_named(lake: Path) -> None:
    assert of_lake(str(lake)).missed == []
    write(lake, "runs", [{"run_id": "run-4", "number": 9, "as_of": AS_OF, "status": "held"}], mode="append")
    missed = {"table": "runs", "expectation": "books balance", "severity": "critical", "success": False, "observed": "7", "limit": "0"}
    write(lake, "quality_results", [{"run_id": "run-4", **missed}], mode="append")
    found = of_lake(str(lake))
    assert found.last["run_id"] == "run-4" and [(row["expectation"], row["observed"]) for row in found.missed] == [("books balance", "7")]


def test_the_page_shows_them_with_a_way_to_every_page_of_data_docs(ask: Ask) -> None:
    answer = ask("GET").get("/quality")
    told = words(answer.text)
    for wanted in (
        "published run run-3", "at most 25 %, in force since run run-3, as of 08 Nov 2025 15:00", "at most 10 % since the first run shown",
        "run-3 : readings",
    ):  # fmt: skip
        assert wanted in told, wanted
    assert 'href="/data-docs/validations/readings/run-3/20251108T120000Z/counts-readings.html"' in answer.text
    assert "run-1 (published), as of 2025-11-08 13:00: 88.0 %, allowed at least 90 %" in answer.text


def test_before_the_first_check_there_is_a_page_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = words(visit(monkeypatch, a_lake(tmp_path / "new", {}), "GET").get("/quality").text)
    assert told.count("Nothing was judged yet.") == 3 and "No run was checked yet." in told


def test_a_point_lies_where_its_share_is_and_a_missed_one_stands_out() -> None:
    marks = [Mark(f"run-{seen}", AS_OF, "published", seen >= 90, f"{seen} %", "at least 90 %") for seen in (80, 90, 100)]
    drawn = pictures.trend(Trend("Completeness", marks))
    heights = [float(part.split('cy="')[1].split('"')[0]) for part in drawn.split("<circle")[1:]]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2) and heights[0] > heights[1]
    assert drawn.count('class="missed"') == 1 and drawn.count('class="limit"') == 3


def test_data_docs_run_nothing_and_fetch_nothing(ask: Ask) -> None:
    answer = ask("GET").get("/data-docs/validations/readings/run-3/20251108T120000Z/counts-readings.html")
    assert answer.status_code == 200 and "seen 0.6 %" in answer.text and "--ground" in answer.text
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src")
    assert ask("GET").get("/data-docs/index.html").headers["location"] == "/quality#data-docs"


@pytest.mark.parametrize(
    "path", ["../secret.html", "%2e%2e/secret.html", "validations/..%2f..%2fsecret.html", "results/x.json", "gone.html"]
)
def test_nothing_but_data_docs_is_served(ask: Ask, path: str) -> None:
    answer = ask("GET").get(f"/data-docs/{path}")
    assert answer.status_code == 404 and "not for everyone" not in answer.text


@pytest.mark.parametrize("path", ["/quality", "/data-docs/index.html"])
def test_who_may_not_see_the_pipeline_does_not_see_its_quality(ask: Ask, path: str) -> None:
    assert ask().get(path).status_code == 403


def test_the_check_has_a_link_to_them(dags: Any) -> None:
    check = dags.dags["coldstore_pipeline"].get_task("check_quality")
    (link,) = [link for link in check.operator_extra_links if link.name == "Data Docs"]
    assert link.get_link(check, ti_key=None) == "/coldstore/quality#data-docs"
