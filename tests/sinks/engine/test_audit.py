"""One event per change, with who, when, both sides, the plan's digest and the outcome."""

from __future__ import annotations

import pytest

from sinks.engine.audit import CONFIGS, Audit, process_identity, read_audit
from sinks.engine.model import Kind, Op, Outcome
from sinks.engine.plan import Refusal, make_plan
from sinks.faults import ItemFault
from sinks.kafka.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import FLOW, NOON, config_change, topic_change

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
    assert CONFIGS["cleanup.policy"] == "delete"


def test_topic_without_events_reads_as_empty(cluster: MemoryCluster) -> None:
    assert read_audit(TOPIC, cluster) == []


def test_bytes_that_are_no_event_are_left_out_and_counted(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    change = config_change("a.t", "retention.ms", "1", None)
    audit(cluster).record(make_plan(FLOW, [change]), [Outcome(change)])
    cluster.append_log(TOPIC, [(b"k", b"v"), (b"k", b"")])
    assert len(read_audit(TOPIC, cluster)) == 1
    assert "2 records of the audit topic are no events" in caplog.text


def test_records_of_one_resource_share_a_key(cluster: MemoryCluster) -> None:
    change = config_change("a.t", "retention.ms", "1", None)
    audit(cluster).record(make_plan(FLOW, [change]), [Outcome(change)])
    assert cluster.read_log(TOPIC)[0][0] == b'["topic-config","a.t","retention.ms"]'


def test_identity_is_user_at_host() -> None:
    user, at, host = process_identity().partition("@")
    assert user
    assert at == "@"
    assert host
