"""What a query is made of: its pattern, its checkpoint."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from streaming.flow import Flow
from streaming.mm2.internal_topic_names import TopicOn, TopicRole
from streaming.mm2.records import RecordKind
from streaming.query_plan import ClusterSource, FlowTopics, QueryPlan, sources_of

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
        plan(source("b")),
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
    assert plan().sources == ()


def test_sources_out_of_order_are_refused_because_spark_finds_offsets_by_place() -> None:
    with pytest.raises(ValueError, match="sorted by alias and pattern"):
        plan(source("b"), source("a"))


def test_a_topic_is_read_by_one_source_alone() -> None:
    with pytest.raises(ValueError, match="would read a topic twice"):
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


AB, CB = Flow("a", "b"), Flow("c", "b")
GENERAL, OWN = {"bootstrap.servers": "h:1"}, {"bootstrap.servers": "h:1", "fetch.max.bytes": "5"}


def flow_topics(flow: Flow, on_target: dict[str, str]) -> FlowTopics:
    roles = {
        TopicOn(flow.source, "syncs"): TopicRole(RecordKind.OFFSET_SYNC, flow),
        TopicOn("b", f"{flow.source}.heartbeats"): TopicRole(RecordKind.HEARTBEAT, flow),
        TopicOn("b", "heartbeats"): TopicRole(RecordKind.HEARTBEAT),
    }
    return FlowTopics(flow, roles, {flow.source: GENERAL, "b": on_target})


def shape(sources: tuple[ClusterSource, ...]) -> list[tuple[str, list[str], bool]]:
    """Alias, topics, and whether a flow's own settings are in use."""
    return [(source.alias, sorted(source.topics), source.options == OWN) for source in sources]


def test_flows_with_the_same_settings_of_a_cluster_share_a_source() -> None:
    sources = sources_of([flow_topics(AB, GENERAL), flow_topics(CB, dict(GENERAL))])
    assert shape(sources) == [
        ("a", ["syncs"], False),
        ("b", ["a.heartbeats", "c.heartbeats", "heartbeats"], False),
        ("c", ["syncs"], False),
    ]


def test_a_flow_with_settings_of_its_own_reads_the_cluster_with_them_and_no_topic_is_read_twice() -> None:
    sources = sources_of([flow_topics(AB, GENERAL), flow_topics(CB, OWN)])
    assert shape(sources)[1:3] == [("b", ["a.heartbeats", "heartbeats"], False), ("b", ["c.heartbeats"], True)]
    assert plan(*sources).topics == plan(*sources_of([flow_topics(AB, GENERAL), flow_topics(CB, GENERAL)])).topics


def test_the_only_flow_finds_its_checkpoint_again_when_it_gets_settings_of_its_own() -> None:
    general, own = (plan(*sources_of([flow_topics(AB, options)])) for options in (GENERAL, OWN))
    assert general.checkpoint == own.checkpoint
    assert general != own
