"""One suite for every cluster: of the processes that want to lead a flow, one does, by the records in its ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.faults import ClusterUnreachable, NotLeading
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import Cluster
from sinks.ledger.lease import MARGIN, Identity, Lease
from sinks.ledger.lease_records import Act
from sinks.ledger.ledger import Ledger
from sinks.ledger.seal import Seal
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.engine.leases import RESERVE, SECONDS, by_hand

SOON = 180.0
"""Seconds until a record that was written must have been read."""


@dataclass
class Stage:
    """Leases over one ledger, each with a client of its own, whose time the test moves. `now`: seconds."""

    cluster: Cluster
    topic: str
    now: float = 1000.0
    leases: list[Lease] = field(default_factory=list)

    def open(self) -> Cluster:
        """A client of one's own; the cluster in memory has none."""
        if isinstance(self.cluster, MemoryCluster):
            return self.cluster
        assert isinstance(self.cluster, KafkaCluster)
        return open_cluster("b", {"bootstrap.servers": self.cluster.admin.servers})

    def lease(self, name: str, patience: float = 0.0, meanwhile: Callable[[], object] = lambda: None) -> Lease:
        """`meanwhile`: what happens while it waits, beside a moment."""

        def pause(seconds: float) -> None:
            threading.Event().wait(seconds)
            meanwhile()

        identity, seal, clock = Identity(name, "here"), Seal("a->b"), lambda: self.now
        built = Lease(
            "a->b", self.open, seal, identity, RESERVE, patience=patience, clock=clock, pause=pause, background=by_hand
        )
        self.leases.append(built)
        return built

    def claim(self, lease: Lease) -> None:
        """With a ledger that is read now."""
        lease.claim(Ledger(self.topic, self.cluster, self.cluster, 1))

    def may_claim(self, lease: Lease) -> bool:
        """As far as it has read by now."""
        try:
            return not lease.leads()
        except NotLeading:
            return False


@pytest.fixture
def stage(cluster: Cluster, unique: str) -> Iterator[Stage]:
    built = Stage(cluster, unique)
    yield built
    if isinstance(cluster, KafkaCluster):
        for lease in built.leases:
            lease.close()


def test_second_process_is_told_who_leads_and_takes_over_when_that_one_ends(stage: Stage) -> None:
    first, second = stage.lease("first"), stage.lease("second")
    stage.claim(first)
    first.check()
    with pytest.raises(NotLeading, match="first on here"):
        stage.claim(second)
    first.close()
    wait_for(lambda: stage.may_claim(second), SOON, "the second process to read that the first one ended")
    stage.claim(second)
    second.check()


def test_renewals_are_read_back_and_heard_by_the_others(stage: Stage) -> None:
    first, second = stage.lease("first"), stage.lease("second")
    stage.claim(first)
    with pytest.raises(NotLeading):
        stage.claim(second)
    for _ in range(4):
        stage.now += RESERVE
        first.prove()
    wait_for(lambda: not stage.may_claim(second), SOON, "the second process to read the renewals")
    with pytest.raises(NotLeading, match="first on here"):
        second.leads()


def test_silence_for_a_whole_lease_lets_another_claim_and_the_one_that_wakes_stands_by(stage: Stage) -> None:
    first, second = stage.lease("first"), stage.lease("second")
    stage.claim(first)
    with pytest.raises(NotLeading):
        stage.claim(second)
    stage.now += SECONDS + MARGIN
    stage.claim(second)
    with pytest.raises((NotLeading, ClusterUnreachable)):
        first.check()
    with pytest.raises(NotLeading, match="second on here"):
        first.prove()
    second.check()


def test_claim_of_one_that_had_not_read_the_newest_renewal_does_not_count(stage: Stage) -> None:
    """Its time is over just when that renewal is on its way."""
    first, second = stage.lease("first"), stage.lease("second")
    stage.claim(first)
    with pytest.raises(NotLeading):
        stage.claim(second)
    stage.now += SECONDS + MARGIN
    assert stage.may_claim(second)
    known = second._log.last
    first.prove()
    second._write(Act.CLAIM, 2)
    assert second._log.last == known
    for _ in range(2):
        first.prove()
    wait_for(lambda: not stage.may_claim(second), SOON, "the second one to read it")
    with pytest.raises(NotLeading, match="first on here"):
        second.leads()


def test_process_that_asks_is_handed_the_lead(stage: Stage) -> None:
    job = stage.lease("job")
    stage.claim(job)
    command = stage.lease("command", patience=60, meanwhile=job.tend)
    stage.claim(command)
    command.check()
    with pytest.raises(NotLeading):
        job.check()
