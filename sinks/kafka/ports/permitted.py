"""A port that asks before each request that writes, in front of any other port."""

from __future__ import annotations

from collections.abc import Callable
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
            return found(*arguments, **named)

        return write
