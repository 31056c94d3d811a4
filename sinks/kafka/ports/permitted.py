"""Wraps a port so that it asks for a permit before each request that may write.

Each port that writes extends a protocol that only reads. Methods that this protocol declares run without a permit. All
others ask, so that a new method writes nothing by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

Port = TypeVar("Port")

Permit = Callable[[], None]
"""Called right before a request is sent; raises if it must not be sent."""

_under_way: ContextVar[Permit | None] = ContextVar("_under_way", default=None)
"""The permit of the call that runs now."""


def ask_again() -> None:
    """Ask for a permit again, before each further request of a call that writes: a permit lasts for one request."""
    permit = _under_way.get()
    if permit is not None:
        permit()


def permitted(port: Port, permit: Permit, reader: type | None = None) -> Port:
    """Returns the port with `permit` called before each method that `reader` does not declare. Without a `reader`,
    before every method."""
    return cast(Port, _Permitted(port, permit, _declared(reader) if reader else frozenset()))


def _declared(protocol: type) -> frozenset[str]:
    return frozenset(name for of in protocol.__mro__ for name in vars(of) if not name.startswith("_"))


class _Permitted:
    def __init__(self, port: object, permit: Permit, reads: Collection[str]) -> None:
        self._port, self._permit, self._reads = port, permit, reads

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name in self._reads or not callable(found):
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
