"""P12 against the oracle: any history, in one pass or cut into several in any order, gives the tables that the contract's text gives.

How many histories: COLDSTORE_HISTORIES in the environment; in shares, which several processes can try at once (`make oracle`). What they
reached is printed at the end (`hard_cases`).
"""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.oracle import hard_cases
from tests.oracle.comparison import a_lake, deliver, differences, oracle_tables, tables
from tests.oracle.hard_cases import Passes
from tests.oracle.histories import START_MS, History, histories, iso

COUNT = int(os.environ.get("COLDSTORE_HISTORIES", "3"))
IS_ASKED_FOR = "COLDSTORE_HISTORIES" in os.environ
SHARE = 10
SHARES = [min(SHARE, COUNT - start) for start in range(0, COUNT, SHARE)]


@pytest.mark.slow
@pytest.mark.timeout(900 + 180 * SHARE)
@pytest.mark.parametrize("share", range(len(SHARES)))
def test_any_history_gives_the_oracles_tables(spark: SparkSession, share: int) -> None:
    @settings(
        max_examples=SHARES[share],
        deadline=None,
        derandomize=not IS_ASKED_FOR,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(history=histories(), seed=st.integers(0, 1000))
    def tried(history: History, seed: int) -> None:
        _try(spark, history, seed)

    tried()


def _try(spark: SparkSession, history: History, seed: int) -> None:
    expected = oracle_tables(history)
    with tempfile.TemporaryDirectory() as folder:
        in_one = a_lake(Path(folder) / "one", spark, history)
        deliver(in_one, history.files())
        in_one.passes(as_of=iso(history.as_of_ms))
        assert not differences(tables(in_one), expected), history

        in_several, chance, files = a_lake(Path(folder) / "several", spark, history), random.Random(seed), history.files()
        chance.shuffle(files)
        cuts = sorted(chance.sample(range(1, len(files)), min(len(files) - 1, chance.choice([1, 1, 2]))))
        passes = Passes(history, in_several)
        for start, end in zip([0, *cuts], [*cuts, len(files)], strict=True):
            deliver(in_several, files[start:end])
            clock = chance.randint(START_MS, history.as_of_ms) if end < len(files) else history.as_of_ms
            in_several.passes(as_of=iso(clock))
            passes.note(files[start:end])
        assert not differences(tables(in_several), expected), history
        hard_cases.count(passes.found())
