"""The file with Spark's properties for a place: what it may say, and what it is told when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.settings import SettingError
from spark_jobs.runtime import place_properties


def written(folder: Path, text: str) -> str:
    (folder / "spark.conf").write_text(text, encoding="utf-8")
    return str(folder / "spark.conf")


def test_one_property_a_line_as_spark_writes_them(tmp_path: Path) -> None:
    text = "# ours\n\nspark.executor.memory   2g\nspark.driver.host=10.0.0.7\n  spark.executorEnv.A = b c \nspark.executor.memory 3g\n"
    found = place_properties.of_file(written(tmp_path, text))
    assert found == {"spark.executor.memory": "3g", "spark.driver.host": "10.0.0.7", "spark.executorEnv.A": "b c"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("executor.memory 2g", "line 2 is no property of Spark", id="another program's property"),
        pytest.param("spark.executor.memory", "line 2 is no property of Spark", id="no value"),
        pytest.param("spark.master yarn", "COLDSTORE_MASTER", id="the master has its own setting"),
        pytest.param("spark.submit.deployMode cluster", "running already", id="a driver elsewhere"),
        pytest.param("spark.driver.memory 8g", "running already", id="the driver's memory"),
        pytest.param("spark.hadoop.fs.s3a.secret.key x", "is a secret", id="a key"),
        pytest.param("spark.executorEnv.AWS_SECRET_ACCESS_KEY x", "is a secret", id="a key in the executors' environment"),
        pytest.param("spark.executorEnv.AWS_ACCESS_KEY_ID x", "is a secret", id="its name"),
        pytest.param("spark.authenticate.secret x", "is a secret", id="a password"),
    ],
)
def test_what_it_may_not_say_is_refused_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        place_properties.of_file(written(tmp_path, f"spark.executor.instances 2\n{line}\n"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"COLDSTORE_SPARK_CONF=.*absent\.conf cannot be read"):
        place_properties.of_file(str(tmp_path / "absent.conf"))
