"""A proxy on loopback between a driver and an S3 server: it counts the requests, and treats some of them as a bad network would."""

from __future__ import annotations

import http.client
import itertools
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

BUSY = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
HOP = {"connection", "expect", "transfer-encoding", "keep-alive"}
FAULTS = ("busy", "reset", "answer lost", "slow", "cut off")
SLOW_S = 2.0
Fault = Callable[[str, str], str | None]  # method and path: what is to happen to it


class FaultyProxy:
    def __init__(self, target: str) -> None:
        self.requests: list[tuple[str, str]] = []
        self.faults: Counter[str] = Counter()  # that happened
        self.fault: Fault = lambda method, path: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, urlsplit(target).netloc))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def every(nth: int) -> Fault:
    """Each so many-th request suffers one of the faults, in turn."""
    count, faults = itertools.count(1), itertools.cycle(FAULTS)
    return lambda method, path: next(faults) if next(count) % nth == 0 else None


def _handler(proxy: FaultyProxy, target: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, TimeoutError):
                self.close_connection = True

        def _forward(self) -> None:
            body = self._body()
            proxy.requests.append((self.command, self.path))
            fault = proxy.fault(self.command, self.path)
            if fault:
                proxy.faults[fault] += 1
            if fault == "reset":
                return self._reset()
            if fault == "busy":
                return self._answer(503, [("Content-Type", "application/xml")], b"" if self.command == "HEAD" else BUSY)
            if fault == "slow":
                time.sleep(SLOW_S)
            status, headers, content = self._asked(body)
            if fault == "answer lost":
                return self._reset()
            if fault == "cut off" and len(content) > 1:
                self._answer(status, headers, content[: len(content) // 2], promised=len(content))
                return self._reset()
            self._answer(status, headers, content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward

        def _body(self) -> bytes:
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                pieces = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def _asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(target, timeout=60)
            try:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in HOP and name.lower() != "content-length":
                        connection.putheader(name, value)
                connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            except OSError:  # the server itself is gone
                return 503, [], b""
            finally:
                connection.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, promised: int | None = None) -> None:
            self.send_response_only(status)
            size = next((value for name, value in headers if name.lower() == "content-length"), None) if self.command == "HEAD" else None
            for name, value in headers:
                if name.lower() not in HOP and name.lower() != "content-length":
                    self.send_header(name, value)
            self.send_header("Content-Length", size or str(promised or len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
                self.wfile.flush()

        def _reset(self) -> None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()

        def log_message(self, *_: object) -> None:
            """Nothing: the test asks `requests`."""

    return Handler
