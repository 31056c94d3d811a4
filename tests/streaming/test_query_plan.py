"""What a query is made of: its pattern, its checkpoint."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from streaming.flow import Flow
from streaming.mm2.records import RecordKind
from streaming.mm2.topic_roles import TopicRole
from streaming.query_plan import ClusterSource, QueryPlan

HEARTBEATS = {"heartbeats": TopicRole(RecordKind.HEARTBEAT)}


def source(alias: str, topics: dict[str, TopicRole] | None = None) -> ClusterSource:
    return ClusterSource(alias, {"bootstrap.servers": "h:1", "sasl.jaas.config": "pass"}, topics or HEARTBEATS)


def plan(*sources: ClusterSource, directory: str = "checkpoints") -> QueryPlan:
    return QueryPlan("b", sources, trigger_interval=1.0, checkpoint_dir=Path(directory))


def test_topics_are_quoted_so_that_a_dot_is_a_dot() -> None:
    topics = {"b.heartbeats": TopicRole(RecordKind.HEARTBEAT), "a.heartbeats": TopicRole(RecordKind.HEARTBEAT)}
    assert source("b", topics).pattern == r"^(?:\Qa.heartbeats\E|\Qb.heartbeats\E)$"


def test_the_query_is_called_after_its_target() -> None:
    assert plan(source("a")).name == "lockstep-b"


def test_the_jobs_of_a_batch_say_which_flows_they_are_about() -> None:
    topics = {
        "heartbeats": TopicRole(RecordKind.HEARTBEAT),
        "c.heartbeats": TopicRole(RecordKind.HEARTBEAT, Flow("c", "b")),
        "a.heartbeats": TopicRole(RecordKind.HEARTBEAT, Flow("a", "b")),
    }
    assert plan(source("b", topics)).description(7) == "lockstep-b, batch 7: what MM2 says of a->b, c->b"
    assert plan().description(7) == "lockstep-b, batch 7: what MM2 says of no cluster that answers"


def test_the_same_sources_find_their_checkpoint_again() -> None:
    assert plan(source("a"), source("b")).checkpoint == plan(source("a"), source("b")).checkpoint


def test_other_sources_or_topics_never_meet_an_old_checkpoint() -> None:
    whole = plan(source("a"), source("b"))
    other_topics = {"heartbeats": HEARTBEATS["heartbeats"], "x.heartbeats": HEARTBEATS["heartbeats"]}
    others = [
        whole.without("a"),
        plan(source("a"), source("c")),
        plan(source("a"), source("b", other_topics)),
        replace(whole, target="c"),
    ]
    assert len({whole.checkpoint, *(other.checkpoint for other in others)}) == 1 + len(others)


def test_a_checkpoint_stays_inside_its_directory_whatever_the_alias() -> None:
    path = replace(plan(source("a")), target="../b/../../c").checkpoint
    assert path.parent.parent == Path("checkpoints")
    assert re.fullmatch("[0-9a-f]{12}", path.name)


def test_a_plan_without_any_cluster_is_the_clock_alone() -> None:
    assert plan(source("a")).without("a").sources == ()


def test_sources_out_of_order_are_refused_because_spark_finds_offsets_by_place() -> None:
    with pytest.raises(ValueError, match="sorted by alias, each once"):
        plan(source("b"), source("a"))
    with pytest.raises(ValueError, match="sorted by alias, each once"):
        plan(source("a"), source("a"))


def test_a_trigger_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lockstep\.trigger\.interval"):
        replace(plan(source("a")), trigger_interval=0.0)


def test_a_source_needs_bootstrap_servers_and_topics() -> None:
    with pytest.raises(ValueError, match=r"a\.bootstrap\.servers is missing"):
        ClusterSource("a", {}, HEARTBEATS)
    with pytest.raises(ValueError, match="no topic to read on a"):
        ClusterSource("a", {"bootstrap.servers": "h:1"}, {})


def test_client_properties_do_not_appear_when_a_source_is_printed() -> None:
    assert "pass" not in repr(source("a"))
