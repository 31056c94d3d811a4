"""Which process leads a flow: what a pass asks before it writes, and what commands that only read have instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from sinks.ledger.ledger import Ledger

EVIDENCE = 10.0
"""Seconds: a write that begins rests on a renewal of the lease no older than this."""

SILENT_AFTER = 8.0
"""Seconds without an answer to a renewal, of which there is one every three, after which a target counts as silent."""


class Identity(NamedTuple):
    """Who this process is, for others to read."""

    client: str
    host: str


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a flow. `since`: UTC. `age`: where it is this process, seconds since it began the last renewal that the
    target confirmed."""

    client: str
    host: str
    since: datetime
    age: float | None = field(default=None, compare=False)

    @property
    def here(self) -> bool:
        """Whether it is this process, which is certain of that now."""
        return self.age is not None and self.age < EVIDENCE

    def silence_of(self, target: str) -> str | None:
        """That the target does not answer this process any more, long before a request to it is given up."""
        if self.age is None or self.age < SILENT_AFTER:
            return None
        return f"{target} has not answered for {self.age:.0f} s: is it up, and can it be reached?"

    def __str__(self) -> str:
        return f"{self.client} on {self.host} (since {self.since:%Y-%m-%dT%H:%M:%SZ})"

    def as_json(self) -> dict[str, Any]:
        """`leader` of a flow in `status`."""
        return {
            "client": self.client,
            "host": self.host,
            "since": f"{self.since:%Y-%m-%dT%H:%M:%SZ}",
            "here": self.here,
        }


class Leadership(Protocol):
    """Of one flow, in one process."""

    @property
    def leader(self) -> Leader | None:
        """Who leads, as far as this process knows."""

    def hold(self) -> AbstractContextManager[None]:
        """While this lasts nobody is handed the leadership who asks for it."""

    def leads(self) -> bool:
        """Whether this process does; False: nobody does, as far as it knows, so it may claim. Raises NotLeading."""

    def claim(self, ledger: Ledger) -> None:
        """Begins to lead; what the ledger held before may be out of date now. Raises NotLeading, ClusterUnreachable."""

    def check(self) -> None:
        """To be called right before each write. Raises NotLeading; ClusterUnreachable where it was not confirmed."""

    def prove(self) -> None:
        """Has it confirmed now, and checks. Raises as `check`."""

    def close(self) -> None:
        """Leads no more, and says so to the others."""


class Unled:
    """For who reads only, and for tests of what has nothing to do with it: writes are not checked."""

    leader: Leader | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """There is nothing to hand over."""
        yield

    def leads(self) -> bool:
        """As if it did."""
        return True

    def claim(self, ledger: Ledger) -> None:
        """There is nothing to claim."""

    def check(self) -> None:
        """Lets everything pass."""

    def prove(self) -> None:
        """Lets everything pass."""

    def close(self) -> None:
        """Nobody waits for it."""
