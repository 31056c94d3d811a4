"""A cutover in batches: clients of the first topics move while the last ones are still written on the source."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace

import pytest

from sinks.failover.commands import cutover, drain, fence, unfence
from sinks.failover.fence_proof import FenceBroken
from sinks.failover.lost_before_copying import Lost, entries_of
from sinks.failover.open_transactions import NotDrained
from sinks.flow_settings import AclRules
from sinks.kinds.offsets.stored_memory import store_histories
from sinks.kinds.offsets.sync_history import History
from sinks.ledger.failover_record import FailoverRecord, NotNow, State, Step
from sinks.ledger.fence_acls import fence_acls
from sinks.ledger.kept_divergences import divergences
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import flow_settings
from tests.sinks.failover.scenes import Died, Stage, look, mortal, stage

COPY_OF_X = TopicPartition("a.x", 0)


def with_clients_that_move() -> Stage:
    """Clients of x write its copy once it is drained, as under a policy that keeps names."""
    built = stage()

    def produce() -> None:
        built.write("y", super_user=not built.ledger().fences())
        if "x" in divergences(built.ledger()):
            built.there.logs[COPY_OF_X].append(b"moved", b"%d" % built.there.logs[COPY_OF_X].end, 9000)

    built.producers.append(produce)
    return built


def test_each_batch_is_fenced_and_drained_before_the_next_and_all_are_promoted_together() -> None:
    built = stage()
    assert cutover(built.scene(), batch=1).state is State.PROMOTED
    assert [state for step, state in built.states() if step != "begin"] == [
        "MIRRORING",
        "FENCED",
        "FENCED",
        "FENCED",
        "DRAINED",
        "DRAINED",
        "FENCED",
        "FENCED",
        "FENCED",
        "DRAINED",
        "DRAINED",
        "DRAINED",
        "PROMOTED",
    ]
    assert built.world.source_acls.bindings == set(fence_acls(["x", "y"]))


def test_clients_of_an_earlier_batch_may_write_on_the_target_before_the_last_is_drained() -> None:
    built = with_clients_that_move()
    assert cutover(built.scene(), batch=1).state is State.PROMOTED
    assert list(divergences(built.ledger())["x"].ends) == [10, 10]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [Step.DENY_WRITES, Step.PROVE_FENCE, Step.AWAIT_RECORDS, Step.KEEP_DIVERGENCE,
                                Step.LAST_OFFSETS])  # fmt: skip
def test_a_cutover_in_batches_that_dies_and_is_run_again_ends_the_same(at: Step, after: bool) -> None:
    built = with_clients_that_move()
    with pytest.raises(Died):
        cutover(mortal(built.scene(), at, after=after), batch=1)
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


@pytest.mark.parametrize("dies", [False, True])
def test_where_copies_ended_is_kept_before_a_hook_is_told_to_move_their_clients(dies: bool) -> None:
    built = stage()

    def told(before: FailoverRecord, after: FailoverRecord) -> None:
        if after.state is State.DRAINED and built.there.logs[COPY_OF_X].end == 10:
            for number in range(3):
                built.there.logs[COPY_OF_X].append(b"moved", b"%d" % number, 9000)
            if dies:
                raise Died

    with pytest.raises(Died) if dies else nullcontext():
        cutover(built.scene(on_state=told), batch=1)
    assert cutover(built.scene(), batch=1).state is State.PROMOTED
    assert list(divergences(built.ledger())["x"].ends) == [10, 10]


def test_a_batch_that_somebody_goes_on_writing_is_let_go_and_those_before_it_stay_fenced() -> None:
    built = stage()
    built.producers.append(lambda: built.write("y", super_user=True))
    with pytest.raises(FenceBroken, match=r"writes to y.*fence of y was taken back"):
        cutover(built.scene(), batch=1)
    assert built.world.source_acls.bindings == set(fence_acls(["x"]))
    built.producers.clear()
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


@pytest.mark.parametrize("drains", [False, True])
def test_a_fence_that_breaks_on_another_topic_leaves_those_that_were_fenced_before(drains: bool) -> None:
    built = stage()
    fence(built.scene(), ("x",))
    if drains:
        drain(built.scene())
    built.producers.append(lambda: built.write("y", super_user=True))
    with pytest.raises(FenceBroken, match="fence of y was taken back"):
        fence(built.scene(), ("y",))
    assert built.world.source_acls.bindings == set(fence_acls(["x"]))
    assert built.record().state is (State.DRAINED if drains else State.FENCED)


def test_a_cutover_of_all_that_breaks_after_a_batch_forgets_no_topic_whose_clients_moved() -> None:
    built = with_clients_that_move()
    built.producers.append(lambda: built.write("y", super_user=True))
    for batch in (1, None):
        with pytest.raises(FenceBroken, match="writes to y"):
            cutover(built.scene(), batch=batch)
        assert built.world.source_acls.bindings == set(fence_acls(["x"]))
        assert list(divergences(built.ledger())["x"].ends) == [10, 10]
    built.producers.pop()
    assert cutover(built.scene()).state is State.PROMOTED


@pytest.mark.parametrize("batch", [1, None])
def test_a_batch_that_died_and_then_breaks_is_let_go_as_its_message_says(batch: int | None) -> None:
    built = stage()
    cut = mortal(built.scene(), Step.PROVE_FENCE, after=False, topic="y")
    with pytest.raises(Died):
        cutover(cut, batch=1)
    assert built.world.source_acls.bindings == set(fence_acls(["x", "y"]))
    built.producers.append(lambda: built.write("y", super_user=True))
    with pytest.raises(FenceBroken, match="fence of y was taken back"):
        cutover(built.scene(), batch=batch)
    assert built.world.source_acls.bindings == set(fence_acls(["x"]))
    assert list(divergences(built.ledger())) == ["x"]


def test_a_fence_that_died_and_is_called_with_another_topic_denies_that_one_as_well() -> None:
    built = stage()
    with pytest.raises(Died):
        fence(mortal(built.scene(), Step.PROVE_FENCE, after=False), ("x",))
    assert fence(built.scene(), ("x", "y")).state is State.FENCED
    assert built.world.source_acls.bindings == set(fence_acls(["x", "y"]))


def test_a_cutover_that_was_given_up_leaves_nothing_behind_that_the_next_one_takes_for_moved() -> None:
    built = stage()
    built.producers.append(lambda: built.write("y", super_user=True))
    with pytest.raises(FenceBroken):
        cutover(built.scene(), batch=1)
    unfence(built.scene())
    assert divergences(built.ledger()) == {}
    built.producers.clear()
    built.write("x", 0, 5)
    assert cutover(built.scene()).state is State.PROMOTED


def test_batches_and_held_back_rights_do_not_go_together() -> None:
    built = stage(acls=AclRules(stage_writes=True))
    with pytest.raises(NotNow, match=r"lockstep\.acl\.stage\.writes holds their rights back"):
        cutover(built.scene(), batch=1)
    assert built.record().state is State.MIRRORING


def test_a_batch_is_not_told_to_move_before_its_groups_have_their_last_offsets() -> None:
    built, copies = stage(), list[Collection[str]]()

    def refuse(moving: Collection[str]) -> str:
        copies.append(moving)
        raise LockstepError("g may skip records on the target")

    with pytest.raises(LockstepError, match="may skip"):
        cutover(replace(built.scene(), last_offsets=refuse), batch=1)
    assert (built.record().state, copies) == (State.FENCED, [{"a.x"}])
    assert not any("their clients may move" in line for line in built.said)
    assert divergences(built.ledger()) == {}
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


def test_a_hook_is_told_that_topics_are_drained_only_once_all_of_them_are() -> None:
    built, told = stage(), list[tuple[str, ...]]()

    def hook(before: FailoverRecord, after: FailoverRecord) -> None:
        if after.state is State.DRAINED:
            assert set(after.topics) <= divergences(built.ledger()).keys()
            told.append(after.topics)

    cutover(built.scene(on_state=hook), batch=1)
    assert told == [("x",), ("x", "y")]


@pytest.mark.parametrize("cleaned", ["nothing", "retention", "compaction"])
@pytest.mark.parametrize("last", [False, True], ids=["before a batch", "before the promotion"])
def test_a_drained_copy_stays_drained_whatever_its_clients_and_cleaners_do(cleaned: str, last: bool) -> None:
    built = stage()
    for topic in ("x", "y") if last else ("x",):
        fence(built.scene(), (topic,))
        drain(built.scene())
    copy = built.there.logs[COPY_OF_X]
    for number in range(30):
        copy.append(b"%d" % (number % 10), b"moved", 9000 + number)
    if cleaned == "retention":
        copy.cut(25)
    if cleaned == "compaction":
        built.here.compacting, built.there.compacting = {"x"}, {"a.x"}
        copy.records[:] = copy.records[30:]
    built.mirrors = False
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


@pytest.mark.parametrize("batch", [1, None])
def test_a_drained_topic_whose_source_topic_is_deleted_keeps_no_others_waiting(batch: int | None) -> None:
    built = stage()
    fence(built.scene(), ("x",))
    drain(built.scene())
    del built.world.source.topics["x"]
    assert cutover(built.scene(), batch=batch).state is State.PROMOTED


def test_a_fenced_topic_that_is_deleted_before_it_is_drained_is_not_passed_over() -> None:
    built = stage()
    fence(built.scene(), ("x",))
    del built.world.source.topics["x"]
    with pytest.raises(LockstepError, match="x: fenced, not drained, and a->b does not replicate it any more"):
        drain(built.scene())


def test_fenced_topics_stay_named_once_all_topics_are_fenced() -> None:
    """The record tells by them that clients of drained ones may have moved."""
    built = stage()
    fence(built.scene(), ("x",))
    drain(built.scene())
    assert fence(built.scene()).topics == ("x", "y")


def test_a_batch_whose_records_were_lost_meanwhile_is_not_drained() -> None:
    built = stage()

    def told(before: FailoverRecord, after: FailoverRecord) -> None:
        if after.state is State.DRAINED:
            built.ledger().put(entries_of({TopicPartition("y", 0): Lost(7, 12, 1)}))

    with pytest.raises(NotNow, match="LOST BEFORE COPYING: at most 7 of y"):
        cutover(built.scene(on_state=told), batch=1)
    assert list(divergences(built.ledger())) == ["x"]


@pytest.mark.parametrize("markers", [0, 1], ids=["", "of a source that ends with a transaction's marker"])
@pytest.mark.parametrize("left", [7, 0], ids=["lost its tail", "was made anew"])
def test_a_drained_copy_that_lost_records_is_not_taken_for_a_whole_one(left: int, markers: int) -> None:
    built = stage()
    built.here.logs[TopicPartition("x", 0)].skip(markers)
    fence(built.scene(), ("x",))
    drain(built.scene())
    copy = built.there.logs[COPY_OF_X]
    copy.records[:], copy.end = copy.records[:left], left
    for number in range(20):
        copy.append(b"moved", b"%d" % number, 9000)
    built.mirrors = False
    with pytest.raises(NotDrained):
        cutover(built.scene(), batch=1)


def drained_x_fenced_y() -> Stage:
    """`cutover --batch 1` died while it waited for the records of y."""
    built = stage()
    with pytest.raises(Died):
        cutover(mortal(built.scene(), Step.AWAIT_RECORDS, after=False, topic="y"), batch=1)
    assert (list(divergences(built.ledger())), built.record().topics) == (["x"], ("x", "y"))
    return built


def leave_out(built: Stage, topic: str) -> None:
    """Of the file."""
    chosen = flow_settings({"topics.exclude": topic}).topic_filter
    built.world.settings = replace(built.world.settings, topic_filter=chosen)


def test_a_drained_topic_may_be_taken_out_of_the_file() -> None:
    built = drained_x_fenced_y()
    leave_out(built, "x")
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


@pytest.mark.parametrize("how", ["deleted", "left out"])
def test_a_fenced_topic_that_is_replicated_no_more_is_left_behind_by_name_alone(how: str) -> None:
    built = drained_x_fenced_y()
    if how == "deleted":
        del built.world.source.topics["y"]
    else:
        leave_out(built, "y")
    with pytest.raises(LockstepError, match=r"y: fenced, not drained.*--accept, or go back with `lockstep unfence`"):
        cutover(built.scene(), batch=1)
    built.choices = replace(built.choices, accepted=frozenset("y"))
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


def test_an_empty_partition_that_a_drained_topic_gets_keeps_no_others_waiting() -> None:
    built = drained_x_fenced_y()
    built.world.source.topics["x"].partitions = 3
    built.here.logs[TopicPartition("x", 2)] = MemoryLog()
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


def test_what_retention_takes_from_both_logs_after_the_drain_is_no_loss() -> None:
    built = stage()
    where = [TopicPartition("x", 0), TopicPartition("x", 1), TopicPartition("y", 0)]
    store_histories(built.ledger(), dict.fromkeys(where, History(4, 4, 0)))
    look(built, 1000.0)
    with pytest.raises(Died):
        cutover(mortal(built.scene(), Step.AWAIT_RECORDS, after=False, topic="y"), batch=1)
    built.here.logs[where[0]].cut(10)
    built.there.logs[COPY_OF_X].cut(10)
    assert cutover(built.scene(), batch=1).state is State.PROMOTED


def test_a_second_drain_of_all_topics_keeps_where_the_copies_end_now() -> None:
    built = stage()
    fence(built.scene())
    drain(built.scene())
    built.world.source_acls.bindings.clear()
    built.write("x", 0, 50)
    built.copy()
    fence(built.scene())
    drain(built.scene())
    assert list(divergences(built.ledger())["x"].ends) == [60, 10]


def test_clients_that_a_hook_moves_once_all_topics_are_drained_write_behind_the_kept_ends() -> None:
    built = stage()

    def told(before: FailoverRecord, after: FailoverRecord) -> None:
        if after.state is State.DRAINED:
            built.there.logs[COPY_OF_X].append(b"moved", b"early", 9000)

    assert cutover(built.scene(on_state=told)).state is State.PROMOTED
    assert list(divergences(built.ledger())["x"].ends) == [10, 10]


def test_a_record_that_comes_late_does_not_move_the_ends_behind_which_moved_clients_write() -> None:
    built = stage()

    def told(before: FailoverRecord, after: FailoverRecord) -> None:
        if (before.state, after.state) == (State.FENCED, State.DRAINED):
            built.there.logs[COPY_OF_X].append(b"moved", b"early", 9000)
            built.write("x", 0, 1, super_user=True)
            late = built.here.logs[TopicPartition("x", 0)].records[-1]
            built.there.logs[COPY_OF_X].append(late.key, late.value, late.timestamp)
            built.mirrors = False

    assert cutover(built.scene(on_state=told)).state is State.PROMOTED
    assert list(divergences(built.ledger())["x"].ends) == [10, 10]


def test_drained_topics_that_the_source_has_no_more_can_be_promoted() -> None:
    built = stage()
    for topic in ("x", "y"):
        fence(built.scene(), (topic,))
        drain(built.scene())
        del built.world.source.topics[topic]
    assert cutover(built.scene()).state is State.PROMOTED


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_promotion_waits_for_an_election_of_leaders(side: str) -> None:
    built = stage()
    records, where = (built.here, TopicPartition("x", 0)) if side == "a" else (built.there, COPY_OF_X)
    drained_at = list[float]()

    def told(before: FailoverRecord, after: FailoverRecord) -> None:
        if after.state is State.DRAINED and not drained_at:
            drained_at.append(built.now)
            records.leaderless.add(where)

    def elect() -> None:
        if drained_at and built.now > drained_at[0] + 3:
            records.leaderless.clear()

    built.producers.append(elect)
    assert cutover(built.scene(on_state=told)).state is State.PROMOTED
