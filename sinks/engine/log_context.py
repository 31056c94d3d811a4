"""Which flow and which of its passes a log line is about, for formats that say it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class PassOf(NamedTuple):
    """A flow by its name, and the number of a pass since the job started."""

    flow: str
    number: int


_CURRENT: ContextVar[PassOf | None] = ContextVar("pass", default=None)


@contextmanager
def in_pass(flow: str, number: int) -> Iterator[None]:
    """What this thread logs within a `with` block is about this pass."""
    token = _CURRENT.set(PassOf(flow, number))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_pass() -> PassOf | None:
    """The pass that this thread is in."""
    return _CURRENT.get()
