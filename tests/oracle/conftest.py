"""The end of the run tells what the histories reached."""

from __future__ import annotations

import pytest

from tests.oracle import hard_cases


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if hard_cases.histories["all"]:
        terminalreporter.section(f"{hard_cases.histories['all']} histories, each in one pass and in several")
        for name, count in hard_cases.counts.items():
            terminalreporter.line(f"{count:>6}  had {name}")
