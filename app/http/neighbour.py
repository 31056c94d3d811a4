"""Who listens where a job's server would: another job of Lockstep's says which flows it leads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from app.http.request_rules import base_url, is_wildcard
from streaming.errors import LockstepError

NEIGHBOUR_ANSWERS_WITHIN = 3.0
"""Seconds until a program that does not answer counts as none of Lockstep's."""


def refuse_beside_another_job(host: str, port: int, token: str | None) -> None:
    """Raises LockstepError where a job of Lockstep's answers, which says who leads; to be asked before a slow start."""
    flows = _flows_at(base_url("127.0.0.1" if is_wildcard(host) else host, port), token) if port else None
    if flows is not None:
        leads = "; ".join(_led(flows)) or "no flow is led now"
        raise LockstepError(
            f"lockstep.http.host={host}, lockstep.http.port={port}: a job of Lockstep's answers there already: "
            f"{leads}. End that one first. A second job that stands by on the same machine has a properties file of "
            "its own, with lockstep.http.port=0"
        )


def _flows_at(address: str, token: str | None) -> list[Mapping[str, Any]] | None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        # No proxy of the environment's: the token is for the job alone.
        with httpx.Client(trust_env=False, timeout=NEIGHBOUR_ANSWERS_WITHIN, headers=headers) as client:
            flows = client.get(f"{address}/status").raise_for_status().json()["flows"]
        return [flow for flow in flows if flow["source"] and flow["target"]]
    except (httpx.HTTPError, ValueError, TypeError, KeyError):
        return None


def _led(flows: list[Mapping[str, Any]]) -> Iterator[str]:
    for flow in flows:
        if leader := flow.get("leader"):
            name = f"{flow['source']}->{flow['target']}"
            yield f"{leader['client']} on {leader['host']} leads {name} since {leader['since']}"
