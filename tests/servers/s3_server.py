"""An S3 server on this machine's loopback, with keys and a folder of its own: what SeaweedFS and MinIO have in common."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.servers.ports import free_ports

BUCKET = "lake"
UP_WITHIN_S = 120


class S3Server:
    """`environment` is all that a job needs to find it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_ports(1)[0]
        self.key, self.secret = f"key-{secrets.token_hex(4)}", secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def start(self) -> None:
        raise NotImplementedError

    def _run(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env={**os.environ, "HOME": str(self.folder), **environment},
                cwd=self.folder,
                start_new_session=True,
            )
        end = time.monotonic() + UP_WITHIN_S
        while not self._has_bucket():
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < end, "the S3 server did not come up"
            time.sleep(0.3)

    def _has_bucket(self) -> bool:
        try:
            self.client().head_bucket(Bucket=BUCKET)
        except ClientError as error:
            if error.response["Error"]["Code"] == "404":
                self.client().create_bucket(Bucket=BUCKET)
            return False
        except Exception:  # it is not up yet
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, how)
            self._process.wait()
            self._process = None

    def client(self) -> Any:
        return self._client

    @cached_property
    def _client(self) -> Any:
        """To make one takes longer than most requests."""
        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1", aws_access_key_id=self.key, aws_secret_access_key=self.secret,
            config=Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 2}, s3={"addressing_style": "path"}),
        )  # fmt: skip
