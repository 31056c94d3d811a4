"""Applying: in order, an outcome for every change, and no neighbour pays for another's trouble."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest

from sinks.engine import apply
from sinks.engine.apply import AppliedStep, apply_steps
from sinks.faults import (
    ClusterUnreachable,
    IncrementalUnsupported,
    ItemFault,
    JavaGone,
    RightsMissing,
    WrongCluster,
)
from sinks.kafka.ports.cluster import Alterations, Faults, TopicSpec
from sinks.model.changes import Change, Kind, Outcome
from sinks.model.plan import Plan, make_plan
from streaming.errors import LockstepError
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import FLOW, config_change, overrides_of, put_topic, topic_change, writers_to


class Logging(MemoryCluster):
    """Notes the order of its requests, and answers no more after `answers` of them."""

    def __init__(self, answers: int = 99) -> None:
        super().__init__("b")
        self.requests: list[tuple[str, tuple[str, ...]]] = []
        self.answers = answers

    def _note(self, request: str, topics: Mapping[str, object] | list[str]) -> None:
        if len(self.requests) >= self.answers:
            raise ClusterUnreachable("cluster b: no answer")
        self.requests.append((request, tuple(topics)))

    def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
        self._note("create", specs)
        return super().create_topics(specs)

    def create_partitions(self, counts: Mapping[str, int]) -> Faults:
        self._note("grow", counts)
        return super().create_partitions(counts)

    def alter_topic_configs(self, alterations: Alterations) -> Faults:
        self._note("alter", alterations)
        return super().alter_topic_configs(alterations)

    def delete_topics(self, topics: Collection[str], ids: Mapping[str, str] | None = None) -> Faults:
        self._note("delete", list(topics))
        return super().delete_topics(topics, ids)


def applied(cluster: MemoryCluster, *changes: Change) -> list[Outcome]:
    """The outcomes of a plan of these changes."""
    steps = apply_steps(make_plan(FLOW, changes), writers_to(cluster))
    return [outcome for step in steps for outcome in step.outcomes]


EVERYTHING = (
    topic_change("a.gone", 1, None),
    config_change("a.t", "retention.ms", "1", None),
    config_change("a.t", "retention.bytes", None, "2"),
    config_change("a.u", "retention.ms", None, "3"),
    topic_change("a.t", 1, 3),
    topic_change("a.new", None, 2),
)


def loaded(answers: int = 99) -> Logging:
    """A target that EVERYTHING fits."""
    cluster = Logging()
    put_topic(cluster, "a.t", retention_ms="1")
    put_topic(cluster, "a.u")
    put_topic(cluster, "a.gone")
    cluster.requests.clear()
    cluster.answers = answers
    return cluster


def test_topics_first_then_configs_of_all_topics_at_once_then_deletions() -> None:
    cluster = loaded()
    outcomes = applied(cluster, *EVERYTHING)
    assert [outcome.error for outcome in outcomes] == [None] * len(EVERYTHING)
    assert cluster.requests == [
        ("create", ("a.new",)),
        ("grow", ("a.t",)),
        ("alter", ("a.t", "a.u")),
        ("delete", ("a.gone",)),
    ]
    assert cluster.list_topics() == {"a.t": 3, "a.u": 1, "a.new": 2}
    assert overrides_of(cluster, "a.t") == {"retention.bytes": "2"}


def test_every_change_has_its_outcome_in_the_order_of_the_plan() -> None:
    outcomes = applied(loaded(), *EVERYTHING)
    assert tuple(outcome.change for outcome in outcomes) == make_plan(FLOW, EVERYTHING).changes


def test_exists_already_is_success_and_not_ours() -> None:
    cluster = MemoryCluster("b")
    put_topic(cluster, "a.t")
    ours, theirs = sorted(applied(cluster, topic_change("a.t", None, 1), topic_change("a.new", None, 1)), key=str)
    assert (ours.change.key, ours.already, ours.result) == (("a.new",), False, "applied")
    assert (theirs.change.key, theirs.already, theirs.result) == (("a.t",), True, "applied")


def test_refused_config_does_not_keep_the_topic_away() -> None:
    cluster = MemoryCluster("b", policy=lambda topic, name, value: "no" if name == "retention.ms" else None)
    changes = [topic_change("a.t", None, 3, retention_ms="1"), topic_change("a.u", None, 1, retention_bytes="1")]
    failed = {outcome.change.key for outcome in applied(cluster, *changes) if outcome.error}
    assert failed == {("a.t", "retention.ms")}
    assert cluster.list_topics() == {"a.t": 3, "a.u": 1}
    assert overrides_of(cluster, "a.t") == {}
    assert overrides_of(cluster, "a.u") == {"retention.bytes": "1"}


def test_topic_that_is_refused_without_configs_too_is_a_failure_of_its_own() -> None:
    class NoNew(MemoryCluster):
        def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
            return {name: ItemFault("POLICY_VIOLATION", "three replicas at least") for name in specs}

    (outcome,) = applied(NoNew("b"), topic_change("a.t", None, 1, retention_ms="1"))
    assert str(outcome.error) == "POLICY_VIOLATION: three replicas at least"


@pytest.mark.parametrize("answers", [0, 1, 2, 3])
def test_target_that_stops_answering_leaves_the_rest_for_later_and_is_asked_no_more(answers: int) -> None:
    cluster = loaded(answers)
    outcomes = applied(cluster, *EVERYTHING)
    steps = [outcome.change.kind for outcome in outcomes if outcome.error is None]
    assert steps == [Kind.TOPIC, Kind.TOPIC, *[Kind.TOPIC_CONFIG] * 3][: answers if answers < 3 else 5]
    failed = [outcome.error for outcome in outcomes if outcome.error]
    assert all(error.retriable for error in failed)
    # The outcome of the request without an answer is unknown, and the rest was never sent.
    unknown = [outcome.change.order[0] for outcome in outcomes if outcome.error and outcome.error.unknown]
    assert len(unknown) == (3 if answers == 2 else 1)
    assert failed[0].unknown and len(outcomes) == len(EVERYTHING)
    assert len(cluster.requests) == answers


@pytest.mark.parametrize(
    ("error", "code"),
    [(ClusterUnreachable("cluster b: no answer"), "UNREACHABLE"), (JavaGone("Java has ended"), "JavaGone")],
)
def test_silent_target_is_asked_once_however_large_the_plan(
    monkeypatch: pytest.MonkeyPatch, error: LockstepError, code: str
) -> None:
    monkeypatch.setattr(apply, "CHANGES_IN_A_REQUEST", 1)
    asked: list[str] = []

    class Silent(MemoryCluster):
        def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
            asked.extend(specs)
            raise error

    outcomes = applied(Silent("b"), *[topic_change(f"a.{n}", None, 1) for n in range(5)])
    faults = [outcome.error for outcome in outcomes if outcome.error is not None]
    assert [str(fault) for fault in faults] == [f"{code}: {error}"] * 5
    assert [(fault.retriable, fault.unknown) for fault in faults] == [(True, True), *[(True, False)] * 4]
    assert asked == ["a.0"]


def test_large_plan_goes_out_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "CHANGES_IN_A_REQUEST", 2)
    cluster = loaded()
    plan = make_plan(FLOW, [topic_change(f"a.{n}", None, 1) for n in range(5)])
    steps = apply_steps(plan, writers_to(cluster))
    assert [len(step.outcomes) for step in steps] == [2, 2, 1]
    assert [len(topics) for _, topics in cluster.requests] == [2, 2, 1]


def test_mode_that_the_file_requires_and_the_broker_lacks_stops_the_flow_once_the_other_kinds_are_written() -> None:
    cluster = loaded()
    cluster.incremental = False
    steps: list[AppliedStep] = []
    with pytest.raises(IncrementalUnsupported):
        for step in apply_steps(make_plan(FLOW, EVERYTHING), writers_to(cluster)):
            steps.append(step)
    assert [(step.kind, isinstance(step.stopped, IncrementalUnsupported)) for step in steps] == [
        (Kind.TOPIC, False),
        (Kind.TOPIC, False),
        (Kind.TOPIC_CONFIG, True),
        (Kind.TOPIC, False),
    ]
    assert "a.gone" not in cluster.topics


@pytest.mark.parametrize(
    ("change", "code", "right"),
    [
        (config_change("a.x", "retention.ms", None, "1"), "TOPIC_AUTHORIZATION_FAILED", "ALTER_CONFIGS on TOPIC a.x"),
        (topic_change("a.x", None, 1), "TOPIC_AUTHORIZATION_FAILED", "CREATE on TOPIC a.x"),
        (topic_change("a.x", 1, 2), "TOPIC_AUTHORIZATION_FAILED", "ALTER on TOPIC a.x"),
        (topic_change("a.x", 1, None), "TOPIC_AUTHORIZATION_FAILED", "DELETE on TOPIC a.x"),
        (Change(Kind.GROUP_OFFSET, ("g", "a.x", "0"), None, 5), "GROUP_AUTHORIZATION_FAILED", "READ on GROUP g"),
        (Change(Kind.GROUP_OFFSET, ("g", "a.x", "0"), None, 5), "TOPIC_AUTHORIZATION_FAILED", "READ on TOPIC a.x"),
        (
            Change(Kind.BROKER_CONFIG, ("", "log.retention.ms"), None, "1"),
            "CLUSTER_AUTHORIZATION_FAILED",
            "ALTER_CONFIGS on CLUSTER kafka-cluster",
        ),
    ],
)
def test_denied_change_says_which_right_is_missing_on_what(change: Change, code: str, right: str) -> None:
    def denied(changes: Sequence[Change]) -> list[Outcome]:
        return [Outcome(one, ItemFault(code, "Request(processor=1) is not authorized")) for one in changes]

    plan = Plan(FLOW, (change,))
    (step,) = apply_steps(plan, {change.kind: denied})
    (outcome,) = step.outcomes
    assert outcome.error is not None
    assert outcome.error.message.endswith(f"{right} is missing")
    assert "processor" not in str(outcome.error)


def test_denied_request_fails_the_rest_of_its_kind_and_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "CHANGES_IN_A_REQUEST", 1)
    cluster = MemoryCluster("b", denied={"alter"})
    steps = list(apply_steps(make_plan(FLOW, [topic_change(f"a.{n}", None, 1) for n in range(2)]), writers_to(cluster)))
    assert [type(step.stopped) for step in steps] == [RightsMissing, type(None)]
    assert all(outcome.error and not outcome.error.retriable for step in steps for outcome in step.outcomes)


def test_wrong_cluster_stops_everything() -> None:
    class Another(MemoryCluster):
        def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
            raise WrongCluster("another one")

    with pytest.raises(WrongCluster):
        applied(Another("b"), topic_change("a.t", None, 1))
