"""Whether a flow could fail over: each question by itself."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from app.failover_facts import red_flags
from sinks.failover.lost_before_copying import Lost
from sinks.failover.open_transactions import Undecided
from sinks.failover.readiness import (
    HARMLESS_TO_READERS,
    QUESTIONS,
    Check,
    CheckResult,
    ReadinessAnswer,
    Takeover,
    readiness,
)
from sinks.failover.readiness_facts import FailoverLoss, GroupsUnseen, InStep, ReadinessFacts, TopicLoss, not_begun
from sinks.failover.record_matching import Behind
from sinks.failover.uncopied_records import Arrival, ArrivalsSeen
from sinks.flow_settings import FailoverRules
from sinks.kafka.ports.cluster import ConfigEntry, Origin, Replicas
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.verdicts import Verdict
from sinks.model.changes import Kind
from sinks.verify.partition_verdicts import Difference
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import NOON

WELL = ReadinessFacts(
    rules=FailoverRules(),
    heartbeat_age=1.0,
    in_step=InStep({Kind.TOPIC: 0, Kind.ACL: 0, Kind.GROUP_OFFSET: 0}),
    loss=FailoverLoss(0, True),
    seen_at=NOON,
    remote=("a.x",),
    replicas=Replicas(3, {"a.x": 3}, {"a.x": 3}),
    wanted_in_sync={"a.x": 2},
    undecided={"a": Undecided(), "b": Undecided()},
)
PARTITION = TopicPartition("a.x", 0)


def seen(**facts: Any) -> ReadinessFacts:
    """All is well but this; what `InStep` has is given by itself."""
    of_kinds = {one.name: facts.pop(one.name) for one in fields(InStep) if one.name in facts}
    return replace(WELL, in_step=replace(WELL.in_step, **of_kinds), **facts)


def check(name: str, **facts: Any) -> Check:
    """The check of this name, where only this is not well."""
    (found,) = [one for one in readiness(seen(**facts)).checks if one.name == name]
    return found


def test_a_flow_with_which_all_is_well_is_ready() -> None:
    found = readiness(WELL)
    assert (found.ready, found.cutover.answer, found.failover.answer) == (True, *[ReadinessAnswer.YES] * 2)
    assert {one.result for one in found.checks} == {CheckResult.OK}
    assert not any(one.remedy for one in found.checks)


@pytest.mark.parametrize("takeover", Takeover)
@pytest.mark.parametrize("result", [CheckResult.FAILED, CheckResult.UNKNOWN])
def test_what_a_question_decides_is_what_its_failure_stops(takeover: Takeover, result: CheckResult) -> None:
    for question in QUESTIONS:
        bad = Check("x", result, "no", decides=question.decides)
        assert bad.stops(takeover) is (takeover in question.decides)
        assert not replace(bad, result=CheckResult.WARNING).stops(takeover)


def test_whatever_stops_a_failover_stops_a_cutover() -> None:
    assert all(Takeover.CUTOVER in row.decides for row in QUESTIONS if Takeover.FAILOVER in row.decides)


def test_differences_that_harm_no_reader_are_differences() -> None:
    assert {Difference.DUPLICATE, Difference.EXTRA} == HARMLESS_TO_READERS


@pytest.mark.parametrize(("drift", "words"), [(2, "`lockstep apply` writes it"), (1, "exclude it in the file")])
def test_apply_is_no_remedy_for_a_kind_whose_differences_are_all_refused(drift: int, words: str) -> None:
    assert words in check("in step: acl", drift={Kind.ACL: drift}, refused={Kind.ACL: 1}).remedy


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"replicas": Replicas(3, {}, {"a.x": 3}, offline=frozenset({TopicPartition("a.x", 0)}))}, "offline"),
        ({"drift": {Kind.ACL: 1}}, "acl: 1 difference"),
        ({"verdicts": {"TOO_OLD": 1}}, "1 may skip records"),
    ],
)
def test_what_the_target_lacks_is_a_reason_against_a_failover_as_well(facts: dict[str, Any], words: str) -> None:
    found = readiness(seen(**facts))
    assert (found.cutover.answer, found.failover.answer) == (ReadinessAnswer.NO, ReadinessAnswer.NO)
    assert words in found.failover.headline


def test_mm2_that_does_not_copy_is_no_reason_against_a_failover_which_says_what_it_loses() -> None:
    found = readiness(seen(heartbeat_age=94.0, loss=FailoverLoss(200, False), source="a"), NOON)
    assert (found.cutover.answer, found.failover.answer) == (ReadinessAnswer.NO, ReadinessAnswer.YES)
    assert "at most 200 records that a had 0 s ago" in found.failover.headline


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("heartbeat", {"heartbeat_age": None}),
        ("heartbeat", {"heartbeat_age": 31.0}),
        ("records not copied", {"losses": {"x": TopicLoss(1, 61.0)}}),
        ("records whose loss is unknown", {"untold": {PARTITION: "gone"}}),
        ("in step: acl", {"drift": {Kind.ACL: 1}}),
        ("in step: topic", {"drift": {Kind.TOPIC: 0}, "faulted": {Kind.TOPIC: "denied"}}),
        ("groups", {"verdicts": {Verdict.SYNCED: 4, Verdict.TARGET_AHEAD: 1}}),
        ("groups", {"verdicts": {Verdict.SYNCED: 4, Verdict.TOO_OLD: 1}}),
        ("groups", {"verdicts": {Verdict.NO_OFFSET_SYNC: 1}}),
        ("groups", {"verdicts": {Verdict.TOPIC_MISSING: 1}}),
        ("groups", {"verdicts": {Verdict.ERROR: 1}}),
        ("groups", {"drift": {}, "unsynced": 1}),
        ("groups", {"drift": {}, "unsynced": GroupsUnseen("denied", denied=True)}),
        ("groups", {"drift": {}, "unsynced": GroupsUnseen("a gives no answer")}),
        ("groups", {"faulted": {Kind.GROUP_OFFSET: "not compared yet"}}),
        ("users without a credential", {"refused": {Kind.SCRAM_USER: 2}}),
        ("records lost before copying", {"lost": {PARTITION: Lost(5, 10, 1_000)}}),
        ("partition counts", {"partitions": {"a.x": (3, 2)}}),
        ("offline on the target", {"replicas": Replicas(3, {}, {"a.x": 3}, offline=frozenset({PARTITION}))}),
        ("replicas in sync for min.insync.replicas", {"replicas": Replicas(3, {"a.x": 3}, {"a.x": 1})}),
        ("MM2's ACL sync", {"rules": FailoverRules(copier_copies_acls=True)}),
        ("topics left out", {"forgotten": ["orders"]}),
        ("topics that clients write", {"idle": True}),
        ("topics without a copy", {"without_copy": ["b has no copy of own-internal"]}),
        ("rights of later steps", {"missing_rights": ["ALTER on the cluster"]}),
        ("rights to count records", {"missing_reads": ["READ on * of a"]}),
        ("last stable offsets on a", {"undecided": {"a": Undecided(unknown={PARTITION: "no leader"})}}),
    ],
)
def test_what_would_make_a_failover_fail_makes_the_flow_not_ready_and_has_a_remedy(
    name: str, facts: dict[str, Any]
) -> None:
    found = check(name, **facts)
    assert found.result in (CheckResult.FAILED, CheckResult.UNKNOWN)
    assert found.remedy
    assert readiness(seen(**facts)).ready is False


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("groups", {"verdicts": {Verdict.SYNCED: 4, Verdict.GROUP_ACTIVE: 1}}),
        (
            "under-replicated on the target",
            {"replicas": Replicas(3, {}, {"a.x": 2}, under_replicated=frozenset({PARTITION}))},
        ),
        ("replication factor", {"replicas": Replicas(3, {"a.x": 1}, {"a.x": 3})}),
        ("open transactions on b", {"undecided": {"b": Undecided(frozenset({PARTITION}))}}),
        ("fence", {"authorizer": False}),
        ("rights of later steps", {"missing_rights": ["ALTER on the cluster"], "by_job": True}),
        ("rights to count records", {"missing_reads": ["READ on * of a"], "by_job": True}),
        ("not carried over", {"flags": ["tiered storage"]}),
    ],
)
def test_what_only_costs_something_is_a_warning_and_does_not_stop_a_failover(name: str, facts: dict[str, Any]) -> None:
    assert check(name, **facts).result is CheckResult.WARNING
    assert readiness(seen(**facts)).ready


def test_records_on_their_way_are_named_and_do_no_harm_while_they_are_young() -> None:
    found = check("records not copied", losses={"x": TopicLoss(7, 0.5)})
    assert (found.result, found.figure) == (CheckResult.OK, "7, the oldest 0.5 s old: x 7")


def test_partitions_that_mm2_has_not_begun_are_named_with_the_key_that_says_when_it_looks_for_them() -> None:
    late = {"losses": {"x": TopicLoss(1, 61.0)}}
    assert check("records not copied", **late).remedy.startswith("MM2 lags")
    remedy = check("records not copied", **late, not_begun=[TopicPartition("x", 2)]).remedy
    assert remedy.startswith("MM2 has copied nothing of x-2 yet")
    assert "every refresh.topics.interval.seconds" in remedy


def test_a_partition_has_not_begun_where_it_misses_records_and_its_copy_never_had_one() -> None:
    seen_logs = {0: LogRange(0, 0), 1: LogRange(0, 0), 2: LogRange(5, 5), 3: LogRange(0, 3)}
    pairs = {TopicPartition("x", number): TopicPartition("a.x", number) for number in seen_logs}
    late = {where: Arrival(where, Behind(7, None, True)) for where in pairs}
    late[TopicPartition("x", 1)] = Arrival(TopicPartition("x", 1), Behind(0, None, True))
    copies = {TopicPartition("a.x", number): log for number, log in seen_logs.items()}
    assert not_begun(ArrivalsSeen(late, {}, copies, 0, {}), pairs) == [TopicPartition("x", 0)]


def test_a_loss_that_is_not_certain_is_said_to_be_the_most_that_it_can_be() -> None:
    assert check("records not copied", losses={"x": TopicLoss(7, 0.5, exact=False)}).figure.startswith("at most 7")


def test_without_the_right_to_read_no_figure_of_missing_records_is_given() -> None:
    found = readiness(seen(missing_reads=["READ on * of a"], untold={PARTITION: "denied"}, by_job=True))
    assert found.ready
    assert "records not copied" not in {one.name for one in found.checks}
    assert next(one for one in found.checks if "rights to count" in one.name).figure.startswith(
        "how many records are missing is unknown"
    )


def test_a_loss_that_is_known_counts_though_some_topics_may_not_be_read() -> None:
    known = seen(missing_reads=["READ on * of a"], losses={"x": TopicLoss(1, 61.0)}, by_job=True)
    assert readiness(known).ready is False


def test_what_belongs_to_one_cluster_alone_is_found_by_names_and_configs() -> None:
    tiered = {"x": {"remote.storage.enable": ConfigEntry("true", Origin.TOPIC)}}
    topics = ["app-store-changelog", "connect-offsets", "_schemas", "x", "connections"]
    found = list(red_flags(topics, tiered))
    assert [text.split(":")[0] for text in found] == [
        "Kafka Streams",
        "Kafka Connect",
        "a schema registry keeps its schemas in _schemas",
        "tiered storage",
    ]


def test_where_nobody_knows_how_many_replicas_must_be_in_sync_nobody_knows_whether_they_are() -> None:
    found = check("replicas in sync for min.insync.replicas", wanted_in_sync={})
    assert found.result is CheckResult.UNKNOWN
    assert "a.x" in found.figure


def test_groups_that_would_skip_are_counted_against_their_limit() -> None:
    verdicts = {Verdict.SYNCED: 4, Verdict.TOO_OLD: 2, Verdict.TARGET_AHEAD: 1}
    found = check("groups", verdicts=verdicts)
    assert (found.result, found.limit) == (CheckResult.FAILED, "0 that may skip records")
    assert found.figure == "3 may skip records: 2 TOO_OLD, 1 TARGET_AHEAD"
    accepted = check("groups", verdicts=verdicts, rules=FailoverRules(max_groups_skipping=3))
    assert (accepted.result, accepted.limit) == (CheckResult.WARNING, "3 that may skip records")


def test_groups_whose_offsets_are_not_synced_are_looked_for() -> None:
    unsynced = check("groups", drift={}, unsynced=2)
    assert unsynced.figure == "2 partitions of groups without an offset on the target: offsets are not synced"
    assert "sync.group.offsets.enabled" in unsynced.remedy
    assert check("groups", drift={}).result is CheckResult.OK
    denied = GroupsUnseen("DESCRIBE on GROUP g is missing", denied=True)
    assert check("groups", drift={}, unsynced=denied, by_job=True).result is CheckResult.WARNING


@pytest.mark.parametrize("by_job", [False, True])
def test_groups_of_a_cluster_without_an_answer_are_unknown_with_the_reason_and_the_way_on(by_job: bool) -> None:
    found = check("groups", drift={}, unsynced=GroupsUnseen("a gives no answer"), by_job=by_job)
    assert (found.result, found.figure) == (CheckResult.UNKNOWN, "not known: a gives no answer")
    assert "`lockstep failover --accept-loss`" in found.remedy


def test_what_is_not_known_of_records_that_retention_took_is_never_green() -> None:
    unknown = check("records lost before copying", lost={PARTITION: Lost(0, 10, 1_000, unknown=True)})
    assert (unknown.result, unknown.figure) == (CheckResult.UNKNOWN, "0; a.x: unknown for 1 partition")
    compacted = check("records lost before copying", lost={PARTITION: Lost(0, 10, 1_000, compacted=True)})
    assert (compacted.result, compacted.figure) == (CheckResult.WARNING, "0; a.x: unknown for 1 partition")
    unwatched = check("records lost before copying", unwatched=7)
    assert unwatched.result is CheckResult.OK
    assert unwatched.figure == "0; unknown for 7 partitions that no job has watched yet"
