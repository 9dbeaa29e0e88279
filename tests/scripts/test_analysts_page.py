"""docs/analysts.md: every example runs, and the three ways to ask a question give the same answer. The statements of docs/oncall.md run, too."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Any

import pandas as pd
import pytest

from include.settings import PROJECT
from published.snapshot import published
from scripts.sql import answer, connected
from tests.lakes import TestLake

PAGE = (PROJECT / "docs" / "analysts.md").read_text(encoding="utf-8")
ON_CALL = (PROJECT / "docs" / "oncall.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)}
QUESTIONS = ["The worst stores of the last week", "Minutes outside the limits", "How fast are alarms answered?", "Completeness by day"]
EXPECTED = {
    "The worst stores of the last week": [("store-1", 1, 20.0)],
    "Minutes outside the limits": [("store-1", "2025-11-08", 26, 16)],
    "Completeness by day": [("store-1", "2025-11-08", round((10 + 16 * 0.5) / 26, 6), 0)],
}


def blocks(section: str, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(SECTIONS[section]) if kind == language]


def plain(value: Any) -> Any:
    """The same for every library."""
    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (date, datetime)):
        return str(value)[:10]
    return round(float(value), 6) if isinstance(value, float) else value


@pytest.fixture(scope="module")
def names(told_lake: TestLake) -> dict[str, Any]:
    """What the page's own preparation leaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLDSTORE_LAKE", str(told_lake.place))
        names: dict[str, Any] = {}
        for block in blocks("Python: one consistent snapshot", "python"):
            exec(block, names)  # as a reader would type it
        return names


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_one_answer_whoever_asks(told_lake: TestLake, names: dict[str, Any], question: str) -> None:
    (sql,) = blocks(question, "sql")
    by_pandas, by_spark = blocks(question, "python")
    rows = answer(connected(published(str(told_lake.place)), told_lake.settings), sql).to_pylist()
    in_sql = [tuple(plain(value) for value in row.values()) for row in rows]
    exec(by_pandas, names)
    in_pandas = [tuple(plain(value) for value in row) for row in names["answer"].itertuples(index=False)]
    exec(by_spark, names)
    in_spark = [tuple(plain(value) for value in row) for row in names["answer"].collect()]
    assert in_sql and in_sql == in_pandas == in_spark
    assert list(rows[0]) == names["answer"].columns
    if question in EXPECTED:
        assert [row for row in in_sql if row[0] == "store-1"] == EXPECTED[question]
    else:
        counts = [row[:3] for row in in_sql]
        assert counts == [("critical", 1, 1), ("warning", 1, 0)] and in_sql[0][3] > 0 and in_sql[1][3] is None


@pytest.mark.parametrize(
    "statement", [*blocks("More questions, in SQL", "sql"), *(text for kind, text in BLOCK.findall(ON_CALL) if kind == "sql")]
)
def test_an_example_is_answered(told_lake: TestLake, statement: str) -> None:
    assert answer(connected(published(str(told_lake.place)), told_lake.settings), statement).schema.names
