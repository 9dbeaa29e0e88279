"""A real S3 server: SeaweedFS, from the package that the tests install."""

from __future__ import annotations

from pathlib import Path

from include.settings import PROJECT
from tests.servers.ports import free_ports
from tests.servers.s3_server import BUCKET, S3Server

PORTS = ("master.port", "volume.port", "filer.port", "admin.port")


class SeaweedFS(S3Server):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ports = [f"-{name}={port}" for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)]

    def command(self) -> list[str]:
        return [
            str(PROJECT / ".local" / "spark" / "bin" / "weed"), "mini", f"-dir={self.folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-bucket={BUCKET}",
            f"-s3.port={self.port}", *self._ports, "-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
        ]  # fmt: skip

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._run(self.command(), {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret})
