"""A planned failover over clusters in memory: fence, drain, promote, and what disturbs it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace
from itertools import cycle

import pytest

from sinks.failover.commands import cutover, drain, fence, promote, unfence
from sinks.failover.fence_notes import OtherLedgers
from sinks.failover.fence_proof import FenceBroken
from sinks.failover.fencing import NoAuthorizer
from sinks.failover.open_transactions import NotDrained
from sinks.flow_settings import AclRules
from sinks.ledger.failover_record import Begun, Command, FailoverRecord, NotNow, State, Step
from sinks.ledger.fence_acls import fence_acls
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_filters import DefaultTopicFilter
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import NOON, put_topic
from tests.sinks.failover.scenes import Died, Stage, look, mortal, stage
from tests.sinks.kinds.acls.acl_builders import acl

FENCE = set(fence_acls(["x", "y"]))


def test_a_cutover_ends_with_everything_on_the_target_and_the_flow_ended() -> None:
    built = stage()
    built.producers.append(lambda: built.write("x"))
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.world.source_acls.bindings == FENCE
    assert [len(log.records) for log in built.here.logs.values()] == [
        len(log.records) for log in built.there.logs.values()
    ]
    assert built.record().has_ended


def test_a_cutover_that_is_done_is_done_once() -> None:
    built = stage()
    cutover(built.scene())
    events = len(built.states())
    assert (cutover(built.scene()).state, promote(built.scene()).state) == (State.PROMOTED, State.PROMOTED)
    assert len(built.states()) == events


def test_a_cutover_of_a_promoted_flow_says_since_when_and_what_another_one_needs_first() -> None:
    built = stage()
    cutover(built.scene())
    for command in (cutover, promote):
        built.said.clear()
        command(built.scene())
        assert len(built.said) == 1
        assert built.record().begun.at in built.said[0]
        assert "a->b must mirror again first: `lockstep failback`" in built.said[0]


def test_every_step_is_an_audit_event_with_the_state_that_it_led_to() -> None:
    built = stage()
    cutover(built.scene())
    assert built.states() == [
        ("begin", "MIRRORING"),
        ("DENY_WRITES", "MIRRORING"),
        ("PROVE_FENCE", "FENCED"),
        ("begin", "FENCED"),
        ("AWAIT_RECORDS", "FENCED"),
        ("LAST_OFFSETS", "FENCED"),
        ("KEEP_DIVERGENCE", "DRAINED"),
        ("begin", "DRAINED"),
        ("KEEP_DIVERGENCE", "DRAINED"),
        ("LAST_OFFSETS", "DRAINED"),
        ("GRANT_WRITES", "PROMOTED"),
    ]


def test_a_topic_of_which_the_source_lists_no_partition_is_not_taken_as_copied() -> None:
    built = stage()
    built.world.source.topics["x"].partitions = 0
    with pytest.raises(LockstepError, match="a lists no partition of x"):
        cutover(built.scene())
    assert built.record().state is State.MIRRORING


def test_a_super_user_who_ignores_the_fence_breaks_it_and_it_is_taken_back() -> None:
    built = stage()
    built.producers.append(lambda: built.write("y", super_user=True))
    with pytest.raises(FenceBroken, match=r"writes to y.*taken back"):
        cutover(built.scene())
    assert built.world.source_acls.bindings == set()
    assert (built.record().state, built.ledger().fences()) == (State.MIRRORING, set())


def test_markers_of_transactions_do_not_break_a_fence() -> None:
    built = stage()
    log = next(iter(built.here.logs.values()))
    built.producers.append(lambda: log.skip() and None)
    assert fence(built.scene()).state is State.FENCED


def test_what_was_under_way_when_the_fence_came_does_not_break_it() -> None:
    built = stage()
    built.producers.append(lambda: built.write("x", super_user=built.now < 4))
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.now >= 13


def test_a_source_without_authorizer_is_not_fenced_and_it_is_said_what_else_to_do() -> None:
    built = stage()
    built.world.source_acls.authorizer = False
    with pytest.raises(NoAuthorizer, match="--without-fence"):
        fence(built.scene())
    assert built.record().state is State.MIRRORING
    assert cutover(built.scene(), without_fence=True).state is State.PROMOTED


def test_without_a_fence_a_producer_that_goes_on_writing_stops_the_cutover() -> None:
    built = stage()
    built.world.source_acls.authorizer = False
    built.producers.append(lambda: built.write("x"))
    with pytest.raises(FenceBroken):
        cutover(built.scene(), without_fence=True)


def test_records_that_mm2_does_not_copy_keep_the_flow_from_being_promoted() -> None:
    built = stage()
    built.mirrors = False
    built.write("x", 1, 3)
    with pytest.raises(NotDrained, match="3 records of x"):
        cutover(built.scene())
    assert built.record().state is State.FENCED
    built.mirrors = True
    assert cutover(built.scene()).state is State.PROMOTED


def test_topics_that_are_accepted_by_name_may_miss_records() -> None:
    built = stage()
    built.mirrors = False
    built.write("x", 1, 3)
    built.choices = replace(built.choices, accepted=frozenset({"x"}))
    assert cutover(built.scene()).state is State.PROMOTED


def test_a_deny_that_somebody_else_made_survives_unfence() -> None:
    built = stage()
    (theirs,) = fence_acls(["x"])
    built.world.source_acls.bindings.add(theirs)
    fence(built.scene())
    assert built.world.source_acls.bindings == FENCE
    assert unfence(built.scene()).state is State.MIRRORING
    assert built.world.source_acls.bindings == {theirs}


def test_promote_insists_that_every_topic_is_fenced() -> None:
    built = stage()
    fence(built.scene(), ("x",))
    drain(built.scene())
    with pytest.raises(NotNow, match="not fenced: y"):
        promote(built.scene())


def test_a_second_fence_adds_its_topics() -> None:
    built = stage()
    fence(built.scene(), ("x",))
    assert fence(built.scene(), ("y",)).topics == ("x", "y")
    assert cutover(built.scene()).state is State.PROMOTED


def test_a_topic_that_is_not_replicated_cannot_be_fenced() -> None:
    built = stage()
    with pytest.raises(LockstepError, match="nothere"):
        fence(built.scene(), ("nothere",))
    assert built.record().state is State.MIRRORING


def test_of_two_people_one_waits_while_the_others_process_lives() -> None:
    built = stage()
    scene = built.scene()
    scene.journal.begin(Command.FENCE)
    other = Begun("you", "", "", "you@there:2")
    with pytest.raises(NotNow, match="me@here:1 is running `fence`"):
        cutover(built.scene(other))
    assert cutover(built.scene(other, is_alive=lambda claim: False)).state is State.PROMOTED


def test_who_was_taken_over_stops_before_the_next_step() -> None:
    built = stage()
    scene = built.scene()
    scene.journal.begin(Command.FENCE)
    fence(built.scene(Begun("you", "", "", "you@there:2"), is_alive=lambda claim: False))
    with pytest.raises(NotNow, match="another failover command works on this flow now, by you"):
        scene.journal.run(scene.steps())


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [Step.DENY_WRITES, Step.PROVE_FENCE, Step.AWAIT_RECORDS, Step.KEEP_DIVERGENCE,
                                Step.LAST_OFFSETS, Step.GRANT_WRITES])  # fmt: skip
def test_a_cutover_that_dies_at_any_step_and_is_run_again_ends_the_same(at: Step, after: bool) -> None:
    built = stage()
    built.producers.append(lambda: built.write("x"))

    with pytest.raises(Died):
        cutover(mortal(built.scene(), at, after=after))
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.world.source_acls.bindings == FENCE
    assert built.record().doing is None


def test_allow_write_that_was_held_back_is_granted_by_promote_and_is_ours() -> None:
    built = stage(acls=AclRules(stage_writes=True))
    staged = acl("ALLOW WRITE User:app TOPIC a.x")
    built.ledger().put({(Entry.STAGED, staged.key): ""})
    cutover(built.scene())
    assert built.world.target_acls.bindings == {staged}
    assert built.ledger().owned(Kind.ACL) == {staged.key}
    assert built.ledger().values(Entry.STAGED) == {}


def test_heartbeats_and_copies_from_other_clusters_are_not_fenced() -> None:
    built = stage()
    for topic in ("heartbeats", "b.z", "c.z"):
        put_topic(built.world.source, topic)
    scene = built.scene()
    assert scene.topics(scene.listed()) == ["c.z", "x", "y"]


def test_ledgers_of_other_flows_from_the_source_are_told_of_a_fence_and_of_its_end() -> None:
    built = stage()
    other = Ledger("lockstep-ledger.a.other", built.world.target, built.world.target, 1, lambda: NOON)
    scene = replace(built.scene(), other_ledgers=lambda: nullcontext(OtherLedgers([other])))
    fence(scene)
    assert other.fences() == {acl.key for acl in FENCE}
    unfence(replace(built.scene(), other_ledgers=lambda: nullcontext(OtherLedgers([other]))))
    assert other.fences() == set()


def test_a_topic_that_came_after_the_fence_keeps_the_flow_from_being_promoted_until_it_is_fenced() -> None:
    built = stage()
    fence(built.scene())
    drain(built.scene())
    put_topic(built.world.source, "new")
    built.here.logs[TopicPartition("new", 0)] = MemoryLog()
    built.there.logs[TopicPartition("a.new", 0)] = MemoryLog()
    with pytest.raises(NotNow, match="new can be written"):
        promote(built.scene())
    assert fence(built.scene()).state is State.FENCED
    assert {acl.resource_name for acl in built.world.source_acls.bindings} == {"new", "x", "y"}


def test_a_flow_whose_topics_are_hidden_is_not_cut_over() -> None:
    built = stage()
    built.world.source.unseen |= {"x", "y"}
    for command in (cutover, fence):
        with pytest.raises(NotNow, match="a does not list x, y, and does not say either that they are gone"):
            command(built.scene())
    assert built.record().state is State.MIRRORING


def test_a_flow_is_not_promoted_over_topics_that_were_hidden_since_its_fence() -> None:
    built = stage()
    fence(built.scene())
    drain(built.scene())
    built.world.source.unseen.add("x")
    with pytest.raises(NotNow, match="a does not list x"):
        promote(built.scene())


def seen_and_not_copied(name: str, partitions: int) -> Stage:
    """A job saw records in the last partition of a topic, which MM2 has not copied."""
    built, last = stage(), TopicPartition(name, partitions - 1)
    put_topic(built.world.source, name, partitions)
    for number in range(partitions):
        built.here.logs[TopicPartition(name, number)] = MemoryLog()
    built.write(name, last.partition, 5)
    look(built, 1000.0)
    return built


@pytest.mark.parametrize(("epochs", "deleted"), [([7, 7, 7, 7], False), ([7, 8, 9, 10], True)])
def test_a_topic_that_a_job_saw_is_gone_only_if_the_broker_that_says_so_follows_the_controller(
    epochs: list[int], deleted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sinks.failover.scene.EPOCHS_GROW_WITHIN_S", 0.0)
    built = seen_and_not_copied("z", 1)
    del built.world.source.topics["z"]
    told = cycle(epochs)
    scene = built.scene()
    scene = replace(scene, source=replace(scene.source, epochs=lambda: [next(told)]))
    assert scene.hidden(scene.listed()) == ([] if deleted else ["z"])


def test_a_topic_with_fewer_partitions_than_a_job_saw_is_left_behind_by_name_alone() -> None:
    built = seen_and_not_copied("z", 2)
    built.world.source.topics["z"].partitions = 1
    with pytest.raises(NotNow, match="a lists fewer partitions of z than a job saw"):
        cutover(built.scene())
    built.choices = replace(built.choices, accepted=frozenset({"z"}))
    assert cutover(built.scene()).state is State.PROMOTED


def test_a_topic_whose_name_is_too_long_for_its_copy_is_left_behind_by_name_alone() -> None:
    built, name = stage(), "t" * 249
    put_topic(built.world.source, name, 1)
    built.here.logs[TopicPartition(name, 0)] = MemoryLog()
    with pytest.raises(NotNow, match=r"would be left behind, because Lockstep does not create a\.ttt"):
        cutover(built.scene())
    built.choices = replace(built.choices, accepted=frozenset({name}))
    assert cutover(built.scene()).state is State.PROMOTED


def test_an_election_of_a_leader_after_the_drain_does_not_end_a_cutover() -> None:
    built = stage()
    where = TopicPartition("x", 0)

    def away(before: FailoverRecord, after: FailoverRecord) -> None:
        if (before.state, after.state) == (State.FENCED, State.DRAINED):
            back = built.now + 3
            built.here.leaderless.add(where)
            built.producers.append(lambda: built.here.leaderless.clear() if built.now >= back else None)

    assert cutover(built.scene(on_state=away)).state is State.PROMOTED


def test_groups_need_no_offset_on_an_accepted_topic_that_has_no_copy() -> None:
    built, seen = stage(), list[Collection[str]]()
    built.mirrors = False
    put_topic(built.world.source, "own-internal")
    built.here.logs[TopicPartition("own-internal", 0)] = MemoryLog()

    def last_offsets(copies: Collection[str]) -> str:
        seen.append(copies)
        return ""

    built.choices = replace(built.choices, accepted=frozenset({"own-internal"}))
    assert cutover(replace(built.scene(), last_offsets=last_offsets)).state is State.PROMOTED
    assert [set(copies) for copies in seen] == [{"a.x", "a.y"}, {"a.x", "a.y"}]


def test_a_topic_with_the_alias_of_its_own_cluster_in_its_name_is_fenced_and_awaited() -> None:
    """MM2 copies `a.late` of a like any other topic: no flow of the file copies it from a to a."""
    built = stage()
    for cluster, name in ((built.world.source, "a.late"), (built.world.target, "a.a.late")):
        put_topic(cluster, name)
    built.here.logs[TopicPartition("a.late", 0)] = MemoryLog()
    built.there.logs[TopicPartition("a.a.late", 0)] = MemoryLog()
    built.write("a.late", 0, 3)
    built.mirrors = False
    with pytest.raises(NotDrained, match=r"3 records of a\.late"):
        cutover(built.scene())


def test_a_topic_that_is_called_like_heartbeats_of_no_flow_must_be_accepted() -> None:
    built = stage()
    put_topic(built.world.source, "device.heartbeats")
    with pytest.raises(NotNow, match=r"device\.heartbeats: MM2 takes such names for copies of heartbeats"):
        cutover(built.scene())
    built.choices = replace(built.choices, accepted=frozenset({"device.heartbeats"}))
    assert cutover(built.scene()).state is State.PROMOTED


def test_a_flow_without_topics_of_clients_is_not_cut_over() -> None:
    built = without_topics()
    with pytest.raises(NotNow, match="replicates no topic that clients write"):
        cutover(built.scene())
    assert built.record().state is State.MIRRORING


def test_the_second_time_that_last_offsets_are_written_is_told_as_that() -> None:
    built = stage()
    cutover(built.scene())
    assert [line for line in built.said if "offsets" in line] == [
        "offsets",
        "again, right before the promotion: offsets",
    ]


def without_topics() -> Stage:
    """The reverse flow after a short failover: MM2 copies no copy back, and clients wrote nothing else."""
    built = stage()
    none = DefaultTopicFilter()
    none.configure({"topics": "nothing-.*", "topics.exclude": "x, y"})
    built.world.settings = replace(built.world.settings, topic_filter=none)
    return built


def test_a_way_back_without_topics_of_clients_names_the_commands_that_lead_back_without_a_cutover() -> None:
    built = without_topics()
    other = Ledger(
        built.world.settings.internal.reverse_ledger, built.world.source, built.world.source, 1, lambda: NOON
    )
    other.put({(Entry.FAILOVER, ("state",)): FailoverRecord(State.REVERSING).to_text()})
    with pytest.raises(NotNow, match=r"the file of b->a: .*`lockstep failback --done --yes MIRRORING`"):
        cutover(built.scene())


@pytest.mark.parametrize("state", [None, State.MIRRORING, State.PROMOTED])
def test_a_flow_without_topics_of_clients_that_leads_no_other_back_names_no_way_back(state: State | None) -> None:
    built = without_topics()
    if state is not None:
        topic = built.world.settings.internal.reverse_ledger
        other = Ledger(topic, built.world.source, built.world.source, 1, lambda: NOON)
        other.put({(Entry.FAILOVER, ("state",)): FailoverRecord(state).to_text()})
    with pytest.raises(NotNow, match=r"see that `topics` names the ones you mean$"):
        cutover(built.scene())
