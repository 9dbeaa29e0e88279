"""The end of the run tells what the histories reached, whichever processes tried them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import hard_cases


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process of several has ended: what it counted."""
    hard_cases.add(getattr(node, "workeroutput", {}).get("hard_cases", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["hard_cases"] = dict(hard_cases.counts)
    elif hard_cases.missed():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tried, *reached = hard_cases.counts.items()
    if tried[1]:
        terminalreporter.section(f"{tried[1]} histories, each in one pass and in several")
        for name, count in reached:
            terminalreporter.line(f"{count:>6}  had {name}")
    for name in hard_cases.missed():
        terminalreporter.line(f"FAILED: no history had {name}", red=True)
