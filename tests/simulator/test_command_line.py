"""What a person types, and what they read."""

import json
import sys

import pytest

from simulator.__main__ import main
from simulator.arguments import parse


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["simulator", *map(str, arguments)])
    try:
        code = main()
    except SystemExit as left:
        code = left.code
    printed = capsys.readouterr()
    return code, printed.out.splitlines(), printed.err.splitlines()


def test_the_last_line_says_how_far_the_data_reach(tmp_path, monkeypatch, capsys):
    call = ("--lake", tmp_path, "--stores", 2, "--sensors", 2, "--hours", 0.5)
    assert run(monkeypatch, capsys, *call)[:2][1][-1] == "as_of=2025-11-08T06:30:00Z"
    code, told, _ = run(monkeypatch, capsys, *call)
    assert (code, told[-1]) == (0, "as_of=2025-11-08T07:00:00Z")


def test_a_later_call_keeps_what_the_first_was_asked_for(tmp_path, monkeypatch, capsys):
    run(
        monkeypatch,
        capsys,
        "--lake",
        tmp_path,
        "--stores",
        2,
        "--sensors",
        2,
        "--hours",
        0.2,
        "--faults",
        0.02,
        "--bad",
        0.1,
        "--formats",
        "gz",
    )
    kept = parse(["--lake", str(tmp_path), "--late", "0.5"])
    assert (kept.stores, kept.hours, kept.bad, kept.blank, kept.late, kept.formats) == (2, 0.2, 0.1, 0.02, 0.5, ("gz",))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--bad", "1.5"], "bad is a share between 0 and 1"),
        (["--faults", "0.5"], "add up to 4"),
        (["--stores", "0"], "stores must lie between"),
        (["--stores", "x"], "invalid int value"),
        (["--formats", "gz,rar"], "'rar' is not one of plain, gz, zst"),
        (["--bad-kinds", "ugly"], "'ugly' is not one of malformed_json"),
        (["--start", "today"], "not an ISO 8601 time"),
        (["--hours", "nan"], "hours must lie between"),
        (["--stores", "1000", "--sensors", "1000"], "up to 200,000 sensors"),
        (["--colour", "red"], "unrecognized arguments"),
    ],
)
def test_a_bad_value_is_one_clear_line_and_nothing_is_written(tmp_path, monkeypatch, capsys, arguments, says):
    code, told, errors = run(monkeypatch, capsys, "--lake", tmp_path / "lake", *arguments)
    assert (code, told, len(errors)) == (2, [], 1)
    assert says in errors[0]
    assert not (tmp_path / "lake").exists()


def test_the_state_is_small_and_readable(tmp_path, monkeypatch, capsys):
    run(monkeypatch, capsys, "--lake", tmp_path, "--hours", 0.5)
    state = json.loads((tmp_path / "sample.json").read_text())
    assert state["next_start"] == "2025-11-08T06:30:00Z"
    assert state["world"]["seed"] == 7
    assert (tmp_path / "sample.json").stat().st_size < 100_000


def test_help_reads_well(monkeypatch, capsys):
    code, told, _ = run(monkeypatch, capsys, "--help")
    assert code == 0
    assert any("how long (2.0)" in line for line in told)
