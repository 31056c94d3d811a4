"""Which process leads a flow: what a pass asks before it writes, and what commands that only look have instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from sinks.engine.ledger import Ledger


class Identity(NamedTuple):
    """Who this process is, for others to read."""

    client: str
    host: str


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a flow. `since`: UTC. `here`: it is this process, and it is certain of that now."""

    client: str
    host: str
    since: datetime
    here: bool = False

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
    """For who looks only, and for tests of what has nothing to do with it: writes are not checked."""

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
