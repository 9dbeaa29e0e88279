"""The documents say what the code has: every table, every setting, and no command that does not exist."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from include.settings import PREFIX, PROJECT, Settings
from scripts import write_tables_doc

PAGES = [PROJECT / "README.md", PROJECT / "CHANGELOG.md", *sorted((PROJECT / "docs").rglob("*.md"))]
CODE = re.compile(r"^```.*?^```|^ {4}[^\n]*|`[^`\n]+`", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[\s`;&])make ([a-z][a-z-]*)", re.MULTILINE)
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
SETTING_ROW = re.compile(rf"^\| `({PREFIX}[A-Z_]+)` \| ([^|]*) \|", re.MULTILINE)


def test_the_data_dictionary_is_what_the_script_writes():
    written = write_tables_doc.PLACE.read_text(encoding="utf-8")
    assert written == write_tables_doc.text(), "run python3 -m scripts.write_tables_doc"


@pytest.mark.parametrize("setting", fields(Settings), ids=lambda setting: setting.name)
def test_a_setting_stands_in_the_operators_table_with_its_default(setting):
    rows = dict(SETTING_ROW.findall((PROJECT / "docs" / "operating.md").read_text(encoding="utf-8")))
    said = rows.get(PREFIX + setting.name.upper())
    assert said is not None, f"docs/operating.md has no row for {PREFIX}{setting.name.upper()}"
    if not isinstance(setting.default, str):
        assert said.strip() == str(setting.default)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_command_a_page_names_is_a_target(page: Path):
    targets = set(TARGET.findall((PROJECT / "Makefile").read_text(encoding="utf-8")))
    named = {command for code in CODE.findall(page.read_text(encoding="utf-8")) for command in COMMAND.findall(code)}
    assert named <= targets


def test_every_test_a_page_names_is_there():
    there = {
        name
        for path in (PROJECT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))}
    assert named and named <= there
