"""Somebody who opens the board's pages, with the rights that a test gives them in place of a login."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient

from board import app as board_app


class Person:
    def __init__(self, *methods: str) -> None:
        self.methods = methods

    def get_name(self) -> str:
        return "Ada"


class AuthManager:
    def is_authorized_dag(self, *, method: str, access_entity: Any, details: Any, user: Person) -> bool:
        return details.id == "coldstore_pipeline" and method in user.methods


def visit(monkeypatch: pytest.MonkeyPatch, lake: Path, *rights: str) -> TestClient:
    """The browser of somebody with these rights (methods: GET, POST), on that lake."""
    monkeypatch.setattr(board_app, "get_auth_manager", AuthManager)
    monkeypatch.setenv("COLDSTORE_LAKE", str(lake))
    monkeypatch.setitem(board_app.app.dependency_overrides, get_user, lambda: Person(*rights))
    return TestClient(board_app.app, follow_redirects=False)


def words(page: str) -> str:
    """What a person reads: no tags, no pictures, single blanks."""
    return " ".join(re.sub(r"<(style|script|svg).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL).split())
