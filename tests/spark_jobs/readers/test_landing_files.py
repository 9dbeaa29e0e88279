"""The stream's file names beside the listing."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.settings import Settings
from spark_jobs.readers.landing_files import landing, named
from spark_jobs.runtime.errors import Stop


def test_a_file_that_came_since_the_listing_is_looked_up_and_one_that_is_gone_stops_the_run(tmp_path: Path) -> None:
    settings = Settings.from_env({"COLDSTORE_LAKE": str(tmp_path)})
    folder = tmp_path / "landing"
    (folder / "_day=1").mkdir(parents=True)
    early, late, hidden = folder / "early.jsonl", folder / "late.jsonl", folder / "_day=1" / "x.jsonl"
    early.write_bytes(b"1")
    listed = landing(settings, [])
    for file in (late, hidden):
        file.write_bytes(b"22")

    found = named([f"file:{early}", f"file://{late}", f"file:{hidden}"], listed, settings)

    assert [(file.path, file.size) for file in found] == [(str(early), 1), (str(late), 2)]
    late.unlink()
    with pytest.raises(Stop, match=r"late\.jsonl was there when this run began and is gone"):
        named([f"file:{late}"], listed, settings)
