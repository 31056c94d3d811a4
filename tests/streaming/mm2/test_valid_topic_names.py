"""Names that Kafka takes, and names of the topics that MM2 and Lockstep keep for themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import NamingError
from streaming.flow import Flow
from streaming.mm2.internal_topic_names import InternalTopics, internal_topics
from streaming.mm2.replication_policy import (
    BaseReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    check_topic_name,
    is_written_by_mm2_alone,
)
from tests.streaming.mm2.policy_builders import Loops, default


@given(st.text(".-_azAZ09", min_size=1, max_size=249).filter(lambda name: name not in (".", "..")), st.data())
def test_a_legal_name_passes_and_with_one_wrong_character_it_does_not(name: str, data: st.DataObject) -> None:
    check_topic_name(name)
    at = data.draw(st.integers(0, len(name) - 1))
    with pytest.raises(NamingError, match="Kafka allows"):
        check_topic_name(f"{name[:at]}|{name[at + 1 :]}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a." + "x" * 248, "has 250 characters, Kafka allows 249: shorten the alias"),
        (
            "a|orders",
            "holds '|', Kafka allows a-z A-Z 0-9 . _ -: look at the alias and at replication.policy.separator",
        ),
        ("a.ö", "holds 'ö'"),
        ("..", "does not allow"),
        ("", "does not allow"),
    ],
)
def test_a_name_that_kafka_refuses_is_an_error_that_says_what_to_mend(name: str, said: str) -> None:
    with pytest.raises(NamingError) as caught:
        check_topic_name(name)
    assert said in str(caught.value)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("separator", "switch", "expected"),
    [
        (None, "false", "."),
        (None, None, "."),
        ("_", None, "_"),
        ("_", "TRUE", "_"),
        ("_", "false", "."),
        ("_", "", "."),
    ],
)
def test_internal_topics_have_the_separator_unless_the_switch_beside_it_says_no(
    separator: str | None, switch: str | None, expected: str
) -> None:
    others = {} if switch is None else {"replication.policy.internal.topic.separator.enabled": switch}
    policy = default(separator, **others)
    assert policy.internal_separator == expected
    assert policy.checkpoints_topic("a") == f"a{expected}checkpoints{expected}internal"
    assert policy.offset_syncs_topic("b") == f"mm2-offset-syncs{expected}b{expected}internal"
    assert policy.heartbeats_topic() == "heartbeats"


def test_each_side_names_the_offset_syncs_after_the_other_cluster() -> None:
    flow = Flow("a", "b")
    at_source, at_target = (internal_topics(default(), flow, location) for location in ("source", "target"))
    assert at_source == InternalTopics(
        heartbeats="heartbeats",
        checkpoints="a.checkpoints.internal",
        offset_syncs="mm2-offset-syncs.b.internal",
        offset_syncs_cluster="a",
        ledger="lockstep-ledger.a.internal",
        audit="lockstep-audit.a.internal",
        topics="lockstep-topics.a.internal",
        groups="lockstep-groups.a.internal",
        reverse_ledger="lockstep-ledger.b.internal",
        former_ledgers=("lockstep-ledger.a.internal", "lockstep-ledger_a_internal", "lockstep-ledger-a-internal"),
    )
    assert (at_target.offset_syncs, at_target.offset_syncs_cluster) == ("mm2-offset-syncs.a.internal", "b")


def test_our_own_topics_have_the_policys_separator_and_a_dot_where_it_has_none() -> None:
    named = internal_topics(default("_"), Flow("a", "b"), "source")
    assert (named.ledger, named.audit) == ("lockstep-ledger_a_internal", "lockstep-audit_a_internal")
    assert internal_topics(Loops(), Flow("a", "b"), "source").ledger == "lockstep-ledger.a.internal"


class Constant(BaseReplicationPolicy):
    """Renames topics, and calls all of them the source's."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"dr.{topic}"

    def topic_source(self, topic: str) -> str:
        return "a"

    def upstream_topic(self, topic: str) -> str:
        return topic.removeprefix("dr.")


@pytest.mark.parametrize(
    ("policy", "alias", "topic", "alone"),
    [
        (DefaultReplicationPolicy(), "a", "x", True),
        (DefaultReplicationPolicy(), "a", "c.x", True),
        (DefaultReplicationPolicy(), "a", "a.x", False),
        (DefaultReplicationPolicy(), "a.b", "x", False),
        (IdentityReplicationPolicy(), "a", "x", False),
        (IdentityReplicationPolicy(), "a", "heartbeats", True),
        (Constant(), "a", "x", False),
    ],
)
def test_only_a_name_that_leads_back_to_its_source_says_that_mm2_alone_writes_the_topic(
    policy: DefaultReplicationPolicy | Constant, alias: str, topic: str, alone: bool
) -> None:
    if isinstance(policy, DefaultReplicationPolicy):
        policy.configure({"source.cluster.alias": alias})
    assert is_written_by_mm2_alone(policy, alias, topic) is alone


class OwnNames(DefaultReplicationPolicy):
    """Keeps Lockstep's topics under a prefix."""

    def ledger_topic(self, source: str) -> str:
        return f"platform.ledger.{source}"

    def audit_topic(self, source: str) -> str:
        return f"platform.audit.{source}"

    def topics_log_topic(self, source: str) -> str:
        return f"platform.topics.{source}"

    def groups_log_topic(self, source: str) -> str:
        return f"platform.groups.{source}"


def test_policy_can_name_each_of_lockstep_s_own_topics() -> None:
    named = internal_topics(OwnNames(), Flow("a", "b"), "source")
    assert named.ours == ("platform.ledger.a", "platform.audit.a", "platform.topics.a", "platform.groups.a")
    assert named.reverse_ledger == "platform.ledger.b"
