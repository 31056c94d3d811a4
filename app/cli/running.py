"""The running job, asked over its own little server."""

from __future__ import annotations

from typing import Any

import httpx

from app.settings import Settings
from streaming.errors import LockstepError

RELOAD_WITHIN = 100.0
"""Seconds; more than the job itself takes at most."""


def address(settings: Settings) -> str:
    """Where the job of these settings listens."""
    host = settings.job.http_host
    return f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{settings.job.http_port}"


def ask_reload(settings: Settings) -> dict[str, Any]:
    """Lets the job read its file and its flows' ledgers again; what came of it. Raises LockstepError without a job."""
    where = address(settings)
    try:
        document: dict[str, Any] = httpx.post(f"{where}/reload", timeout=RELOAD_WITHIN).json()
    except (httpx.HTTPError, ValueError) as error:
        raise LockstepError(f"no job answers at {where} ({error}): start it with `lockstep run`") from error
    return document
