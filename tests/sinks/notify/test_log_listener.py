"""Two compacted topics on the target say what is replicated; only differences are written, a restart included."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.cluster import Record
from sinks.notify import log_listener
from sinks.notify.announcements import Announcements
from sinks.notify.log_listener import LogListener
from streaming.flow import Flow
from tests.memory.memory_cluster import MemoryCluster

TOPICS, GROUPS = "lockstep-topics.a.internal", "lockstep-groups.a.internal"
ORDERS = (b"orders", b'{"upstream":"orders","remote":"a.orders"}')
USERS = (b"users", b'{"upstream":"users","remote":"a.users"}')


class Closable(MemoryCluster):
    """A cluster that knows whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def cluster() -> Closable:
    return Closable("b")


def listening(cluster: MemoryCluster) -> LogListener:
    """A listener as after a restart."""
    listener = LogListener()
    listener.write_to(lambda: cluster, TOPICS, GROUPS, 1)
    return listener


def test_each_topic_is_a_record_with_both_of_its_names(cluster: Closable) -> None:
    listening(cluster).topics_changed({"users": "a.users", "orders": "a.orders"})
    assert cluster.read_log(TOPICS) == [ORDERS, USERS]


def test_each_group_is_a_record(cluster: Closable) -> None:
    listening(cluster).groups_changed(frozenset({"rechnung-ü", "billing"}))
    assert cluster.read_log(GROUPS) == [
        (b"billing", b'{"group":"billing"}'),
        ("rechnung-ü".encode(), '{"group":"rechnung-ü"}'.encode()),
    ]


def test_the_topics_are_made_compacted_at_the_first_record_and_not_before() -> None:
    made: list[tuple[str, int, str]] = []

    class Notes(MemoryCluster):
        def create_log(self, topic: str, replication_factor: int, configs: object) -> None:
            assert isinstance(configs, dict)
            made.append((topic, replication_factor, configs["cleanup.policy"]))
            super().create_log(topic, replication_factor, configs)

    listener = listening(Notes("b"))
    listener.topics_changed({})
    assert made == []
    listener.topics_changed({"orders": "a.orders"})
    listener.topics_changed({"users": "a.users"})
    assert made == [(TOPICS, 1, "compact")]


def test_what_is_gone_gets_a_tombstone_and_what_stays_no_record(cluster: Closable) -> None:
    listener = listening(cluster)
    listener.topics_changed({"orders": "a.orders", "users": "a.users"})
    listener.topics_changed({"users": "a.users"})
    assert cluster.read_log(TOPICS) == [ORDERS, USERS, (b"orders", None)]


def test_another_remote_name_is_another_record(cluster: Closable) -> None:
    listener = listening(cluster)
    listener.topics_changed({"orders": "a.orders"})
    listener.topics_changed({"orders": "orders"})
    assert orjson.loads(cluster.read_log(TOPICS)[-1][1] or b"") == {"upstream": "orders", "remote": "orders"}


def test_after_a_restart_only_differences_are_written(cluster: Closable) -> None:
    listening(cluster).topics_changed({"orders": "a.orders", "users": "a.users"})
    listening(cluster).topics_changed({"orders": "a.orders", "users": "a.users"})
    assert cluster.read_log(TOPICS) == [ORDERS, USERS]
    listening(cluster).topics_changed({"users": "a.users"})
    assert cluster.read_log(TOPICS)[2:] == [(b"orders", None)]


def test_what_somebody_else_wrote_is_mended_with_the_next_change(cluster: Closable) -> None:
    listener = listening(cluster)
    listener.topics_changed({"orders": "a.orders"})
    cluster.append_log(TOPICS, [(b"orders", b"no JSON"), (b"stranger", b"{}")])
    listener.topics_changed({"orders": "a.orders", "users": "a.users"})
    assert cluster.read_log(TOPICS)[3:] == [(b"stranger", None), ORDERS, USERS]


def test_a_topic_that_was_deleted_is_made_anew_with_all_of_it(cluster: Closable) -> None:
    listener = listening(cluster)
    listener.topics_changed({"orders": "a.orders"})
    cluster.delete_topics([TOPICS])
    listener.topics_changed({"orders": "a.orders", "users": "a.users"})
    assert cluster.read_log(TOPICS) == [ORDERS, USERS]


def test_what_was_half_written_when_the_cluster_failed_is_completed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    class Breaks(MemoryCluster):
        appends = 0

        def append_log(self, topic: str, records: Sequence[Record]) -> list[int]:
            self.appends += 1
            if self.appends == 2:
                raise ClusterUnreachable("b does not answer")
            return super().append_log(topic, records)

    monkeypatch.setattr(log_listener, "RECORDS_IN_A_WRITE", 1)
    cluster = Breaks("b")
    listener = listening(cluster)
    with pytest.raises(ClusterUnreachable):
        listener.topics_changed({"orders": "a.orders", "users": "a.users"})
    listener.topics_changed({"orders": "a.orders", "users": "a.users"})
    assert cluster.read_log(TOPICS) == [ORDERS, USERS]


def test_no_connection_is_made_before_the_first_call_and_it_is_closed_at_the_end(cluster: Closable) -> None:
    opened: list[Closable] = []

    def opening() -> Closable:
        opened.append(cluster)
        return cluster

    listener = LogListener()
    listener.write_to(opening, TOPICS, GROUPS, 1)
    assert opened == []
    listener.groups_changed(frozenset({"billing"}))
    listener.topics_changed({})
    assert opened == [cluster]
    listener.close()
    assert cluster.closed


def test_one_that_was_never_called_closes_nothing(cluster: Closable) -> None:
    listening(cluster).close()
    assert not cluster.closed


def test_told_by_a_flow_it_writes_what_waits_before_it_is_closed(cluster: Closable) -> None:
    told = Announcements(Flow("a", "b"), listening(cluster), listening(cluster))
    told.announce_topics({"orders": "a.orders"})
    told.announce_groups({"billing"})
    assert told.close()
    assert cluster.closed
    assert cluster.read_log(TOPICS) == [ORDERS]
    assert cluster.read_log(GROUPS) == [(b"billing", b'{"group":"billing"}')]


def compacted(records: Sequence[Record]) -> set[bytes]:
    """The keys that are left."""
    newest = dict(records)
    return {key for key, value in newest.items() if value is not None}


@given(st.lists(st.tuples(st.frozensets(st.sampled_from("abcd")), st.booleans())))
def test_compacted_the_topic_is_the_set_that_was_told_last_and_no_record_was_needless(
    told: list[tuple[frozenset[str], bool]],
) -> None:
    cluster = MemoryCluster("b")
    listener, before, differences = listening(cluster), frozenset[str](), 0
    for groups, restarts in told:
        if restarts:
            listener = listening(cluster)
        listener.groups_changed(groups)
        differences += len(groups ^ before)
        before = groups
    records = cluster.read_log(GROUPS)
    assert compacted(records) == {group.encode() for group in before}
    assert len(records) == differences
