"""One event per change, with who, when, both sides, the plan's digest and the outcome."""

from __future__ import annotations

from contextlib import suppress

import pytest

from sinks.engine.apply import Recorder
from sinks.faults import ClusterUnreachable, ItemFault, LedgerUntrusted
from sinks.ledger.audit import (
    AUDIT_TOPIC_CONFIGS,
    EVENT_KINDS,
    MOST_WAITING_EVENTS,
    Audit,
    CredentialWrite,
    audit_seal,
    process_identity,
    read_audit,
)
from sinks.ledger.ledger import Ledger
from sinks.ledger.seal import Seal
from sinks.model.changes import Kind, Op, Outcome
from sinks.model.plan import Refusal, make_plan
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import FLOW, NOON, World, config_change, put_topic, set_config, topic_change, world_in_step

TOPIC = "lockstep-audit.a.internal"


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster("b")


def audit(cluster: MemoryCluster) -> Audit:
    """An audit topic that is written at noon."""
    return Audit(TOPIC, cluster, 1, "tester@here", lambda: NOON)


def test_event_says_all_there_is_to_say(cluster: MemoryCluster) -> None:
    change = config_change("a.t", "retention.ms", "1", None)
    plan = make_plan(FLOW, [change])
    audit(cluster).record(plan, [Outcome(change)])
    (event,) = read_audit(TOPIC, cluster)
    assert event.as_dict() == {
        "at": NOON,
        "source": "a",
        "target": "b",
        "who": "tester@here",
        "kind": "topic-config",
        "op": "delete",
        "key": ["a.t", "retention.ms"],
        "before": '"1"',
        "after": None,
        "digest": plan.digest,
        "result": "applied",
        "error": None,
    }
    assert event.key == ("a.t", "retention.ms")


def test_failed_and_refused_changes_are_events_with_their_reason(cluster: MemoryCluster) -> None:
    change = topic_change("a.t", None, 2, retention_ms="1")
    refusal = Refusal(Kind.TOPIC, Op.CREATE, ("a.long",), "too long")
    audit(cluster).record(
        make_plan(FLOW, [change]), [Outcome(change, ItemFault("POLICY_VIOLATION", "no", True))], [refusal]
    )
    failed, refused = read_audit(TOPIC, cluster)
    assert (failed.result, failed.error) == ("failed", "POLICY_VIOLATION: no")
    assert failed.after == '{"partitions":2,"replication_factor":-1,"configs":{"retention.ms":"1"}}'
    assert (refused.result, refused.error, refused.key) == ("refused", "too long", ("a.long",))


def test_nothing_done_makes_neither_event_nor_topic(cluster: MemoryCluster) -> None:
    audit(cluster).record(make_plan(FLOW, []), [])
    assert cluster.list_topics() == {}


def test_topic_is_made_once_and_kept_for_a_time(cluster: MemoryCluster) -> None:
    events = audit(cluster)
    change = config_change("a.t", "retention.ms", "1", None)
    for _ in range(2):
        events.record(make_plan(FLOW, [change]), [Outcome(change)])
    assert len(read_audit(TOPIC, cluster)) == 2
    assert cluster.writes == 1
    assert AUDIT_TOPIC_CONFIGS["cleanup.policy"] == "delete"


def test_topic_without_events_reads_as_empty(cluster: MemoryCluster) -> None:
    assert read_audit(TOPIC, cluster) == []


def test_bytes_that_are_no_event_are_left_out_and_counted(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    change = config_change("a.t", "retention.ms", "1", None)
    audit(cluster).record(make_plan(FLOW, [change]), [Outcome(change)])
    cluster.append_log(TOPIC, [(b"k", b"v"), (b"k", b"")])
    assert len(read_audit(TOPIC, cluster)) == 1
    assert "2 records of the audit topic that are not events" in caplog.text


def test_records_of_one_resource_share_a_key(cluster: MemoryCluster) -> None:
    change = config_change("a.t", "retention.ms", "1", None)
    audit(cluster).record(make_plan(FLOW, [change]), [Outcome(change)])
    assert cluster.read_log(TOPIC)[0][0] == b'["topic-config","a.t","retention.ms"]'


def test_identity_is_user_at_host() -> None:
    user, at, host = process_identity().partition("@")
    assert user
    assert at == "@"
    assert host


def test_events_that_could_not_be_written_are_written_before_the_next_ones(cluster: MemoryCluster) -> None:
    changes = [topic_change(f"a.{name}", None, 1) for name in "tuv"]
    plan, topic = make_plan(FLOW, changes), audit(cluster)
    cluster.reachable = False
    for change in changes[:2]:
        with pytest.raises(ClusterUnreachable):
            topic.record(plan, [Outcome(change)])
    assert topic.waiting == 2
    cluster.reachable = True
    topic.record(plan, [Outcome(changes[2])])
    assert [event.key for event in read_audit(TOPIC, cluster)] == [("a.t",), ("a.u",), ("a.v",)]
    assert topic.waiting == 0


def test_events_that_wait_are_written_by_a_flush_as_well_and_once(cluster: MemoryCluster) -> None:
    change, topic = topic_change("a.t", None, 1), audit(cluster)
    cluster.reachable = False
    with pytest.raises(ClusterUnreachable):
        topic.record(make_plan(FLOW, [change]), [Outcome(change)])
    cluster.reachable = True
    topic.flush()
    topic.flush()
    assert len(read_audit(TOPIC, cluster)) == 1


def test_queue_of_waiting_events_is_bounded_and_what_it_drops_is_counted_and_logged(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    changes = [topic_change(f"a.{number}", None, 1) for number in range(MOST_WAITING_EVENTS + 5)]
    topic = audit(cluster)
    cluster.reachable = False
    with pytest.raises(ClusterUnreachable):
        topic.record(make_plan(FLOW, changes), [Outcome(change) for change in changes])
    assert (topic.waiting, topic.dropped) == (MOST_WAITING_EVENTS, 5)
    cluster.reachable = True
    topic.flush()
    assert read_audit(TOPIC, cluster)[0].key == ("a.5",)
    assert "5 events were dropped" in caplog.text


def test_a_pass_with_more_changes_than_may_wait_has_an_event_for_each(cluster: MemoryCluster) -> None:
    changes = [topic_change(f"a.{number}", None, 1) for number in range(MOST_WAITING_EVENTS + 5)]
    topic = audit(cluster)
    topic.record(make_plan(FLOW, changes), [Outcome(change) for change in changes])
    assert len({event.key for event in read_audit(TOPIC, cluster)}) == len(changes)
    assert topic.dropped == 0


def test_audit_topic_is_made_before_the_topics_of_a_pass_for_a_broker_makes_them_in_turn() -> None:
    world = World()
    put_topic(world.source, "x")
    world.run_pass()
    # Ids of the cluster in memory count up.
    ids = world.target.topic_ids(["a.x", world.settings.internal.audit])
    assert sorted(ids, key=lambda name: int(ids[name].removeprefix("id-"))) == [world.settings.internal.audit, "a.x"]


@pytest.mark.parametrize("silent", ["ledger", "audit"])
def test_trouble_with_ledger_or_audit_does_not_keep_the_outcome_from_the_other(silent: str) -> None:
    at = {name: MemoryCluster(name) for name in ("ledger", "audit")}
    ledger, topic = Ledger("ledger", at["ledger"], at["ledger"], 1), audit(at["audit"])
    change = topic_change("a.t", None, 1)
    at[silent].reachable = False
    with pytest.raises(ClusterUnreachable):
        Recorder(topic, MemoryCluster("target")).record(make_plan(FLOW, [change]), [Outcome(change)], [change], ledger)
    assert (ledger.owned(Kind.TOPIC) == {("a.t",)}) is (silent == "audit")
    assert (topic.waiting == 0) is (silent == "ledger")


def test_a_password_that_a_command_wrote_is_an_event_of_its_cluster_without_the_password(
    cluster: MemoryCluster,
) -> None:
    writes = [
        CredentialWrite("a", "alice", "SCRAM-SHA-512", 8192),
        CredentialWrite("b", "alice", "SCRAM-SHA-512", 8192, "DENIED: no"),
    ]
    audit(cluster).record_credentials(FLOW, writes)
    source, target = read_audit(TOPIC, cluster)
    assert source.kind in EVENT_KINDS
    assert source.named_key == {"cluster": "a", "user": "alice", "mechanism": "SCRAM-SHA-512"}
    assert (source.op, source.after, source.result) == ("update", '{"iterations":8192}', "applied")
    assert (target.result, target.error) == ("failed", "DENIED: no")


def test_audit_topic_that_somebody_deleted_is_made_anew_and_no_event_is_lost() -> None:
    world = world_in_step()
    topic = world.settings.internal.audit
    for value in ("2", "3"):
        world.target.delete_topics([topic])
        set_config(world.source, "x", "retention.ms", value)
        with suppress(ClusterUnreachable):
            world.run_pass()
        world.run_pass()
        assert [event.after for event in world.events()] == [f'"{value}"']


SECRET = "a secret of this flow"


def test_an_event_that_who_has_no_secret_wrote_is_told_apart(cluster: MemoryCluster) -> None:
    change, seal = config_change("a.t", "retention.ms", "1", None), audit_seal("a->b", SECRET)
    plan = make_plan(FLOW, [change])
    Audit(TOPIC, cluster, 1, "tester@here", lambda: NOON, seal).record(plan, [Outcome(change)])
    Audit(TOPIC, cluster, 1, "forger@there", lambda: NOON).record(plan, [Outcome(change)])
    other = audit_seal("a->b", "the secret of another")
    Audit(TOPIC, cluster, 1, "guesser@there", lambda: NOON, other).record(plan, [Outcome(change)])
    found = {event.who: event.signed for event in read_audit(TOPIC, cluster, seal)}
    assert found == {"tester@here": True, "forger@there": False, "guesser@there": False}
    assert [event.signed for event in read_audit(TOPIC, cluster)] == [None, None, None]


def test_an_entry_of_the_ledger_is_no_signed_event(cluster: MemoryCluster) -> None:
    ledger, audits = Seal("a->b", SECRET), audit_seal("a->b", SECRET)
    signed = ledger.wrap(b"key", b"data", 1)
    with pytest.raises(LedgerUntrusted):
        audits.unwrap(b"key", signed)


def test_who_is_the_user_that_the_process_runs_as(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.setenv("USER", "somebody-else")
    assert not process_identity().startswith("somebody-else")
