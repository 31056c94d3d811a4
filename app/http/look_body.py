"""What `POST /look` is asked for. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from streaming.errors import LockstepError
from streaming.flow import Flow

MAX_WAIT = 300.0
"""Seconds that a request may wait for a pass."""


@dataclass(frozen=True, slots=True)
class LookBody:
    """What `/look` is asked for; no topics: all, no flows: all. `wait`: seconds."""

    topics: tuple[str, ...] = ()
    flows: frozenset[Flow] = frozenset()
    wait: float = 0.0

    @classmethod
    def parse(cls, content: bytes) -> LookBody:
        """Raises ValueError that says what is wrong with it."""
        try:
            body = orjson.loads(content or b"{}")
        except ValueError:
            raise ValueError("it is no JSON") from None
        if not isinstance(body, dict):
            raise ValueError("it is no object")
        try:
            flows = frozenset(Flow.parse(name) for name in _words(body, "flows"))
        except LockstepError:
            raise ValueError('flows are written as "a->b"') from None
        wait = body.get("wait_seconds", 0)
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not (math.isfinite(wait) and wait >= 0):
            raise ValueError("wait_seconds must be a number of seconds, 0 or more")
        return cls(_words(body, "topics"), flows, float(min(wait, MAX_WAIT)))


def _words(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    words = body.get(name, [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{name} must be a list of names")
    return tuple(words)
