"""Log in, open the pipeline, trigger a run, watch it turn green; then the board, a store, an acknowledgement, and what a viewer may not do."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.dags.walks.person import Person
from tests.dags.walks.scene import VIEWER, Scene

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
PAGES = (
    "/coldstore/",
    "/coldstore/stores/store-7",
    "/coldstore/quality",
    "/coldstore/data-docs/index.html",
    "/coldstore/incident?dag_id=a&run_id=b&task_id=c",
)


def test_a_triggered_run_turns_green_and_is_published(admin: Person, scene: Scene) -> None:
    run = admin.triggers("coldstore_pipeline")
    admin.watches_it_turn_green("coldstore_pipeline", run)
    assert scene.tasks(run) == dict.fromkeys(
        ("ingest_readings", "derive_tables", "check_quality", "publish_tables", "deliver_alerts"), "success"
    )
    (row,) = scene.rows("runs", "run_id", "status", "readings_new")
    assert (row["run_id"], row["status"], row["readings_new"]) == (run, "published", 3 * 20 + 120 + 30)


def test_the_check_leads_to_data_docs(admin: Person, scene: Scene) -> None:
    (row,) = scene.rows("runs", "run_id")
    admin.opens_task("coldstore_pipeline", row["run_id"], "check_quality")
    admin.page.get_by_role("link", name="Details").first.click()
    link = admin.page.get_by_role("link", name="Data Docs").first
    expect(link).to_be_visible()
    admin.page.goto(f"{admin.address}{link.get_attribute('href')}")
    expect(admin.page.get_by_role("heading", name="Completeness")).to_be_visible()
    admin.page.get_by_role("link", name="readings", exact=True).first.click()
    expect(admin.page.get_by_text("readings arrive in time").first).to_be_visible()


def test_the_board_leads_to_the_store_where_an_alert_is_acknowledged(admin: Person, scene: Scene) -> None:
    board = admin.opens_board()
    first = board.locator("ol.stores li").first
    expect(first).to_contain_text("store-7")
    expect(first).to_contain_text("1 critical")
    expect(first).to_contain_text("sensor-8 silent (sensor)")
    admin.pictures("board", scene.folder / "pictures")
    admin.opens_board().locator("ol.stores a").first.click()
    store = admin.frame("/coldstore/stores/store-7")
    alert = store.locator("ul.alerts li").filter(has_text="too_warm")
    alert.get_by_label("What was it").fill("the door was open; shut it")
    alert.get_by_role("button", name="Acknowledge").click()
    expect(store.locator("ul.alerts li").filter(has_text="too_warm")).to_contain_text("admin, ")
    expect(store.locator("ul.alerts li").filter(has_text="too_warm")).to_contain_text("the door was open; shut it")
    admin.page.goto(f"{admin.address}/coldstore/stores/store-7")
    admin.pictures("store", scene.folder / "pictures")
    (row,) = scene.rows("acknowledgements", "acknowledged_by", "comment")
    assert (row["acknowledged_by"], row["comment"]) == ("admin", "the door was open; shut it")


def test_the_pages_fit_a_phone_and_a_keyboard(enters: Callable[..., Person], scene: Scene) -> None:
    person = enters(is_phone=True)
    for path in ("/coldstore/", "/coldstore/stores/store-7", "/coldstore/quality"):
        person.page.goto(f"{person.address}{path}")
        assert person.page.evaluate("document.documentElement.scrollWidth") <= 390, path
    person.page.goto(f"{person.address}/coldstore/")
    for _ in range(3):  # Quality, Data Docs, the first store
        person.page.keyboard.press("Tab")
    person.page.keyboard.press("Enter")
    person.page.wait_for_url("**/coldstore/stores/store-7")


def test_a_viewer_may_look_and_not_act(enters: Callable[..., Person], scene: Scene) -> None:
    viewer = enters(VIEWER)
    viewer.page.goto(f"{viewer.address}/coldstore/stores/store-7")
    expect(viewer.page.get_by_text("Your role may look, not acknowledge.")).to_be_visible()
    assert viewer.page.get_by_role("button", name="Acknowledge").count() == 0
    (alert,) = [
        row["alert_id"]
        for row in scene.rows("alerts", "alert_id", "rule", "status")
        if row["rule"] == "too_warm" and row["status"] == "open"
    ]
    said = {"alert_id": alert, "store_id": "store-7", "comment": "I should not"}
    assert viewer.page.request.post(f"{viewer.address}/coldstore/acknowledge", form=said).status == 403
    assert viewer.page.request.post(f"{viewer.address}/api/v2/dags/coldstore_pipeline/dagRuns", data={"logical_date": None}).status == 403
    assert len(scene.rows("acknowledgements", "comment")) == 1


@pytest.mark.parametrize("path", PAGES)
def test_without_a_login_nothing_is_shown(scene: Scene, path: str) -> None:
    assert refusal(f"{scene.api.address}{path}") == 401


@pytest.mark.parametrize("path", ["/coldstore/acknowledge", "/api/v2/dags/coldstore_pipeline/dagRuns", "/api/v2/backfills"])
def test_without_a_login_nothing_is_done(scene: Scene, path: str) -> None:
    assert refusal(f"{scene.api.address}{path}", b"alert_id=a&store_id=b&comment=c") == 401


def refusal(address: str, data: bytes | None = None) -> int:
    """The code with which a stranger is refused."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as refused:
        opener.open(address, data=data, timeout=60)
    return refused.value.code
