"""The groups' last offsets, which are written before a flow is promoted."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from app.failover_session import write_groups
from sinks.every_kind.moved_copies import BEHIND_TAKEOVER
from sinks.faults import ItemFault
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.assembly import GroupScope
from sinks.model.changes import Kind
from streaming.errors import LockstepError
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.sinks.builders import World, drained_in_a_batch, flow_settings, put_topic

X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)
Y, AY = TopicPartition("y", 0), TopicPartition("a.y", 0)
DENIED = ItemFault("GROUP_AUTHORIZATION_FAILED", "Group authorization failed.")


@pytest.fixture
def world() -> World:
    """Two groups at the end of a topic."""
    built = World(flow_settings())
    for cluster, groups, where in (
        (built.source, built.source_groups, X),
        (built.target, built.target_groups, AX),
    ):
        put_topic(cluster, where.topic)
        groups.logs[where] = LogRange(0, 9)
    built.source_groups.offsets = {"g": {X: 9}, "h": {X: 9}}
    return built


def write(world: World, *accepted: str, copies: Collection[str] = ("a.x",), most_skipping: int = 0) -> str:
    with world.reconcile.leading():
        return write_groups(world.reconcile, world.controllers, accepted, copies, most_skipping=most_skipping)


def test_last_offsets_of_all_groups_are_written(world: World) -> None:
    assert write(world).endswith("2 SYNCED")
    assert world.target_groups.offsets == {"g": {AX: 9}, "h": {AX: 9}}


@pytest.mark.parametrize("side", ["source_groups", "target_groups"])
def test_group_that_could_not_be_read_ends_it_unless_it_is_accepted_by_name(world: World, side: str) -> None:
    getattr(world, side).unreadable["h"] = DENIED
    with pytest.raises(LockstepError, match=r"last offsets of h are not known: .*GROUP_AUTH.*--accept-group"):
        write(world)
    assert world.target_groups.offsets == {"g": {AX: 9}}
    with pytest.raises(LockstepError):
        write(world, "g")
    assert "1 ERROR" in write(world, "h")


def test_group_that_is_held_in_error_ends_it_unless_it_is_accepted_by_name(world: World) -> None:
    world.source_groups.offsets["h"] = {X: 12}
    with pytest.raises(LockstepError, match=r"not move h: .*beyond the end of the log.*--accept-group"):
        write(world)
    assert world.target_groups.offsets == {"g": {AX: 9}}
    assert "1 ERROR" in write(world, "h")


def test_group_without_an_offset_on_the_target_ends_it_unless_it_is_accepted_or_few_are_allowed(world: World) -> None:
    world.source_groups.offsets["h"] = {X: 4}
    with pytest.raises(LockstepError, match=r"h may skip records on the target.*h on a\.x-0.*--accept-group"):
        write(world)
    assert world.target_groups.offsets == {"g": {AX: 9}}
    assert "1 NO_OFFSET_SYNC" in write(world, "h")
    assert "1 NO_OFFSET_SYNC" in write(world, copies=["a.y"])
    assert "1 NO_OFFSET_SYNC" in write(world, most_skipping=1)


def test_group_that_has_no_offset_on_the_target_ends_it_where_offsets_are_not_synced(world: World) -> None:
    world.settings = flow_settings(enabled=[Kind.TOPIC])
    world.command = GroupScope(shown=True)
    world.restart()
    world.target_groups.offsets = {"g": {AX: 2}}
    unsynced = r"h on a\.x-0: sync\.group\.offsets\.enabled is false"
    with pytest.raises(LockstepError, match=rf"^h may skip records .*{unsynced}.*--accept-group.*groups\.exclude"):
        write(world)
    assert "2 PENDING" in write(world, "h")
    assert world.target_groups.offsets == {"g": {AX: 2}}


def test_group_whose_only_offset_lies_behind_the_end_at_the_drain_ends_it_and_says_so(world: World) -> None:
    world.source_groups.offsets = {"h": {X: 4}}
    syncs = [encode_record(OffsetSync(X, *pair)) for pair in ((0, 0), (8, 8), (2, 11), (8, 17))]
    world.source.create_log(world.settings.internal.offset_syncs, 1, {})
    world.source.append_log(world.settings.internal.offset_syncs, syncs)
    drained_in_a_batch(world.ledger(), "x", 9)
    world.target_groups.logs[AX] = LogRange(0, 18)
    with pytest.raises(LockstepError, match=rf"h may skip records .*h on a\.x-0: {BEHIND_TAKEOVER}.*--accept-group"):
        write(world)
    assert world.target_groups.offsets == {}
    assert "1 PENDING" in write(world, "h")


def test_group_that_runs_on_the_target_without_an_offset_there_ends_it(world: World) -> None:
    world.target_groups.active["h"] = 1
    with pytest.raises(LockstepError, match=r"h may skip records on the target.*members on b"):
        write(world)
    assert "1 GROUP_ACTIVE" in write(world, "h")


def test_group_on_a_copy_that_was_drained_before_stays_where_it_is(world: World) -> None:
    world.target_groups.offsets["h"] = {AX: 2}
    drained_in_a_batch(world.ledger(), "x", 9)
    write(world, copies=())
    assert world.target_groups.offsets == {"g": {AX: 9}, "h": {AX: 2}}


def test_group_that_is_accepted_stays_where_it_is(world: World) -> None:
    world.target_groups.offsets["h"] = {AX: 2}
    write(world, "h")
    assert world.target_groups.offsets["h"] == {AX: 2}


def test_group_that_goes_on_at_an_earlier_offset_of_its_own_skips_nothing(world: World) -> None:
    world.source_groups.offsets["h"] = {X: 4}
    world.target_groups.offsets["h"] = {AX: 2}
    assert "1 NO_OFFSET_SYNC" in write(world)


def test_group_whose_copy_lost_unread_records_ends_it_unless_it_is_accepted_by_name(world: World) -> None:
    world.source_groups.offsets["h"] = {X: 3}
    world.source.create_log(world.settings.internal.offset_syncs, 1, {})
    world.source.append_log(world.settings.internal.offset_syncs, [encode_record(OffsetSync(X, 1, 1))])
    world.target_groups.logs[AX] = LogRange(7, 9)
    with pytest.raises(LockstepError, match=r"h may skip records on the target: h on a\.x-0: the log on b begins at 7"):
        write(world)
    assert world.target_groups.offsets["h"] == {AX: 7}
    assert "1 TARGET_AHEAD" in write(world, "h")


@pytest.mark.parametrize("copies", [("a.x", "a.y"), ("a.x",)], ids=["all topics", "the first batch"])
def test_group_that_would_skip_records_of_another_topic_does_not_move_with_the_first(
    world: World, copies: Collection[str]
) -> None:
    for cluster, groups, where in ((world.source, world.source_groups, Y), (world.target, world.target_groups, AY)):
        put_topic(cluster, where.topic)
        groups.logs[where] = LogRange(0, 9)
    world.source_groups.offsets["h"] = {X: 9, Y: 4}
    with pytest.raises(LockstepError, match=r"h may skip records on the target.*h on a\.y-0"):
        write(world, copies=copies)
