"""A second real S3 server (MinIO), built once from its Go module and kept in .local/; skipped, with a line that says so, where there is no Go."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from include.settings import PROJECT
from tests.servers.s3_server import S3Server

MODULE = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
BINARY = PROJECT / ".local" / "go" / "bin" / "minio"


class MinIO(S3Server):
    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [
            str(_built()),
            "server",
            str(self.folder / "data"),
            "--address",
            f"127.0.0.1:{self.port}",
            "--console-address",
            "127.0.0.1:0",
        ]
        self._run(command, {"MINIO_ROOT_USER": self.key, "MINIO_ROOT_PASSWORD": self.secret, "MINIO_BROWSER": "off"})


def _built() -> Path:
    if not BINARY.exists():
        if shutil.which("go") is None:
            pytest.skip("MinIO is built from its Go module, and there is no Go on this machine")
        subprocess.run(["go", "install", MODULE], env={**os.environ, "CGO_ENABLED": "0", "GOBIN": str(BINARY.parent)}, check=True)
    return BINARY
