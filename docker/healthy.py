"""Is it well? `healthy.py tcp HOST PORT` knocks; `healthy.py http URL [PART …]` also asks whether these parts call themselves healthy."""

from __future__ import annotations

import json
import socket
import sys
import urllib.request

PATIENCE_S = 5


def knocks(host: str, port: str) -> str:
    with socket.create_connection((host, int(port)), PATIENCE_S):
        return ""


def asks(url: str, *parts: str) -> str:
    """What is not well; empty where all is."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=PATIENCE_S) as answer:
        said = json.load(answer) if parts else {}
    return ", ".join(f"{part} is {said[part]['status']}" for part in parts if said[part]["status"] != "healthy")


if __name__ == "__main__":
    try:
        trouble = {"tcp": knocks, "http": asks}[sys.argv[1]](*sys.argv[2:])
    except OSError as error:
        trouble = str(error)
    sys.exit(trouble or 0)
