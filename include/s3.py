"""Where the S3 server is: under the names that boto3, Spark's S3A, Arrow and delta-rs all read. Who we are they read there themselves."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

CONNECT_S, READ_S = 5, 30  # how long a request waits
# No secret among them: they are handed on to executors.
WHERE = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_EC2_METADATA_DISABLED")


def endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def arrow_options() -> dict[str, Any]:
    """For Arrow's S3FileSystem."""
    address = urlsplit(endpoint())
    there = {"endpoint_override": address.netloc, "scheme": address.scheme} if endpoint() else {}
    return {"region": region(), "connect_timeout": CONNECT_S, "request_timeout": READ_S, **there}


def delta_options() -> dict[str, str]:
    """For delta-rs. A commit is a conditional put: of two writers at once one fails."""
    return {"aws_region": region(), "aws_conditional_put": "etag"} | (
        {"aws_endpoint": endpoint(), "aws_allow_http": str(endpoint().startswith("http://")).lower()} if endpoint() else {}
    )
