"""The stream of commits on real brokers: after whatever groups did, it says what OffsetFetch says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Assigned
from confluent_kafka.admin import AclOperation, AdminClient
from pyspark.sql import SparkSession

from app.job.commit_probe import probe_commits
from app.job.commit_streams import CommitStream
from app.local.broker import RESTRICTED
from app.local.waiting import wait_for
from sinks.flow_settings import OffsetsSource
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.groups import Offsets
from sinks.kinds.offsets.commit_feed import CommitFeed
from streaming.commits.commit_query import CommitQueries
from streaming.commits.commit_record import COMMITS_TOPIC, GROUP_PREFIX
from streaming.flow import Flow
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.kafka.staging import client_of, create
from tests.kafka.test_query_rights import grant

SOON = 60.0


@dataclass
class Stage:
    """A stream of the source's commits from when the test began, and what it brought so far, by group."""

    cluster: KafkaCluster
    bootstrap: str
    prefix: str
    feed: CommitFeed
    queries: CommitQueries
    stream: CommitStream
    known: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.x, self.y = (TopicPartition(f"{self.prefix}-t", number) for number in range(2))

    def group(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def commit(self, name: str, where: TopicPartition, offset: int) -> None:
        faults = self.cluster.groups.commit({self.group(name): {where: offset}})
        assert faults == {self.group(name): {where: None}}

    def in_transaction(self, name: str, where: TopicPartition, offset: int) -> Producer:
        """A transaction that commits this offset, and is still open."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.group(name)})
        producer.init_transactions(SOON)
        producer.begin_transaction()
        member = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group(name)})
        offsets = [Assigned(where.topic, where.partition, offset)]
        producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), SOON)
        member.close()
        return producer

    def streamed(self) -> dict[str, Offsets]:
        """Groups of this test that have an offset, as the stream says."""
        self.stream.tend()
        for group, offsets in self.feed.take().commits.items():
            of_group = self.known.setdefault(group, {})
            for where, offset in offsets.items():
                if offset is None:
                    of_group.pop(where, None)
                else:
                    of_group[where] = offset
        return {group: offsets for group, offsets in self.known.items() if offsets and group.startswith(self.prefix)}

    def fetched(self, *names: str) -> dict[str, Offsets]:
        """Those of these groups that have one, as the coordinators say."""
        seen = self.cluster.groups.committed([self.group(name) for name in names]).items
        return {group: offsets for group, offsets in seen.items() if offsets}

    def come_to(self, expected: dict[str, Offsets]) -> None:
        wait_for(lambda: self.streamed() == expected, SOON, f"the stream to say {expected}")


@pytest.fixture(scope="module")
def stage(clusters: Clusters, spark: SparkSession) -> Iterator[Stage]:
    options = {"bootstrap.servers": clusters.a.bootstrap}
    flow, feed, queries = Flow("a", "b"), CommitFeed(), CommitQueries(spark)
    stream = CommitStream("a", options, {flow: feed}, queries, lambda flow: None)
    feed.want(OffsetsSource.STREAM, 1)
    with client_of(clusters.a) as cluster:
        staged = Stage(cluster, clusters.a.bootstrap, "commit-stream", feed, queries, stream)
        create(cluster, staged.x.topic, 2, {})
        # The first commit of all makes the topic.
        wait_for(lambda: _takes(staged), SOON, "the coordinator to take commits")
        try:
            wait_for(lambda: stream.tend() or feed.live, SOON, "the stream to begin")
            yield staged
        finally:
            stream.end()


def _takes(staged: Stage) -> bool:
    where = {staged.x: 0}
    return staged.cluster.groups.commit({staged.group("first"): where}) == {staged.group("first"): {staged.x: None}}


def test_commits_resets_and_deletions_come_as_the_coordinator_has_them(stage: Stage) -> None:
    stage.commit("ahead", stage.x, 5)
    stage.commit("ahead", stage.x, 9)
    stage.commit("reset", stage.x, 7)
    stage.commit("reset", stage.x, 2)
    stage.commit("gone", stage.y, 4)
    stage.come_to(stage.fetched("ahead", "reset", "gone"))
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    admin.delete_consumer_groups([stage.group("gone")])[stage.group("gone")].result()
    stage.commit("reset", stage.y, 3)
    expected = stage.fetched("ahead", "reset", "gone")
    assert expected == {stage.group("ahead"): {stage.x: 9}, stage.group("reset"): {stage.x: 2, stage.y: 3}}
    stage.come_to(expected)


def test_a_transaction_counts_when_it_is_committed_and_never_when_it_is_aborted(stage: Stage) -> None:
    stage.commit("aborts", stage.x, 1)
    stage.commit("commits", stage.x, 1)
    aborts, commits = stage.in_transaction("aborts", stage.x, 8), stage.in_transaction("commits", stage.x, 8)
    names = ("aborts", "commits", "after")
    assert stage.fetched(*names) == {stage.group(name): {stage.x: 1} for name in names[:2]}
    aborts.abort_transaction(SOON)
    stage.commit("after", stage.x, 1)

    def come() -> dict[str, Offsets]:
        found = {group: offsets for group, offsets in stage.streamed().items() if group in map(stage.group, names)}
        assert found.get(stage.group("aborts")) in (None, {stage.x: 1}), "an offset of an aborted transaction"
        return found

    assert come().get(stage.group("commits")) in (None, {stage.x: 1}), "an offset of a transaction that is open"
    commits.commit_transaction(SOON)
    wait_for(lambda: come().get(stage.group("commits")) == {stage.x: 8}, SOON, "the transaction's offset")
    expected = {stage.group("aborts"): {stage.x: 1}, stage.group("commits"): {stage.x: 8}}
    expected |= {stage.group("after"): {stage.x: 1}}
    wait_for(lambda: come() == expected, SOON, "all that was committed beside it")
    assert stage.fetched(*names) == expected


def test_without_a_right_there_is_no_stream_and_the_reason_names_it(clusters: Clusters, stage: Stage) -> None:
    options, feed = dict(clusters.a.client_properties(RESTRICTED)), CommitFeed()
    assert f"{COMMITS_TOPIC} of a cannot be seen" in str(probe_commits("a", options))
    admin = AdminClient({"bootstrap.servers": clusters.a.bootstrap})
    grant(admin, COMMITS_TOPIC, AclOperation.DESCRIBE)
    missing = f"READ is missing on {COMMITS_TOPIC} of a: grant it"
    wait_for(lambda: probe_commits("a", options) == missing, SOON, "the topic to be seen")
    grant(admin, COMMITS_TOPIC, AclOperation.READ)
    feed.want(OffsetsSource.STREAM, 1)
    stream = CommitStream("a", options, {Flow("a", "b"): feed}, stage.queries, lambda flow: None)
    try:
        wait_for(lambda: stream.tend() or feed.reason, SOON, "the query to be refused")
        wait_for(lambda: stream.tend() or GROUP_PREFIX in str(feed.reason), SOON, "the group to be named")
    finally:
        stream.end()
