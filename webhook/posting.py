"""The webhook: one signed POST per message, tried again while that may help, and all sending ends in time whatever the receiver does.

Neither the address (it may hold a token) nor the secret reaches a message: an error is named by its kind alone.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

import requests

from include.settings import SettingError, Settings
from webhook.sent import Sent

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
TRY_AGAIN = {408, 425, 429}
# They speak of the address or the secret, not of the message: it waits until somebody has put that right.
NOT_THE_MESSAGE = {401, 403, 404, 407}
READ_BYTES = 64 * 1024  # an answer's text says nothing to us, but once it is read the connection serves the next message, too


@dataclass(frozen=True)
class Reply:
    """What came of one attempt."""

    detail: str
    status: int = 0  # 0: no answer
    retry_after_s: float = 0.0

    @property
    def outcome(self) -> str:
        if 200 <= self.status < 300:
            return "delivered"
        is_refusal = 400 <= self.status < 500 and self.status not in TRY_AGAIN | NOT_THE_MESSAGE
        return "refused" if is_refusal else "waiting"

    @property
    def may_pass(self) -> bool:
        return self.status == 0 or self.status in TRY_AGAIN or self.status >= 500


class Webhook:
    def __init__(self, settings: Settings) -> None:
        _check(settings)
        self._settings, self._session = settings, requests.Session()
        self._deadline = time.monotonic() + settings.webhook_budget_s
        self._not_before = 0.0  # the end of our pause, or of the one that the receiver asked for
        self._patience = settings.webhook_attempts

    @property
    def is_over(self) -> bool:
        """Nothing more is sent."""
        return max(time.monotonic(), self._not_before) >= self._deadline

    def post(self, message_id: str, body: bytes) -> Sent:
        """After a message that had to be given up the following ones get one attempt each, until one gets through."""
        attempts, reply = 0, Reply("there was no time left to send it")
        while attempts < self._patience and not self.is_over:
            time.sleep(max(0.0, self._not_before - time.monotonic()))
            reply, attempts = self._try(message_id, body), attempts + 1
            if not reply.may_pass:
                break
            self._not_before = time.monotonic() + (reply.retry_after_s or (pause(attempts) if attempts < self._patience else 0.0))
        self._patience = 1 if reply.outcome == "waiting" else self._settings.webhook_attempts
        return Sent(reply.outcome, attempts, reply.detail)

    def _try(self, message_id: str, body: bytes) -> Reply:
        """In a thread: a receiver that sends a byte now and then outlasts every timeout of a socket, and so does a slow name server."""
        until = min(time.monotonic() + self._settings.webhook_timeout_s, self._deadline)
        seconds = max(0.001, until - time.monotonic())
        replies: SimpleQueue[Reply] = SimpleQueue()
        asking = threading.Thread(target=self._ask, args=(message_id, body, seconds, replies), daemon=True)
        asking.start()
        try:
            reply = replies.get(timeout=seconds)
        except Empty:
            return Reply(f"the webhook did not answer within {seconds:.3g} s")
        asking.join(max(0.0, until - time.monotonic()))  # then the connection is free for the next message
        return reply

    def _ask(self, message_id: str, body: bytes, seconds: float, replies: SimpleQueue[Reply]) -> None:
        timestamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "X-Coldstore-Event": message_id,
            "X-Coldstore-Timestamp": timestamp,
            "X-Coldstore-Signature": signature(self._settings.webhook_secret, timestamp, body),
        }
        address = self._settings.webhook_url
        try:
            answer = self._session.post(address, data=body, headers=headers, timeout=seconds, allow_redirects=False, stream=True)
        except Exception as error:
            replies.put(Reply(f"the webhook did not answer ({_kind(error)})"))
            return
        replies.put(_reply(answer))
        with answer, suppress(Exception):  # what counts is the status, and that is there
            answer.raw.read(READ_BYTES)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    key = secret.encode("utf-8", "surrogateescape")  # the very bytes of the environment
    return "sha256=" + hmac.new(key, timestamp.encode("ascii") + b"." + body, hashlib.sha256).hexdigest()


def pause(attempts: int) -> float:
    """Twice as long after each attempt, and never the same for two senders."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempts - 1)) * random.uniform(0.5, 1.5)


def _check(settings: Settings) -> None:
    """Before anything is sent."""
    if not settings.webhook_secret.strip():
        raise SettingError(
            "COLDSTORE_WEBHOOK_URL is set, but COLDSTORE_WEBHOOK_SECRET is not: nothing was sent. "
            "Give the secret that the receiver checks signatures with, or leave the address out, too."
        )
    try:
        address = urlsplit(settings.webhook_url)
        is_address = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise SettingError("COLDSTORE_WEBHOOK_URL is no address: nothing was sent. Give one like https://example.com/alerts.")
    for name in ("webhook_timeout_s", "webhook_attempts", "webhook_budget_s"):
        if not 0 < getattr(settings, name) < float("inf"):
            raise SettingError(f"COLDSTORE_{name.upper()} has to be a number above 0: nothing was sent.")


def _reply(answer: requests.Response) -> Reply:
    after = _retry_after(answer.headers.get("Retry-After", ""))
    asked = f" and asked to wait {after:.3g} s" if after else ""
    return Reply(f"the webhook answered {answer.status_code}{asked}", answer.status_code, after)


def _retry_after(text: str) -> float:
    """Given as seconds or as a date; 0 where it is neither."""
    try:
        seconds = float(text) if text.isdigit() else parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, seconds)


def _kind(error: BaseException) -> str:
    """The name of what lies at the bottom, like NameResolutionError; its text would tell the address."""
    first = error.args[0] if error.args else None
    reason = getattr(first, "reason", first)
    return type(reason if isinstance(reason, BaseException) else error).__name__
