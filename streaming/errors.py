"""The errors that Lockstep raises on purpose; each message says what to mend."""

from __future__ import annotations

from typing import ClassVar


class LockstepError(Exception):
    """Base of all errors of Lockstep. `str(error)` is for the operator.

    `code`: upper-case words that never change, by which programs tell errors apart. `remedy`: what to do about any
    error of this class; None if only the message can tell.
    """

    code: ClassVar[str] = "FAILED"
    remedy: ClassVar[str | None] = None

    @property
    def lines(self) -> tuple[str, ...]:
        """The message line by line. A line may hold line feeds if the name of a cluster does."""
        return (str(self),)


def prefixed(name: str, said: object) -> str:
    """Returns the message `said` behind the name of a cluster or flow, unless it begins with that name."""
    text, prefix = str(said), f"{name}: "
    return text if text.startswith(prefix) else prefix + text


class WrongUsage(LockstepError):
    """The request cannot be carried out as given: the user must mend arguments or a file first."""

    code = "WRONG_USAGE"
    remedy: ClassVar[str | None] = "mend the command; --help shows what it takes"

    def __init__(self, *lines: str) -> None:
        """`lines`: one message for each thing that is wrong."""
        self._lines = lines
        super().__init__("\n".join(lines))

    @property
    def lines(self) -> tuple[str, ...]:
        return self._lines


class MalformedRecord(LockstepError):
    """Bytes that are not a record of MM2. `reason` is one of `streaming.mm2.codec.REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PluginError(LockstepError):
    """A class named in the properties that cannot be imported, or lacks a method of its protocol."""

    code = "PLUGIN"
    remedy = "mend the class that the message names, and try it with `lockstep validate`"


class NamingError(LockstepError):
    """A topic name that Kafka would refuse."""
