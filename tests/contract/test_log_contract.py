"""One suite for every cluster: its logs are read as they were appended."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.cluster import CHUNK, Cluster, LogChunk, Placed, Record, Tail
from tests.conftest import Clusters

SOON = 180.0
"""Seconds until what was appended must be told."""


def test_log_is_read_as_it_was_appended(cluster: Cluster, unique: str) -> None:
    cluster.create_log(unique, 1, {"cleanup.policy": "compact"})
    records: list[tuple[bytes, bytes | None]] = [(b"k1", b"v1"), (b"k2", None), (b"", b"\x00\xff"), (b"k1", b"v2")]
    assert cluster.append_log(unique, records[:3]) == [0, 1, 2]
    assert cluster.append_log(unique, records[3:]) == [3]
    assert cluster.read_log(unique) == records
    assert cluster.list_topics()[unique] == 1


@pytest.mark.parametrize("last", [0, 1, 3, 4, 100])
def test_last_records_of_a_log(cluster: Cluster, unique: str, last: int) -> None:
    cluster.create_log(unique, 1, {})
    records: list[tuple[bytes, bytes | None]] = [(b"k", bytes([number])) for number in range(4)]
    cluster.append_log(unique, records)
    assert cluster.read_log(unique, last=last) == records[max(0, 4 - last) :]


def test_log_whose_replicas_nobody_chose_has_what_the_brokers_can_keep(cluster: Cluster, unique: str) -> None:
    cluster.create_log(unique, None, {})
    assert wait_for(lambda: cluster.list_topics().get(unique), SOON, f"{unique} to be listed") == 1


def test_log_that_is_there_is_made_again_without_harm(cluster: Cluster, unique: str) -> None:
    cluster.create_log(unique, 1, {})
    cluster.append_log(unique, [(b"k", b"v")])
    cluster.create_log(unique, 1, {})
    assert cluster.read_log(unique) == [(b"k", b"v")]


def test_log_without_records_or_without_topic_is_empty(cluster: Cluster, unique: str) -> None:
    assert cluster.read_log(unique) == []
    assert cluster.read_log(unique, last=5) == []
    cluster.create_log(unique, 1, {})
    assert cluster.read_log(unique) == []
    assert cluster.read_log(unique, last=5) == []


def test_long_log_is_read_to_its_end(cluster: Cluster, unique: str) -> None:
    cluster.create_log(unique, 1, {})
    records: list[tuple[bytes, bytes | None]] = [(b"k%d" % number, b"v" * 100) for number in range(5000)]
    cluster.append_log(unique, records)
    assert cluster.read_log(unique) == records


def test_log_is_read_from_an_offset_on_and_says_so(cluster: Cluster, unique: str) -> None:
    cluster.create_log(unique, 1, {})
    cluster.append_log(unique, [(b"a", b"1"), (b"b", None), (b"a", b"3")])
    assert cluster.read_log_from(unique, 1) == LogChunk([Placed(1, b"b", None), Placed(2, b"a", b"3")], whole=False)
    assert cluster.read_log_from(unique, 3) == LogChunk([], whole=False)
    assert [placed.position for placed in cluster.read_log_from(unique, 0).records] == [0, 1, 2]
    assert cluster.read_log_from(unique, 0).whole


def test_log_that_ends_before_that_offset_was_made_again_and_is_read_whole(cluster: Cluster, unique: str) -> None:
    assert cluster.read_log_from(unique, 4) == LogChunk([], whole=True)
    cluster.create_log(unique, 1, {})
    cluster.append_log(unique, [(b"a", b"1")])
    assert cluster.read_log_from(unique, 4) == LogChunk([Placed(0, b"a", b"1")], whole=True)


def test_log_is_read_in_chunks_of_which_none_is_long(cluster: Cluster, unique: str) -> None:
    cluster.create_log(unique, 1, {})
    cluster.append_log(unique, [(b"", b"%d" % number) for number in range(CHUNK + 5)])
    for position, whole in ((0, True), (2, False)):
        chunks = list(cluster.read_log_in_chunks(unique, position))
        assert [placed.position for chunk in chunks for placed in chunk.records] == list(range(position, CHUNK + 5))
        assert {chunk.whole for chunk in chunks} == {whole}
        assert max(len(chunk.records) for chunk in chunks) <= CHUNK


def test_log_that_has_nothing_to_tell_is_one_chunk(cluster: Cluster, unique: str) -> None:
    assert list(cluster.read_log_in_chunks(unique, 0)) == [LogChunk([], whole=True)]
    cluster.create_log(unique, 1, {})
    cluster.append_log(unique, [(b"a", b"1")])
    assert list(cluster.read_log_in_chunks(unique, 1)) == [LogChunk([], whole=False)]


def told(tail: Tail, count: int) -> list[Record]:
    """So many records of a log that is followed."""
    records: list[Record] = []

    def enough() -> bool:
        records.extend(tail.next(0.2))
        return len(records) >= count

    wait_for(enough, SOON, f"{count} records")
    return records


def test_log_is_followed_from_its_first_record_to_what_comes(cluster: Cluster, unique: str) -> None:
    cluster.create_log(unique, 1, {})
    cluster.append_log(unique, [(b"k", b"1"), (b"k", None)])
    with closing(cluster.follow_log(unique)) as tail:
        assert told(tail, 2) == [(b"k", b"1"), (b"k", None)]
        assert tail.next(0.2) == []
        cluster.append_log(unique, [(b"k", b"3")])
        assert told(tail, 1) == [(b"k", b"3")]


def test_log_that_is_not_there_yet_is_followed_from_when_it_appears(cluster: Cluster, unique: str) -> None:
    with closing(cluster.follow_log(unique)) as tail:
        assert tail.next(0.2) == []
        cluster.create_log(unique, 1, {})
        cluster.append_log(unique, [(b"k", b"1")])
        assert told(tail, 1) == [(b"k", b"1")]


@pytest.mark.kafka
def test_log_that_a_listing_lacks_for_a_moment_is_read_on(
    clusters: Clusters, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_cluster("b", {"bootstrap.servers": clusters.b.bootstrap})) as cluster:
        cluster.create_log(unique, 1, {})
        monkeypatch.setattr(cluster, "names", list)
        cluster.append_log(unique, [(b"k", bytes([number])) for number in range(3)])
        read = cluster.read_log_from(unique, 2)
        assert read == LogChunk([Placed(2, b"k", b"\x02")], whole=False)
        assert list(cluster.read_log_in_chunks(unique, 2)) == [read]
        assert cluster.read_log_from(f"{unique}-gone", 2) == LogChunk([], whole=True)


@pytest.mark.kafka
def test_log_that_loses_records_while_it_is_read_is_not_read_on_from_another_place(
    clusters: Clusters, unique: str
) -> None:
    config = {"bootstrap.servers": clusters.b.bootstrap}
    admin = AdminClient(config)

    def deletes_first(first: int, end: int) -> int:
        (deleted,) = admin.delete_records([TopicPartition(unique, 0, 4)]).values()
        deleted.result(SOON)
        return 2

    with closing(open_cluster("b", config)) as cluster:
        cluster.create_log(unique, 1, {})
        cluster.append_log(unique, [(b"k", bytes([number])) for number in range(6)])
        with pytest.raises(ClusterUnreachable, match="lost records while it was read"):
            list(cluster._log._chunks(unique, deletes_first))
        assert [placed.position for placed in cluster.read_log_from(unique, 2).records] == [4, 5]
