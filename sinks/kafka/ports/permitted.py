"""A port that asks before each request that writes, in front of any other port."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

Port = TypeVar("Port")

Permit = Callable[[], None]
"""Called right before a request leaves; raises where it must not."""

WRITES = frozenset(
    {
        "alter",
        "alter_topic_configs",
        "append_log",
        "commit",
        "create",
        "create_log",
        "create_partitions",
        "create_topics",
        "delete",
        "delete_topics",
        "replace_topic_configs",
        "upsert",
    }
)
"""The methods of all ports that change a cluster."""

_under_way: ContextVar[Permit | None] = ContextVar("_under_way", default=None)
"""Of the call that was permitted, while it lasts."""


def ask_again() -> None:
    """To be called before each request but the first of a method of WRITES: what is permitted lasts for one request."""
    permit = _under_way.get()
    if permit is not None:
        permit()


def permitted(port: Port, permit: Permit) -> Port:
    """The port, of which no method of WRITES is called where `permit` raises."""
    return cast(Port, _Permitted(port, permit))


class _Permitted:
    def __init__(self, port: object, permit: Permit) -> None:
        self._port, self._permit = port, permit

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in WRITES:
            return found

        @wraps(found)
        def write(*arguments: Any, **named: Any) -> Any:
            self._permit()
            token = _under_way.set(self._permit)
            try:
                return found(*arguments, **named)
            finally:
                _under_way.reset(token)

        return write
