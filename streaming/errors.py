"""The errors that Lockstep raises on purpose; each message says what to mend."""

from __future__ import annotations


class LockstepError(Exception):
    """Base of all errors of ours. `str(error)` is meant for the operator."""


class MalformedRecord(LockstepError):
    """Bytes that are no record of MM2's. `reason` is one of `streaming.mm2.codec.REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PluginError(LockstepError):
    """A class named in the properties that does not import, or lacks a method of its protocol."""


class NamingError(LockstepError):
    """A topic name that Kafka would refuse."""
