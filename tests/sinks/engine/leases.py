"""Processes that may lead one flow over one cluster in memory, with a clock that a test moves, and without threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sinks.faults import ClusterUnreachable
from sinks.ledger.lease import EVIDENCE, Identity, Lease
from sinks.ledger.ledger import Ledger
from sinks.ledger.seal import Seal
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import FLOW, NOON

Records = Sequence[tuple[bytes, bytes | None]]
TOPIC = "lockstep-ledger.a.internal"
RESERVE = 15.0
SECONDS = RESERVE + EVIDENCE
"""Of the leases here."""


def by_hand(tend: Callable[[], None]) -> Callable[[], None]:
    """In place of a lease's thread: a test calls `tend` itself."""
    return lambda: None


@dataclass
class SlowCluster(MemoryCluster):
    """`late`: what its client gave up and is on its way all the same. `holds_back`: so many of the next writes."""

    late: list[tuple[str, Records]] = field(default_factory=list)
    holds_back: int = 0

    def append_log(self, topic: str, records: Records) -> list[int]:
        if self.holds_back and self.reachable:
            self.holds_back -= 1
            self.late.append((topic, records))
            raise ClusterUnreachable("no acknowledgement came")
        return super().append_log(topic, records)


@dataclass
class Processes:
    """All share the wall clock `now`; a process that is stopped is one that the test does not call."""

    target: MemoryCluster = field(default_factory=lambda: MemoryCluster("b", "id-of-b"))
    now: float = 1000.0
    secret: str | None = None

    def pause(self, seconds: float) -> None:
        """Time passes while a process waits."""
        self.now += seconds

    def lease(
        self,
        name: str,
        *,
        patience: float = 0.0,
        reserve: float = RESERVE,
        meanwhile: Callable[[], object] = lambda: None,
        on_failover: Callable[[], object] = lambda: None,
        secret: str | None = None,
    ) -> Lease:
        """Of a process with this client id; `meanwhile` is called whenever it waits."""

        def pause(seconds: float) -> None:
            self.pause(seconds)
            meanwhile()

        seal = Seal(FLOW.name, secret or self.secret)
        identity, clock = Identity(name, "here"), lambda: self.now
        opened = lambda: self.target  # noqa: E731  a client of one's own is the same cluster here
        return Lease(
            FLOW.name,
            opened,
            seal,
            identity,
            reserve,
            patience=patience,
            clock=clock,
            pause=pause,
            background=by_hand,
            on_failover=on_failover,
        )

    def ledger(self, lease: Lease | None = None, secret: str | None = None) -> Ledger:
        """Opened now, by a process that may have to lead."""
        permit = lease.check if lease else lambda: None
        seal = Seal(FLOW.name, secret or self.secret)
        return Ledger(TOPIC, self.target, self.target, 1, lambda: NOON, seal, permit)

    def claim(self, lease: Lease) -> None:
        """As a pass does, with a ledger that is read now."""
        lease.claim(self.ledger())

    def leading(self, name: str) -> Lease:
        """A process that leads."""
        lease = self.lease(name)
        self.claim(lease)
        return lease

    def pass_time(self, seconds: float, *tended: Lease) -> None:
        """So much time, in which these processes renew their leases as they should."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.5)
            for one in tended:
                one.tend()
