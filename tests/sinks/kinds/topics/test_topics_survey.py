"""One look at both clusters: what differs is planned, what could not be seen is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from sinks.every_kind.comparison import Comparison
from sinks.faults import ClusterUnreachable, ItemFault, Observed, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import TopicConfigs
from sinks.kinds.shared_listings import list_both
from sinks.kinds.topics import survey as surveying
from sinks.kinds.topics.survey import compare_topics, survey
from sinks.model.changes import Key, Kind
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import config_change, flow_settings, override, put_topic, topic_change

NOT_ALLOWED = ItemFault("TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed")
LAGGING = ItemFault("UNKNOWN_TOPIC_OR_PART", "not here", retriable=True)


class Faulty(MemoryCluster):
    """Answers some topics' describes with a fault."""

    def __init__(self, alias: str, faults: dict[str, ItemFault]) -> None:
        super().__init__(alias, f"id-of-{alias}")
        self.faults = faults

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        seen = super().describe_topic_configs([topic for topic in topics if topic not in self.faults])
        faults = {topic: self.faults[topic] for topic in topics if topic in self.faults}
        return Observed(seen.items, {**seen.errors, **faults})


def clusters(
    source_faults: dict[str, ItemFault] | None = None, target_faults: dict[str, ItemFault] | None = None
) -> tuple[Faulty, Faulty]:
    """x: in step. y: another value. new: missing on the target. grow: too few partitions."""
    source, target = Faulty("a", source_faults or {}), Faulty("b", target_faults or {})
    for topic, mine, theirs in (("x", "1", "1"), ("y", "2", "3")):
        put_topic(source, topic, retention_ms=mine)
        put_topic(target, f"a.{topic}", retention_ms=theirs)
    put_topic(source, "new", 2, retention_ms="4", min_insync_replicas="2")
    put_topic(source, "grow", 4)
    put_topic(target, "a.grow", 1)
    return source, target


def surveyed(
    source: MemoryCluster,
    target: MemoryCluster,
    settings: FlowSettings | None = None,
    *,
    only: Collection[str] | None = None,
    owned: Collection[Key] = (),
    deletions: Mapping[str, str] | None = None,
    paused: Collection[Kind] = (),
) -> Comparison:
    """A survey of both clusters as they are now."""
    settings = settings or flow_settings()
    listed = list_both(settings, source, target)
    seen = survey(settings, source, target, listed, only=only, paused=paused)
    seen.surplus = deletions or {}
    return compare_topics(settings, listed, seen, owned=owned)


CREATED = topic_change("a.new", None, 2, retention_ms="4")
GROWN = topic_change("a.grow", 1, 4)
CHANGED = config_change("a.y", "retention.ms", "3", "2")


def test_everything_that_differs_is_planned_and_nothing_is_written() -> None:
    source, target = clusters()
    seen = surveyed(source, target)
    assert seen.plan.changes == (CREATED, GROWN, CHANGED)
    assert seen.covered is not None and set(seen.covered) == {"x", "y", "new", "grow"}
    assert (source.writes, target.writes) == (0, 0)


def test_new_topic_takes_the_overrides_that_are_replicated() -> None:
    (created, *_) = surveyed(*clusters()).plan.changes
    assert created.as_json()["after"] == {
        "partitions": 2,
        "replication_factor": 1,
        "configs": {"retention.ms": "4"},
    }


def test_only_asked_topics_are_compared_but_all_missing_ones_are_made() -> None:
    seen = surveyed(*clusters(), only=["x"])
    assert seen.plan.changes == (CREATED, GROWN)
    assert seen.covered is not None and set(seen.covered) == {"x", "new"}


def test_topic_asked_for_that_nobody_replicates_is_not_looked_at() -> None:
    assert surveyed(*clusters(), only=["nobody", "a.x"]).covered == {"new": "a.new"}


@pytest.mark.parametrize(
    ("kind", "left"), [(Kind.TOPIC, (CHANGED,)), (Kind.TOPIC_CONFIG, (CREATED, GROWN))], ids=["topic", "topic-config"]
)
def test_paused_or_disabled_kind_is_not_planned(kind: Kind, left: tuple[object, ...]) -> None:
    assert surveyed(*clusters(), paused={kind}).plan.changes == left
    settings = flow_settings(enabled=set(Kind) - {kind})
    assert surveyed(*clusters(), settings).plan.changes == left


@pytest.mark.parametrize("side", ["source", "target"])
def test_topic_that_may_not_be_described_is_named_and_not_planned(side: str) -> None:
    on_source = side == "source"
    source, target = clusters({"y": NOT_ALLOWED} if on_source else {}, {} if on_source else {"a.y": NOT_ALLOWED})
    seen = surveyed(source, target)
    assert seen.plan.changes == (CREATED, GROWN)
    (error,) = seen.plan.errors
    place = "y on a" if on_source else "a.y on b"
    name = place.partition(" ")[0]
    assert error.reason == f"{place}: TOPIC_AUTHORIZATION_FAILED: DESCRIBE_CONFIGS on TOPIC {name} is missing"
    assert seen.unobserved == {"y": error}


def test_missing_topic_whose_configs_may_not_be_seen_is_not_made() -> None:
    seen = surveyed(*clusters({"new": NOT_ALLOWED}))
    assert seen.plan.changes == (GROWN, CHANGED)


@pytest.mark.parametrize("side", ["source", "target"])
def test_topic_that_vanished_or_is_not_everywhere_yet_is_looked_at_again(side: str) -> None:
    on_source = side == "source"
    source, target = clusters({"y": LAGGING} if on_source else {}, {} if on_source else {"a.y": LAGGING})
    seen = surveyed(source, target)
    assert seen.plan.changes == (CREATED, GROWN)
    assert seen.again == {"y"}
    assert seen.plan.errors == ()


def test_flow_that_may_describe_nothing_at_all_is_stopped_with_the_right_to_grant() -> None:
    source, target = clusters(dict.fromkeys(("x", "y", "new", "grow"), NOT_ALLOWED))
    with pytest.raises(RightsMissing, match=r"a->b: no topic's configs may be read.*DESCRIBE_CONFIGS on the topics"):
        surveyed(source, target)


def test_one_denied_topic_looked_at_alone_does_not_stop_the_flow() -> None:
    source, target = clusters({"y": NOT_ALLOWED})
    put_topic(target, "a.new", 2)
    seen = surveyed(source, target, only=["y"])
    assert [error.reason[:6] for error in seen.plan.errors] == ["y on a"]


@pytest.mark.parametrize("silent", ["source", "target"])
def test_silent_cluster_plans_nothing(silent: str) -> None:
    source, target = clusters()
    (source if silent == "source" else target).reachable = False
    with pytest.raises(ClusterUnreachable):
        surveyed(source, target)


def test_topics_are_deleted_where_that_was_confirmed_and_the_limit_counts_ours_that_exist() -> None:
    source, target = clusters()
    put_topic(target, "a.old")
    owned = {("a.old",), ("a.x",), ("a.never-there",)}
    plan = surveyed(source, target, owned=owned, deletions={"a.old": "id-1"}).plan
    assert plan.changes == (CREATED, GROWN, CHANGED, topic_change("a.old", 1, None))
    assert plan.existing == {Kind.TOPIC: 2}


def test_what_cannot_be_copied_is_counted() -> None:
    class Secretive(MemoryCluster):
        def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
            seen = super().describe_topic_configs(topics)
            secret = {"secret": override(None, sensitive=True)}
            return Observed({topic: {**configs, **secret} for topic, configs in seen.items.items()})

    source, target = Secretive("a"), MemoryCluster("b")
    put_topic(source, "x", retention_ms="1")
    put_topic(target, "a.x", retention_ms="1")
    seen = surveyed(source, target)
    assert seen.plan.skipped == {"sensitive configs": 1}
    assert seen.plan.changes == ()


def test_topics_with_too_long_names_are_refused_and_the_others_planned() -> None:
    source, target = clusters()
    put_topic(source, "x" * 248)
    seen = surveyed(source, target)
    assert [refusal.key for refusal in seen.plan.refused] == [("a." + "x" * 248,)]
    assert seen.plan.changes == (CREATED, GROWN, CHANGED)


def test_many_topics_are_described_in_several_requests_and_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "TOPICS_IN_A_REQUEST", 3)
    source, target = clusters()
    settings, progress = flow_settings(), []
    listed = list_both(settings, source, target)
    survey(settings, source, target, listed, progress=lambda done, total: progress.append((done, total)))
    assert progress == [(3, 4), (4, 4)]


def test_default_that_differs_between_the_brokers_is_noted_and_nothing_is_planned_for_it() -> None:
    source, target = MemoryCluster("a"), MemoryCluster("b", defaults={"retention.ms": "3600000"})
    put_topic(source, "x")
    put_topic(target, "a.x")
    plan = surveyed(source, target).plan
    assert plan.changes == ()
    (note,) = plan.notes
    assert note.startswith("retention.ms of a.x: both at their default, but the defaults differ: 604800000 on a")
