"""The ledger remembers across restarts, forgets what is put as None, and losing it errs on the safe side."""

from __future__ import annotations

import logging

import pytest

from sinks.engine.ledger import Entry, Ledger
from sinks.engine.model import Change, Kind, Outcome, ScramSpec
from sinks.faults import ItemFault, WrongCluster
from sinks.kafka.memory.memory_cluster import MemoryCluster
from streaming.errors import LockstepError
from tests.sinks.builders import NOON, config_change, topic_change

TOPIC = "lockstep-ledger.a.internal"


def opened(cluster: MemoryCluster) -> Ledger:
    """The ledger, read now."""
    return Ledger(TOPIC, cluster, cluster, 1, lambda: NOON)


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster("b")


def test_looking_makes_no_topic(cluster: MemoryCluster) -> None:
    assert opened(cluster).get(Entry.CLUSTER_ID, "a") is None
    assert cluster.list_topics() == {}
    assert cluster.writes == 0


def test_what_was_put_is_there_after_a_restart(cluster: MemoryCluster) -> None:
    opened(cluster).put({(Entry.CLUSTER_ID, ("a",)): "id-of-a", (Entry.PAUSED, ("topic",)): ""})
    again = opened(cluster)
    assert again.get(Entry.CLUSTER_ID, "a") == "id-of-a"
    assert again.paused() == {Kind.TOPIC}


def test_what_is_known_already_is_not_written_again(cluster: MemoryCluster) -> None:
    ledger = opened(cluster)
    ledger.put({(Entry.CLUSTER_ID, ("a",)): "id-of-a"})
    ledger.put({(Entry.CLUSTER_ID, ("a",)): "id-of-a"})
    opened(cluster).put({(Entry.CLUSTER_ID, ("a",)): "id-of-a", (Entry.PAUSED, ("topic",)): None})
    assert len(cluster.read_log(TOPIC)) == 1


def test_none_forgets_with_a_tombstone(cluster: MemoryCluster) -> None:
    ledger = opened(cluster)
    ledger.put({(Entry.PAUSED, ("topic-config",)): ""})
    ledger.put({(Entry.PAUSED, ("topic-config",)): None})
    assert ledger.paused() == set()
    assert opened(cluster).paused() == set()
    assert cluster.read_log(TOPIC)[-1] == (b'["PAUSED","topic-config"]', None)


def test_paused_kind_that_this_version_does_not_know_is_no_trouble(cluster: MemoryCluster) -> None:
    opened(cluster).put({(Entry.PAUSED, ("never-heard-of",)): ""})
    assert opened(cluster).paused() == set()


def test_ledger_opened_to_look_only_refuses_to_write(cluster: MemoryCluster) -> None:
    with pytest.raises(LockstepError, match="look only"):
        Ledger(TOPIC, cluster, None, 1).put({(Entry.PAUSED, ("topic",)): ""})


def test_created_topics_are_owned_and_deleted_ones_let_go(cluster: MemoryCluster) -> None:
    ledger = opened(cluster)
    ledger.record([Outcome(topic_change("a.t", None, 1)), Outcome(topic_change("a.u", None, 1))])
    assert opened(cluster).owned(Kind.TOPIC) == {("a.t",), ("a.u",)}
    ledger.record([Outcome(topic_change("a.t", 1, None))])
    assert opened(cluster).owned(Kind.TOPIC) == {("a.u",)}


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(topic_change("a.t", None, 1), already=True),
        Outcome(topic_change("a.t", None, 1), ItemFault("POLICY_VIOLATION", "no")),
        Outcome(topic_change("a.t", 1, 2)),
        Outcome(config_change("a.t", "retention.ms", None, "1")),
    ],
    ids=["was there", "failed", "grown", "config"],
)
def test_what_we_did_not_create_is_not_ours(cluster: MemoryCluster, outcome: Outcome) -> None:
    opened(cluster).record([outcome])
    assert opened(cluster).owned(Kind.TOPIC) == set()
    assert cluster.read_log(TOPIC) == []


def test_deletion_that_failed_does_not_let_go(cluster: MemoryCluster) -> None:
    ledger = opened(cluster)
    ledger.record([Outcome(topic_change("a.t", None, 1))])
    ledger.record([Outcome(topic_change("a.t", 1, None), ItemFault("POLICY_VIOLATION", "no"))])
    assert opened(cluster).owned(Kind.TOPIC) == {("a.t",)}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"not json", b""),
        (b'["OF_THE_FUTURE"]', b"x"),
        (b'["PAUSED","topic"]', b"no single object"),
        (b"17", None),
        (b"[]", None),
        (b'["PAUSED","topic"]', b""),
    ],
)
def test_damaged_record_is_left_out_with_a_warning(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture, key: bytes, value: bytes | None
) -> None:
    opened(cluster).put({(Entry.CLUSTER_ID, ("a",)): "id-of-a"})
    cluster.append_log(TOPIC, [(key, value)])
    with caplog.at_level(logging.WARNING):
        ledger = opened(cluster)
    assert "was left out" in caplog.text
    assert ledger.get(Entry.CLUSTER_ID, "a") == "id-of-a"
    assert ledger.paused() == set()


def test_lost_ledger_owns_nothing(cluster: MemoryCluster) -> None:
    opened(cluster).record([Outcome(topic_change("a.t", None, 1))])
    cluster.delete_topics([TOPIC])
    assert opened(cluster).owned(Kind.TOPIC) == set()


def test_first_contact_pins_and_another_id_stops_with_the_remedy(cluster: MemoryCluster) -> None:
    ledger = opened(cluster)
    place = ledger.check_cluster_id("a", "id-of-a")
    assert place == (Entry.CLUSTER_ID, ("a",))
    ledger.put({place: "id-of-a"})
    assert ledger.check_cluster_id("a", "id-of-a") is None
    with pytest.raises(WrongCluster) as stopped:
        ledger.check_cluster_id("a", "other")
    for part in ("a.bootstrap.servers", "other", "id-of-a", "nothing is written", TOPIC):
        assert part in str(stopped.value)


ALICE = ("alice", "SCRAM-SHA-512")


def scram(before: ScramSpec | None, after: ScramSpec | None) -> Outcome:
    return Outcome(Change(Kind.SCRAM_USER, ALICE, before, after))


def test_version_of_a_secret_that_was_written_is_remembered_whoever_made_the_user(cluster: MemoryCluster) -> None:
    opened(cluster).record([scram(ScramSpec(4096), ScramSpec(4096, "2"))])
    assert opened(cluster).versions(Kind.SCRAM_USER) == {ALICE: "2"}
    assert opened(cluster).owned(Kind.SCRAM_USER) == set()


def test_user_that_was_deleted_is_forgotten_with_his_version(cluster: MemoryCluster) -> None:
    opened(cluster).record([scram(None, ScramSpec(4096, "1"))])
    assert opened(cluster).owned(Kind.SCRAM_USER) == {ALICE}
    opened(cluster).record([scram(ScramSpec(4096, "1"), None)])
    assert opened(cluster).versions(Kind.SCRAM_USER) == {}
    assert opened(cluster).owned(Kind.SCRAM_USER) == set()
