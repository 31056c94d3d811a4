"""Tells which process leads a flow. A pass asks before it writes. Commands that only read use `Unled`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from sinks.ledger.ledger import Ledger
from sinks.model.times import utc_text

EVIDENCE = 10.0
"""Seconds. A write begins only if the lease was renewed at most so long ago."""

SILENT_AFTER = 8.0
"""Seconds without an answer to a renewal until the target counts as silent. A renewal is due every three seconds."""


class Identity(NamedTuple):
    """How this process names itself to others."""

    client: str
    host: str


@dataclass(frozen=True, slots=True)
class Leader:
    """The process that leads a flow. `since`: UTC. `age`: for this process, seconds since it began its last confirmed
    renewal."""

    client: str
    host: str
    since: datetime
    age: float | None = field(default=None, compare=False)

    @property
    def here(self) -> bool:
        """Whether this process leads for certain now."""
        return self.age is not None and self.age < EVIDENCE

    def silence_of(self, target: str) -> str | None:
        """Returns a message if the target does not answer this process, long before a request to it times out."""
        if self.age is None or self.age < SILENT_AFTER:
            return None
        return f"{target} has not answered for {self.age:.0f} s: is it up, and can it be reached?"

    def __str__(self) -> str:
        return f"{self.client} on {self.host} (since {utc_text(self.since)})"

    def as_json(self) -> dict[str, Any]:
        """`leader` of a flow in `status`."""
        return {
            "client": self.client,
            "host": self.host,
            "since": utc_text(self.since),
            "here": self.here,
        }


class Leadership(Protocol):
    """Leadership of one flow, in one process."""

    @property
    def leader(self) -> Leader | None:
        """The process that leads, as far as this process knows."""

    def hold(self) -> AbstractContextManager[None]:
        """A context in which this process hands the leadership to no other process."""

    def leads(self) -> bool:
        """Whether this process leads. Returns False if no process leads, as far as it knows, so that it may claim.
        Raises NotLeading if another one does."""

    def claim(self, ledger: Ledger) -> None:
        """Begin to lead. What was read of the ledger before may be out of date now. Raises NotLeading,
        ClusterUnreachable."""

    def check(self) -> None:
        """Called right before each write. Raises NotLeading; ClusterUnreachable without a confirmed renewal."""

    def prove(self) -> None:
        """Renew the lease now, and check. Raises as `check`."""

    def close(self) -> None:
        """Give up the leadership, and tell the other processes."""


class Unled:
    """For commands that only read, and for tests without a lease. Writes are not checked."""

    leader: Leader | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Does nothing: there is nothing to hand over."""
        yield

    def leads(self) -> bool:
        """Always true."""
        return True

    def claim(self, ledger: Ledger) -> None:
        """Does nothing: there is nothing to claim."""

    def check(self) -> None:
        """Allows every write."""

    def prove(self) -> None:
        """Allows every write."""

    def close(self) -> None:
        """Does nothing: no process waits for it."""
