"""The errors that Lockstep raises on purpose; each message says what to mend."""

from __future__ import annotations

from typing import ClassVar


class LockstepError(Exception):
    """Base of all errors of ours. `str(error)` is meant for the operator.

    `code`: what programs tell errors apart by, upper-case words that stay as they are. `remedy`: what to do about any
    error of this class, beside what its message says; None where the message alone can tell.
    """

    code: ClassVar[str] = "FAILED"
    remedy: ClassVar[str | None] = None

    @property
    def lines(self) -> tuple[str, ...]:
        """What is wrong one by one; names of clusters in it may hold line feeds of their own."""
        return (str(self),)


def prefixed(name: str, said: object) -> str:
    """A message behind the name of what it is about, e.g. of a cluster or a flow. One that begins with it gets no
    second."""
    text, prefix = str(said), f"{name}: "
    return text if text.startswith(prefix) else prefix + text


class WrongUsage(LockstepError):
    """What was asked for cannot be done as it was said: arguments or a file are to be mended first."""

    code = "WRONG_USAGE"
    remedy: ClassVar[str | None] = "mend the command; --help shows what it takes"

    def __init__(self, *lines: str) -> None:
        """`lines`: each thing that is wrong."""
        self._lines = lines
        super().__init__("\n".join(lines))

    @property
    def lines(self) -> tuple[str, ...]:
        return self._lines


class MalformedRecord(LockstepError):
    """Bytes that are no record of MM2's. `reason` is one of `streaming.mm2.codec.REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PluginError(LockstepError):
    """A class named in the properties that does not import, or lacks a method of its protocol."""

    code = "PLUGIN"
    remedy = "mend the class that the message names, and try it with `lockstep validate`"


class NamingError(LockstepError):
    """A topic name that Kafka would refuse."""
