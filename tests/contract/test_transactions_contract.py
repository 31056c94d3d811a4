"""One suite for every cluster: what `sinks.kafka.ports.transactions` promises of open transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

import confluent_kafka as rd
import pytest

from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.jvm.jvm_transactions import JvmTransactions
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kafka.ports.transactions import ActiveProducer, Transactions
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.memory.memory_records import MemoryLog, MemoryRecords
from tests.memory.memory_transactions import MemoryTransactions, ProducerFenced

SOON = 180.0


class Producers(Protocol):
    """Transactional producers, one for each id."""

    def write(self, name: str, where: TopicPartition, value: bytes) -> None: ...

    def commit(self, name: str) -> bool:
        """Whether the producer was told that its transaction is committed."""


@dataclass
class Stage:
    """A topic of one partition, and readers of either isolation."""

    where: TopicPartition
    transactions: Transactions
    producers: Producers
    committed: RecordReader
    uncommitted: RecordReader

    def begin(self, name: str) -> ActiveProducer:
        """A transaction that is open, as the partition's leader knows it."""
        self.producers.write(name, self.where, b"open")
        (found,) = self.open()
        return found

    def open(self) -> list[ActiveProducer]:
        return [one for one in self.transactions.producers([self.where]).items[self.where] if one.began is not None]

    def is_stable(self) -> bool:
        end = self.uncommitted.ends([self.where]).items[self.where].end
        return self.committed.readable([self.where]).items[self.where].end == end

    def values(self) -> list[bytes | None]:
        """Those that a reader of committed records gets."""
        from sinks.failover.cut_reader import all_records

        return [record.value for record in all_records(self.committed, {self.where: 0})[self.where]]


@dataclass
class MemoryProducers:
    transactions: MemoryTransactions

    def write(self, name: str, where: TopicPartition, value: bytes) -> None:
        self.transactions.write(name, len(name), where, value, 5)

    def commit(self, name: str) -> bool:
        try:
            self.transactions.commit(name)
        except ProducerFenced:
            return False
        return True


@dataclass
class RealProducers:
    bootstrap: str
    made: dict[str, rd.Producer] = field(default_factory=dict)

    def write(self, name: str, where: TopicPartition, value: bytes) -> None:
        if name not in self.made:
            long = {"transaction.timeout.ms": 600_000}
            self.made[name] = rd.Producer({"bootstrap.servers": self.bootstrap, "transactional.id": name, **long})
            self.made[name].init_transactions(SOON)
            self.made[name].begin_transaction()
        self.made[name].produce(where.topic, value, partition=where.partition)
        assert self.made[name].flush(SOON) == 0

    def commit(self, name: str) -> bool:
        try:
            self.made[name].commit_transaction(SOON)
        except rd.KafkaException as exception:
            assert exception.args[0].code() in (rd.KafkaError._FENCED, rd.KafkaError.INVALID_PRODUCER_EPOCH)
            return False
        return True


@pytest.fixture(params=["memory", pytest.param("jvm", marks=pytest.mark.kafka)])
def stage(request: pytest.FixtureRequest, unique: str) -> Iterator[Stage]:
    where = TopicPartition(unique, 0)
    if request.param == "memory":
        logs = {where: MemoryLog()}
        uncommitted, committed = MemoryRecords("b", logs, committed=False), MemoryRecords("b", logs)
        made = MemoryTransactions(uncommitted)
        yield Stage(where, made, MemoryProducers(made), committed, uncommitted)
        return
    clusters: Clusters = request.getfixturevalue("clusters")
    properties = {"bootstrap.servers": clusters.b.bootstrap}
    with closing(open_cluster("b", properties)) as cluster:
        assert cluster.create_topics({unique: TopicSpec(1, 1)}) == {unique: None}
        wait_for(lambda: unique in cluster.list_topics(), SOON, f"{unique} to be listed")
        with (
            closing(cluster.records("read_committed")) as committed,
            closing(cluster.records("read_uncommitted")) as uncommitted,
        ):
            yield Stage(
                where, JvmTransactions(cluster.admin), RealProducers(clusters.b.bootstrap), committed, uncommitted
            )


def test_an_open_transaction_is_named_by_its_leader_and_its_coordinator(stage: Stage, unique: str) -> None:
    found = stage.begin(unique)
    assert (found.began, stage.is_stable()) == (0, False)
    assert found.last_ms > 0
    view = stage.transactions.coordinated([found.producer])
    one = view.items[found.producer]
    assert (one.transactional_id, one.state, one.partitions) == (unique, "Ongoing", {stage.where})
    assert one.started_ms is not None
    assert not view.hidden


def test_a_transaction_that_is_committed_is_open_no_more(stage: Stage, unique: str) -> None:
    stage.begin(unique)
    assert stage.producers.commit(unique)
    wait_for(stage.is_stable, SOON, "the marker")
    assert (stage.open(), stage.values()) == ([], [b"open"])


def test_a_producer_that_is_fenced_learns_that_its_transaction_was_aborted(stage: Stage, unique: str) -> None:
    found = stage.begin(unique)
    assert stage.transactions.fence_producers([unique]) == {unique: None}
    wait_for(stage.is_stable, SOON, "the marker")
    assert (stage.open(), stage.values()) == ([], [])
    assert not stage.producers.commit(unique)
    assert found.producer not in {one.producer for one in stage.open()}


def test_an_abort_marker_alone_lets_a_producer_believe_that_it_committed(stage: Stage, unique: str) -> None:
    """So that it is for transactions alone that no coordinator knows."""
    found = stage.begin(unique)
    assert stage.transactions.abort(stage.where, found) is None
    wait_for(stage.is_stable, SOON, "the marker")
    assert stage.producers.commit(unique)
    assert stage.values() == []


def test_a_producer_that_no_coordinator_knows_is_not_among_theirs(stage: Stage, unique: str) -> None:
    stage.begin(unique)
    view = stage.transactions.coordinated([987654321])
    assert (view.items, view.hidden) == ({}, "")
