"""The site: pages that tell what the results tell, one for each run and table, and no more of them than are kept."""

import subprocess
import sys
from pathlib import Path

import pytest

import expectations
from expectations import SUITES

PROJECT = Path(__file__).resolve().parents[2]


def pages(folder, run_id):
    return {page.relative_to(folder / "validations").parts[0]: page for page in (folder / "validations").glob(f"*/{run_id}/*/*.html")}


def test_a_run_has_a_page_for_each_table_that_names_run_expectation_and_what_was_seen(counts, judge, tmp_path):
    judge(counts("store_minutes", doubled_keys=1, completeness=0.8123), run_id="pass-7")
    found = pages(tmp_path, "pass-7")
    assert set(found) == {suite.table for suite in SUITES}
    page = found["store_minutes"].read_text()
    for words in ("pass-7", "critical: each store and minute stands once (limit: 0)", "81.2 %", "Failed"):
        assert words in page
    assert "Succeeded" in found["runs"].read_text()


def test_the_index_lists_every_run_and_failure(counts, judge, tmp_path):
    judge(counts(), run_id="pass-1")
    judge(counts("runs", imbalance=1), run_id="pass-2")
    index = (tmp_path / "index.html").read_text()
    for run_id in ("pass-1", "pass-2"):
        for page in pages(tmp_path, run_id).values():
            assert page.relative_to(tmp_path).as_posix() in index
    assert pages(tmp_path, "pass-1") and pages(tmp_path, "pass-2")
    assert index.count("'_validation_success_text': 'Failed'") == 1


ODD_IDS = [
    ("an id of Airflow's", "scheduled__2025-11-08T15:30:00+00:00", "scheduled__2025-11-08T15:30:00+00:00"),
    ("an id with the word that Data Docs leave out by default", "profiling-the-stores", "profiling-the-stores"),
    ("an id that would be a path", "../../night/run 3", "-..-night-run-3"),
]


@pytest.mark.parametrize(("run_id", "folder"), [case[1:] for case in ODD_IDS], ids=[case[0] for case in ODD_IDS])
def test_a_page_is_found_by_the_run_id(run_id, folder, counts, judge, tmp_path):
    judge(counts(), run_id=run_id)
    assert len(pages(tmp_path, folder)) == len(SUITES)
    assert folder in (tmp_path / "index.html").read_text()
    assert not list(tmp_path.parent.glob("night*"))


def test_the_oldest_runs_are_forgotten(counts, judge, tmp_path, monkeypatch):
    expectations.warm_up()
    monkeypatch.setattr("expectations.data_docs.KEPT_RUNS", 2)
    for number in (1, 2, 3):
        judge(counts(), run_id=f"pass-{number}")
    for place in ("results", "validations"):
        assert {path.name for path in (tmp_path / place / "runs").iterdir()} == {"pass-2", "pass-3"}
    index = (tmp_path / "index.html").read_text()
    assert "pass-1" not in index and "pass-2" in index and "pass-3" in index


def test_a_run_killed_while_writing_spoils_nothing_and_what_it_finished_gets_its_page(counts, judge, tmp_path):
    judge(counts(), run_id="pass-1")
    for table, page in pages(tmp_path, "pass-1").items():
        page.unlink()
        if table == "runs":
            torn = next((tmp_path / "results" / "runs").rglob("*.json"))
            torn.write_bytes(torn.read_bytes()[:100])
    judge(counts(), run_id="pass-2")
    assert set(pages(tmp_path, "pass-1")) == {suite.table for suite in SUITES} - {"runs"}
    assert set(pages(tmp_path, "pass-2")) == {suite.table for suite in SUITES}


def test_the_site_names_no_place_of_this_machine(counts, judge, tmp_path):
    judge(counts())
    written = [path for kind in ("*.html", "*.json") for path in tmp_path.rglob(kind)]
    assert written and not [path for path in written if str(tmp_path) in path.read_text() or str(PROJECT) in path.read_text()]


QUIET = """
import socket, sys
from pathlib import Path

def refuse(*_):
    raise SystemExit("something wants to talk to the network")

socket.socket.connect = refuse
import expectations
assert not {"great_expectations", "pandas"} & set(sys.modules), "importing the suites loads the judge"
from include.settings import Settings

nothing = {suite.table: dict.fromkeys(suite.measures) for suite in expectations.SUITES}
expectations.judge(nothing, Settings(), "pass-1", Path(sys.argv[1]))
assert not {"altair", "scipy.stats"} & set(sys.modules), "something is loaded that nobody uses"
"""


def test_a_judgement_is_silent_and_talks_to_nobody(tmp_path):
    done = subprocess.run([sys.executable, "-c", QUIET, str(tmp_path)], cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
