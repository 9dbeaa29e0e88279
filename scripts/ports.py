"""Ports on this machine's loopback, which is all that our servers listen at."""

from __future__ import annotations

import socket
from contextlib import closing

from scripts.problem import Problem

LOCALHOST = "127.0.0.1"


def free_port(wanted: int = 0, instead: str = "") -> int:
    """The one that is wanted, or any. `instead`: the command that chooses another one."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, wanted))
        except OSError:
            raise Problem(f"port {wanted} is taken by another program; choose another: {instead}.") from None
        return int(probe.getsockname()[1])
