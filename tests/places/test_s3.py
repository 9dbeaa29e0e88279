"""A lake on an S3 server: what is said when it cannot be used, a bad network, a server that dies, no secret anywhere."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.settings import PROJECT
from tests.oracle.comparison import differences, oracle_tables, tables
from tests.places import report
from tests.places.history import history
from tests.places.places import OnS3, PlacedLake, as_arrived, as_of, lay
from tests.servers.faulty_proxy import FAULTS, FaultyProxy, every
from tests.servers.seaweedfs import SeaweedFS

pytestmark = pytest.mark.slow
FEW, MANY = 5, 50 if os.environ.get("COLDSTORE_CRASHES") == "all" else 15
IN_A_ROW = 4  # with one of them the books are compacted, which costs a fifth more


@pytest.fixture
def proxy(seaweedfs: SeaweedFS) -> Iterator[FaultyProxy]:
    made = FaultyProxy(seaweedfs.endpoint)
    yield made
    made.stop()


@pytest.fixture
def behind_proxy(seaweedfs: SeaweedFS, proxy: FaultyProxy, request: pytest.FixtureRequest) -> Iterator[OnS3]:
    """Drivers go by the proxy; the test itself looks at the server directly."""
    place = OnS3(seaweedfs, f"proxied/{request.node.name}")
    place.environment = {**seaweedfs.environment, "AWS_ENDPOINT_URL": proxy.endpoint}
    yield place
    place.stop()


CANNOT = {
    "a wrong key": ({"AWS_ACCESS_KEY_ID": "nobody"}, "it does not know the key in AWS_ACCESS_KEY_ID"),
    "a wrong secret": ({"AWS_SECRET_ACCESS_KEY": "guessed-secret"}, "the secret in AWS_SECRET_ACCESS_KEY is not the one of that key"),
    "no key at all": (
        {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set",
    ),
    "a bucket that is not there": ({"COLDSTORE_LAKE": "s3a://no-such-bucket/lake"}, "it has no such bucket"),
    "an endpoint where nothing listens": ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "it does not answer"),
    "another kind of place": ({"COLDSTORE_LAKE": "gs://bucket/lake"}, "'gs://bucket/lake' is no place for a lake"),
}


@pytest.mark.parametrize(("wrong", "told"), CANNOT.values(), ids=CANNOT)
def test_a_place_that_cannot_be_used_is_told_in_one_line(seaweedfs: SeaweedFS, wrong: dict[str, str], told: str, tmp_path: Path) -> None:
    environment = {**seaweedfs.environment, "COLDSTORE_LAKE": "s3a://lake/refused", "COLDSTORE_AS_OF": "2025-11-08T12:00:00Z", **wrong}
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    env = {**kept, "HOME": str(tmp_path), "PYTHONPATH": str(PROJECT), **environment}
    ended = subprocess.run([sys.executable, "-m", "spark_jobs.run_pass"], env=env, cwd=PROJECT, capture_output=True, text=True)
    assert ended.returncode == 1 and ended.stderr == "", ended.stderr
    (line,) = ended.stdout.splitlines()
    assert line.startswith("failed ") and told in line
    assert seaweedfs.secret not in line and "guessed-secret" not in line


@pytest.mark.timeout(600)
def test_landing_files_may_lie_there_alone(seaweedfs: SeaweedFS, tmp_path: Path) -> None:
    line = b'{"sensor_id": "a", "store_id": "s", "temperature": 2.5, "event_ts": "2025-11-08T11:00:00Z"}\n'
    seaweedfs.client().put_object(Bucket="lake", Key="alone/landing/1.jsonl", Body=line)
    places = {"COLDSTORE_LAKE": str(tmp_path / "lake"), "COLDSTORE_LANDING": "s3a://lake/alone/landing"}
    env = {**os.environ, "PYTHONPATH": str(PROJECT), **seaweedfs.environment, **places, "COLDSTORE_AS_OF": "2025-11-08T12:00:00Z"}
    ended = subprocess.run([sys.executable, "-m", "spark_jobs.run_pass"], env=env, cwd=PROJECT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (row,) = DeltaTable(str(tmp_path / "lake/tables/readings")).to_pyarrow_table().to_pylist()
    assert (row["sensor_id"], row["temperature_c"], row["source"]) == ("a", 2.5, "s3a://lake/alone/landing/1.jsonl")


@pytest.mark.timeout(1800)
def test_a_bad_network_costs_time_and_nothing_else(behind_proxy: OnS3, proxy: FaultyProxy) -> None:
    lake, told = PlacedLake(behind_proxy, "lake"), history()
    for number in range(2):
        lay(lake, told, number, 2)
        proxy.fault = every(23)
        ended = lake.passes(as_of(told))
        while ended.startswith("failed"):  # one that gave up is told in a line, and the next goes on from there
            assert "the S3 server" in ended, ended
            proxy.fault = every(101)
            ended = lake.passes(as_of(told))
        assert ended.startswith("published"), ended
    assert len(proxy.requests) > 500
    assert all(proxy.faults[fault] > 3 for fault in FAULTS), proxy.faults
    proxy.fault = lambda method, path: None
    assert not differences(tables(lake), oracle_tables(as_arrived(told, lake)))


@pytest.mark.timeout(3600)
def test_a_pass_with_nothing_new_asks_no_more_after_many_passes_than_after_few(
    behind_proxy: OnS3, seaweedfs: SeaweedFS, proxy: FaultyProxy
) -> None:
    """Those before it have something to take, and go to the server directly, which is faster."""
    direct, told, asked = OnS3(seaweedfs, behind_proxy.name), history(), dict[int, list[int]]()
    lake, counted = PlacedLake(direct, "lake"), PlacedLake(behind_proxy, "lake")
    try:
        for number in range(MANY):
            lay(lake, told, number, MANY)
            lake.keeps(f"landing/{number}.jsonl", told.lines[number % len(told.lines)].text)
            assert lake.passes(as_of(told)).startswith("published")
            if number + 1 in (FEW, MANY):
                asked[number + 1] = [_requests_of_a_pass(counted, as_of(told), proxy) for _ in range(IN_A_ROW)]
    finally:
        direct.stop()
    report.requests |= asked
    print("requests of passes with nothing new, by the passes before them:", asked)
    assert sum(asked[MANY]) <= 1.15 * sum(asked[FEW])
    assert max(asked[MANY]) <= 1.15 * max(asked[FEW])


def _requests_of_a_pass(lake: PlacedLake, as_of: str, proxy: FaultyProxy) -> int:
    """By a driver of its own, which knows nothing yet."""
    driver = lake.where.new_driver()
    driver.wait_until_ready()
    proxy.requests.clear()
    lake.begins(driver, as_of)
    assert (driver.end() or "").startswith("published")
    driver.kill()
    return len(proxy.requests)


@pytest.mark.timeout(1800)
def test_a_server_that_is_killed_and_started_again_in_the_middle_of_a_pass_loses_nothing(tmp_path: Path) -> None:
    server = SeaweedFS(tmp_path / "server")
    server.start()
    place = OnS3(server, "killed")
    try:
        lake, told = PlacedLake(place, "lake"), history()
        lay(lake, told, 0, 1)
        driver = place.driver
        lake.begins(driver, as_of(told))
        _until(lambda: _exists(lake, "control/begun.json"))
        server.stop()
        threading.Timer(4, server.start).start()
        ended = driver.end() or ""
        time.sleep(5)
        assert ended.startswith("published") or "the S3 server" in ended, ended
        assert lake.passes(as_of(told)).startswith("published")
        assert not differences(tables(lake), oracle_tables(as_arrived(told, lake)))
    finally:
        place.stop()
        server.stop()


def test_no_key_and_no_secret_is_found_anywhere_after_a_run(on_seaweedfs: OnS3, seaweedfs: SeaweedFS) -> None:
    lake = PlacedLake(on_seaweedfs, "secrets", webhook_url="http://127.0.0.1:9/", webhook_secret="a-secret-of-ours")
    told, driver, commands = history(), on_seaweedfs.new_driver(), set[bytes]()
    lay(lake, told, 0, 1)
    lake.begins(driver, as_of(told), webhook_budget_s=2, webhook_timeout_s=1)
    while not driver.has_answered():
        commands |= set(_command_lines())
    ended = driver.end() or ""
    assert ended.startswith("published"), ended
    texts = on_seaweedfs.contents(lake.uri)
    assert len(texts) > 100
    texts |= {"standard error": driver.said().encode(), "command lines": b"\n".join(commands), "the last line": ended.encode()}
    driver.kill()
    secrets = [seaweedfs.secret.encode(), seaweedfs.key.encode(), b"a-secret-of-ours"]
    assert not [name for name, content in texts.items() if any(secret in content for secret in secrets)]


def _command_lines() -> Iterator[bytes]:
    """Of every process of this machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it may end while we look
            yield path.read_bytes()


def _exists(lake: PlacedLake, name: str) -> bool:
    return f"{lake.uri}/{name}" in lake.where.arrivals(f"{lake.uri}/{name.rpartition('/')[0]}")


def _until(has_come: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not has_come():
        assert time.monotonic() < deadline
        time.sleep(0.05)
