"""What is closed when the running command ends, however it does: plug-ins that were made for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

_ENDING: ContextVar[ExitStack | None] = ContextVar("ending", default=None)


@contextmanager
def running_command() -> Iterator[None]:
    """A command runs inside this."""
    with ExitStack() as stack:
        token = _ENDING.set(stack)
        try:
            yield
        finally:
            _ENDING.reset(token)


def closed_at_end(close: Callable[[], None]) -> None:
    """Calls it when the running command ends; where none runs, closing is left to the caller."""
    if (stack := _ENDING.get()) is not None:
        stack.callback(close)
