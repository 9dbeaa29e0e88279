"""Ports on loopback that nobody listens at."""

from __future__ import annotations

import secrets
import socket


def free_ports(count: int) -> list[int]:
    """Below those that the kernel gives to outgoing connections; a server's own second port may be 10,000 higher."""
    found = []
    for port in range(12_000 + secrets.randbelow(8_000), 30_000, 7):
        if len(found) == count:
            return found
        if _is_free(port) and _is_free(port + 10_000):
            found.append(port)
    raise RuntimeError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0
