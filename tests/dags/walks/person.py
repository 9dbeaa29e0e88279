"""Somebody at a browser, in front of Airflow: what they click, and what they read then."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Frame, Locator, Page, expect

from tests.dags.walks.scene import PATIENCE_S, wait


class Person:
    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address

    def logs_in(self, user: str, password: str) -> None:
        self.page.goto(self.address)
        self.page.fill('input[name="username"]', user)
        self.page.fill('input[name="password"]', password)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(lambda url: "login" not in url)

    # --- Airflow's own pages ------------------------------------------------------------------------------------------------------------

    def opens_dag(self, dag_id: str) -> None:
        self.page.goto(f"{self.address}/dags")
        self.page.get_by_role("link", name=dag_id, exact=True).first.click()
        expect(self.page.get_by_role("link", name="Backfills")).to_be_visible()  # a tab of a DAG's own page

    def triggers(self, dag_id: str) -> str:
        """A run, as of now."""
        self.opens_dag(dag_id)
        self.page.get_by_role("button", name="Trigger Dag").click()
        self.page.get_by_test_id("trigger-dag-submit").click()
        self.page.wait_for_url("**/runs/*")
        return self.page.url.split("/runs/")[1].split("?")[0]

    def watches_it_turn_green(self, dag_id: str, run: str) -> None:
        """In the list of runs, which Airflow refreshes by itself."""
        self.opens_dag(dag_id)
        self.page.get_by_role("link", name="Runs", exact=True).first.click()
        row = self.page.get_by_role("row").filter(has_text=run[:30])  # it may be cut off after that
        expect(row.get_by_text("Success", exact=True)).to_be_visible(timeout=PATIENCE_S * 1000)

    def backfills(self, dag_id: str, first: str, last: str) -> str:
        """What the form says will happen, when it is sent."""
        self.opens_dag(dag_id)
        self.page.get_by_role("button", name="Trigger Dag").click()
        self.page.get_by_text("Run this Dag for a range of dates").click()
        form = self.page.get_by_role("dialog").filter(has_text="Reprocess Behavior")
        for day in (first, last):
            form.get_by_text("Select date and time").first.click()
            self.page.get_by_placeholder("YYYY/MM/DD").last.fill(day.replace("-", "/"))
            self.page.get_by_placeholder("HH:mm").last.fill("00:00")
            self.page.keyboard.press("Enter")
            form.get_by_text("Date Range").click()  # closes the calendar
        told = form.get_by_text("will be triggered")
        expect(told).to_be_visible()
        said = told.inner_text()
        form.get_by_role("button", name="Run Backfill").click()
        expect(form).to_be_hidden()
        return said

    def opens_task(self, dag_id: str, run: str, task: str) -> None:
        self.page.goto(f"{self.address}/dags/{dag_id}/runs/{quote(run, safe='')}/tasks/{task}")

    def reads_required_action(self, day: str) -> str:
        """What waits for a person about that day."""

        def found() -> Locator | None:
            self.page.goto(f"{self.address}/required_actions?response_received=false")
            link = self.page.get_by_role("link", name=f"{day}: a rebuild changes").first
            with suppress(AssertionError):
                expect(link).to_be_visible(timeout=5000)
                return link
            return None

        wait(found, f"something to decide about {day}").click()
        expect(self.page.get_by_test_id("hitl-option-Approve")).to_be_visible()
        return self.page.locator("main, #root").first.inner_text()

    def answers(self, option: str, why: str) -> None:
        self.page.locator('[name="element_why"]').fill(why)
        self.page.get_by_test_id(f"hitl-option-{option}").click()
        expect(self.page.get_by_test_id(f"hitl-option-{option}")).to_be_disabled()

    # --- ours ---------------------------------------------------------------------------------------------------------------------------

    def reads_incident(self, dag_id: str, run: str, task: str) -> list[str]:
        """Line by line, from the tab of the task's page."""
        self.opens_task(dag_id, run, task)
        self.page.get_by_role("link", name="Incident").first.click()
        return self.frame("/coldstore/incident").locator("main").inner_text().splitlines()

    def opens_board(self) -> Frame:
        self.page.goto(self.address)
        self.page.get_by_role("link", name="Cold stores").click()
        return self.frame("/coldstore/")

    def frame(self, path: str) -> Frame:
        """The page of ours that is shown inside Airflow's."""

        def found() -> Frame | None:
            for frame in self.page.frames:
                if path in frame.url and frame != self.page.main_frame and frame.locator("main").count():
                    return frame
            self.page.wait_for_timeout(100)
            return None

        return wait(found, f"{path} inside Airflow")

    def pictures(self, name: str, folder: Path) -> None:
        """In light and in dark; some of docs/pictures were taken like this."""
        folder.mkdir(parents=True, exist_ok=True)
        for theme in ("light", "dark"):
            self.page.evaluate(f"localStorage.setItem('theme', '{theme}')")
            self.page.emulate_media(color_scheme=theme)
            self.page.reload()
            self.page.wait_for_load_state("networkidle")
            self.page.wait_for_timeout(1500)
            self.page.screenshot(path=folder / f"{name}-{theme}.png")
