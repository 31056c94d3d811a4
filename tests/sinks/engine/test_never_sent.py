"""What Lockstep wanted to create and never created is not its own, even if another client makes it meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from sinks.faults import ClusterUnreachable, ItemFault, JavaGone
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclFaults
from sinks.kafka.ports.cluster import Faults, TopicSpec
from sinks.kafka.ports.users import Upsertion, UserFaults
from sinks.ledger.failover_record import Command, FailoverRecord, State
from sinks.ledger.ledger_entries import FAILOVER_STATE, Entry
from sinks.model.changes import Kind
from sinks.plugins.credential_provider import Credential
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_users import MemoryUsers, Stored
from tests.sinks.builders import NOON, World, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

ALICE, BOB = ("alice", "SCRAM-SHA-512"), ("bob", "SCRAM-SHA-256")
OF_ALICE, OF_BOB = acl("ALLOW READ User:alice TOPIC x"), acl("ALLOW READ User:bob TOPIC x")
BY_HAND = acl("ALLOW READ User:alice TOPIC a.x")
THEIRS = Stored(8192, "the operator's own")


class TwoClocks(World):
    """The time of day goes on with the passes."""

    def passes(self, rounds: int = 4, after: float = 30.0) -> None:
        for _ in range(rounds):
            self.run_pass(after=after)

    def time_of_day(self) -> datetime:
        return NOON + timedelta(seconds=self.clock.now)


@pytest.fixture
def world() -> TwoClocks:
    users = MemoryUsers("a", {ALICE: Stored(4096, "s"), BOB: Stored(4096, "s")})
    built = TwoClocks(source_acls=MemoryAcls("a", {OF_ALICE, OF_BOB}), source_users=users)
    built.now = built.time_of_day
    built.provider.known = {"alice": ("hush", "1"), "bob": ("hush", "1")}
    put_topic(built.source, "x")
    return built


def test_acl_that_was_never_sent_for_the_target_fell_silent_before_is_whose_it_is(
    world: TwoClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(specs: Mapping[str, TopicSpec]) -> Faults:
        raise ClusterUnreachable("b timed out")

    with monkeypatch.context() as broken:
        broken.setattr(world.target, "create_topics", silent)
        world.passes()
        assert world.target_acls.bindings == set()
        world.target_acls.bindings.add(BY_HAND)
    world.passes()
    assert BY_HAND.key not in world.ledger().owned(Kind.ACL)
    world.source_acls.bindings = {OF_BOB}
    world.passes()
    assert BY_HAND in world.target_acls.bindings


def test_user_who_was_never_sent_for_the_provider_failed_is_whose_they_are(
    world: TwoClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sealed(user: str) -> Credential | None:
        if user == "alice":
            raise RuntimeError("sealed")
        return Credential(user, "hush", "1")

    with monkeypatch.context() as broken:
        broken.setattr(world.provider, "credential", sealed)
        world.passes()
        assert world.target_users.stored.keys() == {BOB}
        world.target_users.stored[ALICE] = THEIRS
        world.passes()
    world.passes()
    world.source_acls.bindings = {OF_BOB}
    world.passes()
    assert world.target_users.stored[ALICE] == THEIRS


def test_user_whom_the_target_refused_for_now_is_whose_they_are(
    world: TwoClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert = world.target_users.upsert

    def refused(upsertions: Sequence[Upsertion]) -> UserFaults:
        done = upsert([one for one in upsertions if one.user != "alice"])
        return done | {one.key: ItemFault("NOT_CONTROLLER", "", True) for one in upsertions if one.user == "alice"}

    with monkeypatch.context() as broken:
        broken.setattr(world.target_users, "upsert", refused)
        world.passes()
        assert not [key for key in world.ledger().values(Entry.INTENT) if "alice" in key]
        world.target_users.stored[ALICE] = THEIRS
    world.passes()
    world.source_acls.bindings = {OF_BOB}
    world.passes()
    assert world.target_users.stored[ALICE] == THEIRS


def test_topic_whose_creation_got_no_answer_is_ours_although_the_next_attempt_finds_it_there(
    world: TwoClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, listed = world.target.create_topics, world.target.list_topics

    def lost(specs: Mapping[str, TopicSpec]) -> Faults:
        create(specs)
        raise ClusterUnreachable("b timed out")

    with monkeypatch.context() as lagging:
        lagging.setattr(world.target, "list_topics", lambda: {k: n for k, n in listed().items() if k != "a.x"})
        with monkeypatch.context() as broken:
            broken.setattr(world.target, "create_topics", lost)
            world.passes(1)
        world.passes(2)
    world.passes()
    assert world.ledger().owned(Kind.TOPIC) == {("a.x",)}


def test_topic_that_was_there_at_the_first_attempt_is_not_ours(
    world: TwoClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_topic(world.target, "a.x")
    listed = world.target.list_topics
    with monkeypatch.context() as lagging:
        lagging.setattr(world.target, "list_topics", lambda: {k: n for k, n in listed().items() if k != "a.x"})
        world.passes(2)
    world.passes()
    assert world.ledger().owned(Kind.TOPIC) == set()


def intents(world: World) -> set[str]:
    """The kinds with an intent in the ledger."""
    return {key[0] for key in world.ledger().values(Entry.INTENT)}


def test_what_was_never_sent_for_the_process_ended_before_is_whose_it_is(
    world: TwoClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(specs: Mapping[str, TopicSpec]) -> Faults:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(world.target, "create_topics", interrupted)
        with pytest.raises(KeyboardInterrupt):
            world.run_pass()
    # The request that was under way may still arrive.
    assert intents(world) == {"topic"}
    world.target_acls.bindings.add(BY_HAND)
    world.restart()
    world.passes()
    assert BY_HAND.key not in world.ledger().owned(Kind.ACL)


def test_what_was_created_as_the_jvm_died_is_ours_although_no_answer_came(
    world: TwoClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = world.target_acls.create

    def dies(bindings: Collection[AclBinding]) -> AclFaults:
        create(bindings)
        raise JavaGone("the Java process that asks clusters has ended")

    with monkeypatch.context() as broken:
        broken.setattr(world.target_acls, "create", dies)
        with suppress(JavaGone):
            world.run_pass()
    assert world.target_acls.bindings
    assert "acl" in intents(world)
    world.restart()
    world.passes()
    assert {one.key for one in world.target_acls.bindings} == world.ledger().owned(Kind.ACL)


def test_what_was_never_sent_for_the_flow_ended_before_is_whose_it_is(world: TwoClocks) -> None:
    compared = world.reconcile.compare(everything=True)

    def ends(done: int, total: int | None) -> None:
        begun = FailoverRecord(State.DRAINED, doing=Command.PROMOTE)
        world.ledger().put({FAILOVER_STATE: begun.to_text()})

    world.reconcile.apply(compared, ends)
    assert "a.x" in world.target.topics
    assert world.target_acls.bindings == set()
    assert intents(world) == set()
