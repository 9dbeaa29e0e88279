"""What executors get from the driver: code that can be imported, jars, and no secret."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

from include.settings import PROJECT, Settings
from spark_jobs.runtime.shipping import CODE, NAME, jars, zipped


def test_the_same_sources_give_the_same_bytes_and_others_do_not(tmp_path: Path) -> None:
    for folder in CODE:
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    assert zipped(tmp_path) == zipped(PROJECT)
    (tmp_path / "include" / "rules.py").write_text("RULES = ()\n")
    assert zipped(tmp_path) != zipped(PROJECT)


def test_what_executors_run_can_be_imported_from_what_is_shipped_alone(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(zipped(PROJECT))
    names = (
        "spark_jobs.readers.landing_files, spark_jobs.readers.raw_line, spark_jobs.runtime.episode_tables, spark_jobs.runtime.window_tables"
    )
    program = f"import {names}; print(spark_jobs.readers.landing_files.__file__)"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / NAME)}
    done = subprocess.run([sys.executable, "-c", program], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{tmp_path / NAME}/spark_jobs/readers/landing_files.py"


def test_the_jars_of_a_class_path_are_those_in_its_folders(tmp_path: Path) -> None:
    for name in ("core/delta.jar", "core/notes.txt", "s3/aws.jar", "other/strange.jar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert jars(f"{tmp_path}/core/*:{tmp_path}/s3/*:{tmp_path}/absent/*") == [tmp_path / "core/delta.jar", tmp_path / "s3/aws.jar"]
    assert jars("") == []


def test_settings_that_are_shipped_leave_address_and_secret_behind() -> None:
    settings = Settings(lake="/lake", webhook_url="https://example.com/a-token", webhook_secret="a-secret", batch_bytes=7)
    shipped = pickle.dumps(settings)
    assert b"a-token" not in shipped and b"a-secret" not in shipped
    there = pickle.loads(shipped)
    assert (there.lake, there.batch_bytes, there.webhook_url, there.webhook_secret) == ("/lake", 7, "", "")
