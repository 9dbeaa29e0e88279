"""A table's log keeps a month of versions, and an S3 server lists a thousand names in an answer: nobody reads all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from include.settings import Settings
from spark_jobs.runtime import s3_client
from spark_jobs.runtime.lake import Lake
from tests.places.places import Place

LAST = 1200


@pytest.fixture
def lake(reached: Place) -> Lake:
    made = Lake(None, Settings.from_env({"COLDSTORE_LAKE": f"{reached.root}/long-log"}))
    if not made.exists("runs"):  # an earlier test has laid it
        names = [f"{made.path('runs')}/_delta_log/{version:020d}.json" for version in range(LAST + 1)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: reached.keep(name, b"{}", None), names))
    return made


@pytest.fixture
def listings(lake: Lake) -> list[str]:
    """Requests for names that went to the server; none on local disks."""
    asked: list[str] = []
    if lake.settings.lake.startswith("s3a:"):
        s3_client.client().meta.events.register("before-send.s3.ListObjectsV2", lambda request, **_: asked.append(request.url))
    return asked


def test_that_a_table_is_there_is_told_by_the_first_names(lake: Lake, listings: list[str]) -> None:
    assert lake.exists("runs") and not lake.exists("alerts")
    assert len(listings) <= 2


def test_the_version_is_looked_for_behind_the_one_that_was_published(lake: Lake, listings: list[str]) -> None:
    lake.expect_versions({"runs": LAST - 3})
    assert [lake.version("runs"), lake.version("runs")] == [LAST, LAST]
    assert len(listings) <= 2


@pytest.mark.parametrize("published", [{}, {"runs": LAST + 7}], ids=["nothing is known", "the table was made anew since"])
def test_without_a_version_to_start_from_the_whole_log_is_listed(lake: Lake, published: dict[str, int]) -> None:
    lake.expect_versions(published)
    assert lake.version("runs") == LAST
