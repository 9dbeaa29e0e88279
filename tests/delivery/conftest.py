"""A receiver and a lake for each test; pauses are short, so that the tests are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delivery.lakes import AlertLake
from tests.delivery.receiver import Receiver
from webhook import posting

SECRET = "a secret of the tests, mit Umlaut ü"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(posting, "FIRST_PAUSE_S", 0.01)
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def lake(receiver: Receiver, tmp_path: Path) -> AlertLake:
    return AlertLake(
        tmp_path / "lake", webhook_url=receiver.url, webhook_secret=SECRET, webhook_timeout_s=1.0, webhook_attempts=4, webhook_budget_s=20.0
    )
