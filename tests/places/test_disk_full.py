"""P19: the disk fills up in the middle of a pass. It is told in one line; with space again, the next pass ends with the oracle's tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.incidents import kind_of
from tests.oracle.comparison import differences, oracle_tables, tables, write_reference
from tests.places.driver import Driver
from tests.places.history import history
from tests.places.places import Place, PlacedLake, as_of

SIZE = "120m"
OWN_SPACE = ["unshare", "--user", "--map-root-user", "--mount"]  # a disk of its own, seen by the driver alone


class SmallDisk(Place):
    """A file system in memory that only its driver sees; others look at it by way of that process."""

    def new_driver(self) -> Driver:
        Path(self.root).mkdir(parents=True, exist_ok=True)
        mounted = ["sh", "-c", f'mount -t tmpfs -o size={SIZE} tmpfs "{self.root}" && exec "$@"', "sh"]
        return Driver({**self.environment, "COLDSTORE_LAKE": f"{self.root}/none"}, before=[*OWN_SPACE, *mounted])

    def seen(self, path: str) -> str:
        return f"/proc/{self.driver.pid}/root{path}"

    def keep(self, path: str, content: bytes, arrived_ms: int | None) -> None:
        super().keep(self.seen(path), content, arrived_ms)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    if subprocess.run([*OWN_SPACE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode:
        pytest.skip("a disk of a test's own needs user namespaces, which this machine does not allow")
    place = SmallDisk(str(tmp_path / "disk"))
    place.driver.wait_until_ready()
    yield place
    place.stop()


@pytest.mark.slow
def test_a_disk_that_fills_up_in_the_middle_of_a_pass_loses_nothing(small_disk: SmallDisk, tmp_path: Path) -> None:
    lake, told = PlacedLake(small_disk, "lake"), history()
    write_reference(lake, told)
    small_disk.deliver(lake, told.files())
    lake.begins(small_disk.driver, as_of(told))
    ballast = Path(small_disk.seen(f"{small_disk.root}/ballast"))
    while not Path(small_disk.seen(f"{lake.uri}/control/begun.json")).exists():
        time.sleep(0.01)
    with ballast.open("wb") as file:
        while os.statvfs(ballast.parent).f_bavail:
            try:
                file.write(bytes(1 << 16))
                file.flush()
            except OSError:
                break
    ended = small_disk.driver.end() or ""
    assert ended.startswith("failed") and "has less than 64 MB left" in ended, ended
    assert kind_of(1, [ended]).name == "disk-full"
    ballast.unlink()
    assert lake.passes(as_of(told)).startswith("published")
    shutil.copytree(small_disk.seen(lake.uri), tmp_path / "copy")  # what reads tables does not go by way of a process
    assert not differences(tables(PlacedLake(Place(str(tmp_path)), "copy")), oracle_tables(told))
