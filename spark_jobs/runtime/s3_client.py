"""The one client of the S3 server, and what that has against a request, in one line.

Who we are (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) boto3 reads from the environment. Nothing of it is ever printed but the endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from include.s3 import CONNECT_S, READ_S, endpoint, region
from include.settings import S3
from spark_jobs.runtime.errors import Stop

ATTEMPTS = 6  # of one request, with growing pauses: some 20 s, enough for a server that starts again
ABSENT = ("NoSuchKey", "404", "NotFound")
REFUSED = {
    "InvalidAccessKeyId": "it does not know the key in AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "the secret in AWS_SECRET_ACCESS_KEY is not the one of that key",
    "AccessDenied": "the key in AWS_ACCESS_KEY_ID may not do that",
    "403": "the key in AWS_ACCESS_KEY_ID is unknown, or may not do that",
    "NoSuchBucket": "it has no such bucket",
}


@cache
def client() -> Any:
    return boto3.session.Session().client(
        "s3",
        region_name=region(),
        endpoint_url=endpoint() or None,
        config=Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            s3={"addressing_style": "path" if endpoint() else "auto"},
            request_checksum_calculation="when_required",  # servers other than Amazon's do not know the newer ones
            response_checksum_validation="when_required",
            max_pool_connections=20,
        ),
    )


def bucket_and_key(place: str) -> dict[str, str]:
    bucket, _, key = place.removeprefix(S3).partition("/")
    return {"Bucket": bucket, "Key": key}


@contextmanager
def answered(place: str) -> Iterator[None]:
    """What the server, or the way to it, has against a request, in one line."""
    try:
        yield
    except ClientError as error:
        code = error_code(error)
        if code in ABSENT:
            raise FileNotFoundError(place) from None
        raise Stop(refusal(place, REFUSED.get(code, f"it answers {code}"))) from None
    except (BotoCoreError, HTTPError, ConnectionError, TimeoutError) as error:
        raise Stop(refusal(place, _trouble(error))) from None


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "an error without a code"))


def _trouble(error: Exception) -> str:
    name = type(error).__name__
    if name in ("NoCredentialsError", "PartialCredentialsError"):
        return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set"
    return f"it does not answer ({name})"


def refusal(place: str, why: str) -> str:
    return (
        f"{place}: the S3 server {endpoint() or 'of Amazon'} cannot be used: {why}. What is done so far is kept; put that right and run the "
        "pass again."
    )
