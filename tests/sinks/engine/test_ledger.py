"""The ledger remembers across restarts, forgets what is put as None, and never counts as empty once it was there."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sinks.faults import ItemFault, LedgerUntrusted, Observed, RightsMissing, WrongCluster
from sinks.kafka.ports.cluster import TopicConfigs, TopicSpec
from sinks.ledger.ledger import LEDGER_TOPIC_CONFIGS, Entry, Ledger
from sinks.model.changes import Change, Kind, Outcome, ScramSpec
from streaming.errors import LockstepError
from tests.memory.memory_cluster import GONE, MemoryCluster
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


def test_ledger_opened_to_read_only_refuses_to_write(cluster: MemoryCluster) -> None:
    with pytest.raises(LockstepError, match="read only"):
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
        (b'["PAUSED","topic"]', b"\xc3\x01\x00\x00\x00\x00\x00\x00\x00\x00of a newer schema"),
        (b'["CLUSTER_ID","a"]', b""),
        (b'["OWNED","topic","a.t"]', b"\xc3\x01"),
        (b"17", b""),
        (b"[]", b""),
    ],
)
def test_record_that_cannot_be_understood_stops_and_is_not_left_out(
    cluster: MemoryCluster, key: bytes, value: bytes
) -> None:
    ledger = opened(cluster)
    ledger.put({(Entry.PAUSED, ("acl",)): ""})
    cluster.append_log(TOPIC, [(key, value)])
    for read in (lambda: opened(cluster), ledger.refresh, ledger.refresh):
        with pytest.raises(LedgerUntrusted, match=r"lockstep-ledger\.a\.internal .* nothing is written: the record"):
            read()
    assert ledger.paused() == {Kind.ACL}, "what is known stays known"


def test_entry_whose_value_is_about_another_key_is_refused(cluster: MemoryCluster) -> None:
    opened(cluster).put({(Entry.PAUSED, ("acl",)): ""})
    ((_, value),) = cluster.read_log(TOPIC)
    cluster.append_log(TOPIC, [(b'["OWNED","topic","a.t"]', value)])
    with pytest.raises(LedgerUntrusted, match="about another key"):
        opened(cluster)


def test_damaged_record_that_was_overwritten_or_deleted_since_is_no_trouble(cluster: MemoryCluster) -> None:
    opened(cluster).put({(Entry.PAUSED, ("acl",)): ""})
    (good,) = cluster.read_log(TOPIC)
    damaged = [(good[0], b"x"), (b"not json", b"x"), (b'["OF_THE_FUTURE"]', b"x")]
    cluster.append_log(TOPIC, [*damaged, good, (b"not json", None), (b'["OF_THE_FUTURE"]', None)])
    assert opened(cluster).paused() == {Kind.ACL}


def test_ledger_that_vanishes_stops_the_process_that_saw_it_and_is_not_made_anew(cluster: MemoryCluster) -> None:
    ledger = opened(cluster)
    ledger.put({(Entry.PAUSED, ("topic",)): ""})
    cluster.delete_topics([TOPIC])
    for _ in range(2):
        with pytest.raises(LedgerUntrusted, match="is gone, and was there before"):
            ledger.refresh()
    assert ledger.paused() == {Kind.TOPIC}
    assert TOPIC not in cluster.list_topics()


def test_ledger_that_one_answer_lacks_is_not_gone(cluster: MemoryCluster) -> None:
    class Restarted(MemoryCluster):
        """Asked for a list or for configs, a broker answers that does not know of its topics yet."""

        def list_topics(self) -> dict[str, int]:
            return {}

        def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
            return Observed({}, dict.fromkeys(topics, GONE))

    ledger = opened(cluster)
    ledger.put({(Entry.PAUSED, ("topic",)): ""})
    opened(cluster).put({(Entry.PAUSED, ("acl",)): ""})
    cluster.__class__ = Restarted
    ledger.refresh()
    assert ledger.paused() == {Kind.TOPIC, Kind.ACL}


def test_ledger_that_was_deleted_and_made_anew_stops_the_process_that_read_more_of_it(cluster: MemoryCluster) -> None:
    ledger = opened(cluster)
    ledger.put({(Entry.PAUSED, ("topic",)): "", (Entry.PAUSED, ("acl",)): ""})
    ledger.refresh()
    cluster.delete_topics([TOPIC])
    opened(cluster).put({(Entry.PAUSED, ("acl",)): ""})
    with pytest.raises(LedgerUntrusted, match="deleted and recreated"):
        ledger.refresh()
    assert ledger.paused() == {Kind.TOPIC, Kind.ACL}


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete, compact", ""])
def test_ledger_that_is_not_kept_for_good_is_refused(cluster: MemoryCluster, policy: str) -> None:
    cluster.create_topics({TOPIC: TopicSpec(1, 1, (("cleanup.policy", policy),))})
    with pytest.raises(LedgerUntrusted, match=rf"cleanup\.policy={policy}, .* set cleanup\.policy=compact"):
        opened(cluster)


def test_ledger_that_may_not_be_read_names_the_command_that_prints_the_grants(cluster: MemoryCluster) -> None:
    class Denying(MemoryCluster):
        def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
            return Observed({}, dict.fromkeys(topics, ItemFault("TOPIC_AUTHORIZATION_FAILED", "Not authorized")))

    cluster.__class__ = Denying
    with pytest.raises(RightsMissing, match=r"DESCRIBE_CONFIGS on TOPIC .* is missing\); `lockstep rights` prints"):
        opened(cluster)


def test_ledger_with_several_partitions_was_made_by_something_else(cluster: MemoryCluster) -> None:
    cluster.create_topics({TOPIC: TopicSpec(3, 1, (("cleanup.policy", "compact"),))})
    with pytest.raises(LedgerUntrusted, match=r"3 partitions.*auto\.create\.topics\.enable"):
        opened(cluster)


def test_ledger_that_an_admin_made_beforehand_is_used(cluster: MemoryCluster) -> None:
    cluster.create_topics({TOPIC: TopicSpec(1, 1, (("cleanup.policy", "compact"),))})
    opened(cluster).put({(Entry.PAUSED, ("topic",)): ""})
    assert opened(cluster).paused() == {Kind.TOPIC}


def test_ledger_of_a_version_without_signatures_and_ids_is_read(cluster: MemoryCluster) -> None:
    """Bytes as version 0.1 wrote them: the schema of an entry is the same since."""
    header = bytes.fromhex("c301c4d352d4fddec807")
    cluster.create_log(TOPIC, 1, LEDGER_TOPIC_CONFIGS)
    cluster.append_log(
        TOPIC, [(b'["OWNED","topic","a.t"]', header + b"\x0aOWNED\x04\x0atopic\x06a.t\x00\x00\x80\xc0\x9d\xaf\xbe\x63")]
    )
    assert opened(cluster).owned(Kind.TOPIC) == {("a.t",)}


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
