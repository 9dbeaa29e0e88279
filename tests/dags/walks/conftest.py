"""One Airflow and one browser for all walks. Where there is no Chromium they are skipped, and say so."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from scripts.airflow_server.names import USER
from tests.dags.walks.person import Person
from tests.dags.walks.scene import Scene, opened

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
WIDE, PHONE = {"width": 1400, "height": 1000}, {"width": 390, "height": 800}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium is installed (on Debian: apt-get install chromium), so nobody can walk through Airflow's pages")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    expect.set_options(timeout=30_000)  # a busy machine
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=[*QUIET, *sandbox])
        yield started
        started.close()


@pytest.fixture(scope="session")
def scene(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with opened(tmp_path_factory.mktemp("walks")) as made:
        yield made


@pytest.fixture(scope="session")
def enters(browser: Browser, scene: Scene) -> Iterator[Callable[..., Person]]:
    """Somebody who logs in."""
    contexts = []

    def entered(user: str = USER, is_phone: bool = False) -> Person:
        context = browser.new_context(viewport=PHONE if is_phone else WIDE, timezone_id="UTC")
        context.set_default_timeout(60_000)
        contexts.append(context)
        person = Person(context.new_page(), scene.api.address)
        passwords = json.loads((scene.folder / "airflow_home" / "passwords.json").read_text(encoding="utf-8"))
        person.logs_in(user, passwords[user])
        return person

    yield entered
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def admin(enters: Callable[..., Person]) -> Person:
    return enters()
