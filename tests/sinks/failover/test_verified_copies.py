"""`--verify`: records are compared before clients may move, each topic once, and as its copy was then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import pytest

from sinks.failover.commands import cutover, drain, fence, promote, unfence
from sinks.failover.open_transactions import NotDrained
from sinks.failover.scene import CopyCheck
from sinks.ledger.failover_record import Command, FailoverRecord, State, Step
from streaming.mm2.records import TopicPartition
from tests.sinks.failover.scenes import Died, Stage, mortal, stage

Ends = Mapping[TopicPartition, int]


@dataclass
class Comparison:
    """Notes what is compared, and in which state the flow was; then does something."""

    built: Stage
    then: Callable[[], None] = lambda: None
    seen: list[tuple[set[str], State]] = field(default_factory=list)
    ends: list[Ends] = field(default_factory=list)

    def __call__(self, topics: Collection[str], ends: Ends) -> None:
        self.seen.append((set(topics), self.built.record().state))
        self.ends.append(ends)
        self.then()


def differs() -> None:
    raise NotDrained("they differ")


def test_records_that_differ_keep_clients_from_being_told_to_move_and_accepted_topics_are_not_compared() -> None:
    built = stage()
    built.choices = replace(built.choices, accepted=frozenset({"y"}))
    comparison = Comparison(built, differs)
    with pytest.raises(NotDrained, match="they differ"):
        cutover(replace(built.scene(), verify=CopyCheck(comparison)))
    assert comparison.seen == [({"x"}, State.FENCED)]
    assert (built.record().state, built.record().doing) == (State.FENCED, Command.DRAIN)
    comparison.then = lambda: None
    assert cutover(replace(built.scene(), verify=CopyCheck(comparison))).state is State.PROMOTED


def test_a_fence_can_be_taken_back_when_records_differ() -> None:
    built = stage()
    with pytest.raises(NotDrained, match="they differ"):
        cutover(replace(built.scene(), verify=CopyCheck(Comparison(built, differs))))
    assert unfence(built.scene()).state is State.MIRRORING


def test_a_record_that_came_while_records_were_compared_keeps_the_flow_from_being_promoted() -> None:
    built = stage()

    def write() -> None:
        built.mirrors = False
        built.write("y", 0, 5)

    with pytest.raises(NotDrained, match="5 records of y"):
        cutover(replace(built.scene(), verify=CopyCheck(Comparison(built, write))), without_fence=True)
    assert not built.record().has_ended


def test_each_batch_is_compared_before_its_clients_may_move_and_nothing_twice() -> None:
    built = stage()
    comparison, told = Comparison(built), list[tuple[State, int]]()

    def tell(before: FailoverRecord, after: FailoverRecord) -> None:
        if after.state is State.DRAINED and before.state is not State.DRAINED:
            told.append((after.state, len(comparison.seen)))

    assert cutover(replace(built.scene(on_state=tell), verify=CopyCheck(comparison)), batch=1).state is State.PROMOTED
    assert comparison.seen == [({"x"}, State.FENCED), ({"y"}, State.FENCED)]
    assert told == [(State.DRAINED, 1), (State.DRAINED, 2)]


def test_a_promotion_compares_copies_as_they_were_before_their_clients_moved() -> None:
    built = stage()
    fence(built.scene())
    drain(built.scene())
    copy_of_x = TopicPartition("a.x", 0)
    built.there.logs[copy_of_x].append(b"moved", b"1", 9000)
    comparison = Comparison(built)
    assert promote(replace(built.scene(), verify=CopyCheck(comparison))).state is State.PROMOTED
    assert comparison.seen == [({"x", "y"}, State.DRAINED)]
    assert comparison.ends[0][copy_of_x] == 10


def dies_with_all_awaited(built: Stage, *, after: bool) -> None:
    """Without a comparison, before the hook was told that the first batch is drained."""
    with pytest.raises(Died):
        cutover(mortal(built.scene(), Step.KEEP_DIVERGENCE, after=after), batch=1, without_fence=True)
    assert built.record().done == (Step.AWAIT_RECORDS, Step.LAST_OFFSETS)


@pytest.mark.parametrize("after", [False, True])
def test_records_that_came_since_a_command_died_are_awaited_before_anybody_is_told_to_move(after: bool) -> None:
    built, told = stage(), list[State]()
    dies_with_all_awaited(built, after=after)
    built.mirrors = False
    built.write("x", 0, 5)
    with pytest.raises(NotDrained, match="5 records of x"):
        cutover(built.scene(on_state=lambda before, now: told.append(now.state)), batch=1)
    assert State.DRAINED not in told


@pytest.mark.parametrize("after", [False, True])
def test_what_a_command_that_died_did_not_compare_is_compared_before_anybody_is_told_to_move(after: bool) -> None:
    built = stage()
    dies_with_all_awaited(built, after=after)
    comparison = Comparison(built)
    assert cutover(replace(built.scene(), verify=CopyCheck(comparison)), batch=1).state is State.PROMOTED
    assert comparison.seen[0] == ({"x"}, State.FENCED)


def test_what_came_to_a_copy_since_it_was_drained_and_is_the_sources_is_compared_as_well() -> None:
    built = stage()
    fence(built.scene(), without_fence=True)
    drain(built.scene())
    built.write("x", 0, 5)
    built.copy()
    comparison = Comparison(built)
    cutover(replace(built.scene(), verify=CopyCheck(comparison)))
    assert comparison.ends == [{TopicPartition("a.x", 1): 10, TopicPartition("a.y", 0): 10}]
