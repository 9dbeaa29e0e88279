"""A real S3 server (SeaweedFS) on this machine's loopback, with keys and a folder of its own."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

BUCKET = "lake"
PORTS = ("s3.port", "master.port", "volume.port", "filer.port", "admin.port")
UP_WITHIN_S = 60


class SeaweedFS:
    """`environment` is all that a job needs to find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key, self.secret = f"key-{secrets.token_hex(4)}", secrets.token_hex(16)
        self._ports = dict(zip(PORTS, _free_ports(), strict=True))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def command(self) -> list[str]:
        ports = [f"-{name}={port}" for name, port in self._ports.items()]
        return [
            str(Path(sys.executable).parent / "weed"), "mini", f"-dir={self.folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-bucket={BUCKET}",
            *ports, "-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
        ]  # fmt: skip

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            environment = os.environ | {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret, "HOME": str(self.folder)}
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, env=environment, cwd=self.folder, start_new_session=True
            )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + UP_WITHIN_S
        while True:
            try:
                self.client().head_bucket(Bucket=BUCKET)
                return
            except Exception:
                assert self._process is not None and self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
                assert time.monotonic() < end, "the S3 server did not come up"
                time.sleep(0.3)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, how)
            self._process.wait()
            self._process = None

    def client(self) -> Any:
        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1", aws_access_key_id=self.key, aws_secret_access_key=self.secret,
            config=Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )  # fmt: skip


def _free_ports() -> list[int]:
    """Below those that the kernel gives to outgoing connections; a server's own second port is 10,000 higher."""
    found = []
    for port in range(12_000 + secrets.randbelow(8_000), 30_000, 7):
        if len(found) == len(PORTS):
            return found
        if _is_free(port) and _is_free(port + 10_000):
            found.append(port)
    raise RuntimeError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0
