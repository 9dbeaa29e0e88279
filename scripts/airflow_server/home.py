"""The folder that holds everything of this Airflow: its place, who may read it, the secrets in it, and one command at a time."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from include.settings import PROJECT
from scripts.airflow_server.names import USER
from scripts.problem import Problem
from scripts.processes import one_at_a_time, write_private

HOME = PROJECT / ".local" / "airflow_home"
ELSEWHERE, OTHERS = "COLDSTORE_AIRFLOW_HOME", "COLDSTORE_AIRFLOW_USERS"
ROLES = ("viewer", "user", "op", "admin")  # of Airflow's own: look, trigger and acknowledge, configure, everything


def folder() -> Path:
    return Path(os.environ.get(ELSEWHERE) or HOME).absolute()


def logs() -> Path:
    return folder() / "logs"


def kept(path: Path, make: Callable[[], dict[str, str]]) -> dict[str, str]:
    """The secrets in a file, made at random if there is none yet."""
    if not path.exists():
        write_private(path, json.dumps(make()) + "\n")
    path.chmod(0o600)
    return dict(json.loads(path.read_text(encoding="utf-8")))


def new_secrets() -> dict[str, str]:
    fernet_key = base64.urlsafe_b64encode(os.urandom(32)).decode()
    return {"fernet_key": fernet_key, "jwt_secret": secrets.token_hex(64), "secret_key": secrets.token_hex(32)}


def users() -> dict[str, str]:
    """Who may log in, and in which role."""
    found = {USER: "admin"}
    for part in filter(None, os.environ.get(OTHERS, "").split(",")):
        name, _, role = (word.strip() for word in part.partition(":"))
        if not re.fullmatch(r"[\w.@-]+", name) or role not in ROLES or name in found:
            raise Problem(
                f"{OTHERS}: {part!r} is no user of their own with a role; write it like ada:user,store-7:viewer (roles: {', '.join(ROLES)})."
            )
        found[name] = role
    return found


def password() -> str:
    """That of the first user; each has one, made at random."""
    file = folder() / "passwords.json"
    known = kept(file, dict)
    if missing := users().keys() - known.keys():
        known |= {name: secrets.token_urlsafe(15) for name in sorted(missing)}
        write_private(file, json.dumps(known) + "\n")
    return known[USER]


def lock() -> AbstractContextManager[None]:
    return one_at_a_time(folder() / "server.lock", "`make run`, `make up` or `make down`")
