"""A receiver of alerts on the loopback that does to its requests, one after the other, what a test tells it to; then it takes everything."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler"], None]


@dataclass
class Request:
    at: float
    path: str
    headers: dict[str, str]
    body: bytes
    port: int  # the sender's: the same one means the same connection
    answer: int = 0  # 0: none was given

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


@dataclass
class Receiver:
    """`requests` holds everything that came in, `taken` the events it said yes to, in order."""

    behaviours: list[Behaviour] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.receiver = self  # type: ignore[attr-defined]
        self.ended = threading.Event()
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/hook/a-token-in-the-address"

    @property
    def taken(self) -> list[dict[str, Any]]:
        return [request.event for request in self.requests if 200 <= request.answer < 300]

    def asked(self) -> list[str]:
        """The id of each event that was posted, whatever the answer was."""
        return [request.event["event_id"] for request in self.requests]

    def does(self, *behaviours: Behaviour) -> None:
        self.behaviours[:] = behaviours

    def close(self) -> None:
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        receiver: Receiver = self.server.receiver  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.request_seen = Request(time.monotonic(), self.path, dict(self.headers), body, self.client_address[1])
        receiver.requests.append(self.request_seen)
        behaviour = receiver.behaviours.pop(0) if receiver.behaviours else answers(200)
        behaviour(self)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass


def answers(status: int, text: bytes = b"noted", **headers: str) -> Behaviour:
    def answer(handler: Handler) -> None:
        handler.request_seen.answer = status
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    return answer


def hangs(handler: Handler) -> None:
    handler.close_connection = True
    handler.server.receiver.ended.wait(10)  # type: ignore[attr-defined]


def closes(handler: Handler) -> None:
    """In the middle of its answer's first line."""
    handler.wfile.write(b"HTTP/1.1 2")
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def drips(handler: Handler) -> None:
    """A byte of the headers now and then, for ever: no read of it ever times out."""
    _drip(handler, b"HTTP/1.1 200 OK\r\nX-Slow: ")


def answers_and_drips(handler: Handler) -> None:
    """It says yes at once, and then a byte of its text now and then, for ever."""
    handler.request_seen.answer = 200
    _drip(handler, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")


def _drip(handler: Handler, first: bytes) -> None:
    handler.close_connection = True
    with suppress(OSError):
        handler.wfile.write(first)
        while not handler.server.receiver.ended.wait(0.02):  # type: ignore[attr-defined]
            handler.wfile.write(b".")
