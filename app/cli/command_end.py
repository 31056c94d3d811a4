"""The running command: what is closed when it ends, however it does, and whether it has printed its document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class RunningCommand:
    """`closing`: what was made for it, plug-ins above all. `printed`: it has printed a document of JSON."""

    closing: ExitStack = field(default_factory=ExitStack)
    printed: bool = False


_RUNNING: ContextVar[RunningCommand | None] = ContextVar("running", default=None)


@contextmanager
def running_command() -> Iterator[RunningCommand]:
    """A command runs inside this."""
    running = RunningCommand()
    with running.closing:
        token = _RUNNING.set(running)
        try:
            yield running
        finally:
            _RUNNING.reset(token)


def closed_at_end(close: Callable[[], None]) -> None:
    """Calls it when the running command ends; where none runs, closing is left to the caller."""
    if (running := _RUNNING.get()) is not None:
        running.closing.callback(close)


def document_printed() -> None:
    """The running command has said what it has to say as JSON: what fails from now on gets no document of its own."""
    if (running := _RUNNING.get()) is not None:
        running.printed = True
