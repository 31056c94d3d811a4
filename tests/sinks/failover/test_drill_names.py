"""Which topic a drill may make."""

from __future__ import annotations

import pytest

from sinks.failover.drill import DRILL_PREFIX, Drill, check_drill_name
from streaming.errors import WrongUsage
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.sinks.builders import flow_settings, put_topic
from tests.sinks.failover.scenes import stage


@pytest.mark.parametrize("name", [f"{DRILL_PREFIX}1f2e3d4c", "practice", "orders.practice_1", "x" * 247])
def test_a_name_that_the_flow_replicates_may_be_a_drills(name: str) -> None:
    check_drill_name(flow_settings(), name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Kafka does not allow"),
        (".", "Kafka does not allow"),
        ("..", "Kafka does not allow"),
        ("../x", "holds '/'"),
        ("two words", "holds ' '"),
        ("x" * 250, "has 250 characters"),
        ("x" * 248, "its copy would be a.x.*, which has 250 characters"),
        ("__consumer_offsets", "Kafka's own"),
        ("heartbeats", "MM2's own"),
        ("a.heartbeats", "MM2's own"),
        ("mm2-offset-syncs.b.internal", "MM2's own"),
        ("mm2-configs.b.internal", "MM2's own"),
        ("a.checkpoints.internal", "MM2's own"),
        ("lockstep-ledger.a.internal", "Lockstep's own"),
        ("lockstep-audit.z.internal", "Lockstep's own"),
        ("b.orders", "is not replicated by a->b"),
    ],
)
def test_a_name_that_kafka_refuses_or_that_is_somebody_elses_is_wrong_usage(name: str, reason: str) -> None:
    with pytest.raises(WrongUsage, match=reason):
        check_drill_name(flow_settings(), name)


def test_kafkas_own_topics_are_no_drills_whatever_the_policy_calls_internal() -> None:
    class Nothing(IdentityReplicationPolicy):
        def is_internal_topic(self, topic: str) -> bool:
            return False

    with pytest.raises(WrongUsage, match="Kafka's own"):
        check_drill_name(flow_settings(policy=Nothing()), "__transaction_state")


def test_a_topic_that_the_flow_excludes_is_no_drills() -> None:
    with pytest.raises(WrongUsage, match="is not replicated by a->b"):
        check_drill_name(flow_settings({"topics": "orders.*"}), "practice")


def test_a_dry_run_finds_what_the_drill_would_find_and_writes_nothing() -> None:
    built = stage()
    made = Drill(built.scene(), "practice", lambda groups: [])
    made.check()
    assert (built.world.source.writes, built.world.target.writes) == (0, 0)
    put_topic(built.world.target, "a.practice")
    with pytest.raises(WrongUsage, match=r"a\.practice exists on b"):
        made.check()
