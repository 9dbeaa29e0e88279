"""A server for as long as it is needed, whatever becomes of those who need it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar


class Server(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


Kind = TypeVar("Kind", bound=Server)


@contextmanager
def running(server: Kind) -> Iterator[Kind]:
    try:
        server.start()
        yield server
    finally:
        server.stop()
