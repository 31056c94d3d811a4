"""Two flows into one target: neither revokes what the other still wants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.every_kind.wishes import Wishes
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kinds.acls.controller import REST
from sinks.kinds.polled_controller import REST as QUOTA_REST
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.quota_port import Entity
from sinks.ledger.kept_divergences import Divergence, keep_divergences
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Change, Kind
from streaming.flow import Flow
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_quotas import MemoryQuotas
from tests.memory.memory_users import MemoryUsers, Stored
from tests.sinks.builders import World, drained_in_a_batch, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

AB, CB = Flow("a", "b"), Flow("c", "b")
GROUP = acl("ALLOW READ User:al GROUP g")
TOPIC = acl("ALLOW READ User:al TOPIC x")
ALICE, AL = ("alice", "SCRAM-SHA-512"), ("al", "SCRAM-SHA-512")
QUOTA = {Entity(user="alice"): {"producer_byte_rate": 1.0}}
DELETION = Change(Kind.ACL, GROUP.key, "ALLOW", None)


def two_worlds(enabled: Kind = Kind.ACL) -> tuple[World, World]:
    """a->b and c->b, over one target, with the same ACLs, users and quotas on both sources."""
    wishes, target = Wishes(), MemoryCluster("b", "id-of-b")
    acls, users, quotas = MemoryAcls("b"), MemoryUsers("b"), MemoryQuotas("b")
    worlds = []
    for flow in (AB, CB):
        name = flow.source
        kinds = [Kind.TOPIC, Kind.ACL, enabled]
        built = World(
            flow_settings(flow=flow, enabled=kinds),
            source=MemoryCluster(name, f"id-of-{name}"),
            target=target,
            source_acls=MemoryAcls(name, {TOPIC, GROUP, acl("ALLOW READ User:alice TOPIC x")}),
            target_acls=acls,
            source_users=MemoryUsers(name, {ALICE: Stored(4096, "own"), AL: Stored(4096, "own")}),
            target_users=users,
            others={PORT: {name: MemoryQuotas(name, dict(QUOTA)), "b": quotas}},
            wishes=wishes,
        )
        built.provider.known = {"alice": ("hush", "1"), "al": ("hush", "1")}
        put_topic(built.source, "x")
        worlds.append(built)
    return worlds[0], worlds[1]


def passes(*worlds: World, after: float = QUOTA_REST, rounds: int = 4) -> None:
    for _ in range(rounds):
        for world in worlds:
            world.run_pass(after=after)


def test_acl_that_another_flow_wants_stays_until_that_one_wants_it_no_more() -> None:
    one, other = two_worlds()
    passes(one, other)
    assert GROUP in one.target_acls.bindings
    one.source_acls.bindings.remove(GROUP)
    for _ in range(3):
        refused = one.run_pass(after=REST * 10).plan.refused
        assert [(refusal.key, refusal.reason) for refusal in refused] == [(GROUP.key, "still wanted by c->b")]
        other.run_pass(after=REST)
    assert GROUP in one.target_acls.bindings
    other.source_acls.bindings.remove(GROUP)
    passes(other, one)
    assert GROUP not in one.target_acls.bindings


def test_user_that_another_flow_wants_stays() -> None:
    one, other = two_worlds(Kind.SCRAM_USER)
    passes(one, other)
    assert one.ledger().owned(Kind.SCRAM_USER) == {ALICE, AL}
    assert not other.run_pass(after=QUOTA_REST).plan.refused
    for world in (one, other):
        world.source_acls.bindings.remove(acl("ALLOW READ User:alice TOPIC x"))
        passes(one, other)
        assert (ALICE in one.target_users.stored) == (world is one)


def test_quota_that_another_flow_wants_stays() -> None:
    one, other = two_worlds(Kind.CLIENT_QUOTA)
    passes(one, other)
    bob = {Entity(user="bob"): {"producer_byte_rate": 2.0}}
    for world in (one, other):
        world.others[PORT][world.settings.flow.source].quotas = dict(bob)
        passes(one, other)
        assert (Entity(user="alice") in one.others[PORT]["b"].quotas) == (world is one)


def test_nothing_is_deleted_before_every_flow_said_what_it_wants() -> None:
    one, other = two_worlds()
    passes(one)
    one.source_acls.bindings.remove(GROUP)
    report = one.run_pass(after=60.0)
    assert [refusal.reason for refusal in report.plan.refused] == ["whether c->b still wants it is not known yet"]
    assert one.wishes.waiting() == {AB}
    assert one.wishes.waiting() == frozenset()
    other.source_acls.bindings.remove(GROUP)
    passes(other, one)
    assert GROUP not in one.target_acls.bindings


def test_flow_whose_source_has_no_authorizer_wants_nothing() -> None:
    one, other = two_worlds()
    other.source_acls.authorizer = False
    passes(one, other)
    one.source_acls.bindings.remove(GROUP)
    passes(one)
    assert GROUP not in one.target_acls.bindings


def test_source_that_shows_nothing_is_not_believed_for_the_other_flow_either() -> None:
    one, other = two_worlds()
    passes(other, one)
    assert other.ledger().owned(Kind.ACL) >= {GROUP.key}
    other.source_acls.bindings = set()
    one.source_acls.bindings.remove(GROUP)
    passes(other, one)
    assert GROUP in one.target_acls.bindings


def test_flow_that_keeps_a_kind_no_more_is_not_waited_for() -> None:
    wishes = Wishes()
    wishes.expect(AB, Kind.ACL)
    assert wishes.hold(CB, [DELETION])[0] == []
    wishes.withdraw(AB, Kind.ACL)
    assert wishes.hold(CB, [DELETION]) == ([DELETION], [])


def test_own_wish_and_those_of_other_kinds_hold_nothing() -> None:
    wishes = Wishes()
    wishes.publish(CB, Kind.ACL, [GROUP.key])
    wishes.publish(AB, Kind.SCRAM_USER, [GROUP.key])
    assert wishes.hold(CB, [DELETION]) == ([DELETION], [])


def test_what_a_source_showed_once_stays_wanted_while_it_shows_nothing() -> None:
    one, other = two_worlds(Kind.CLIENT_QUOTA)
    passes(other, one)
    assert not other.ledger().owned(Kind.CLIENT_QUOTA)
    other.others[PORT]["c"].quotas = {}
    one.others[PORT]["a"].quotas = {Entity(user="bob"): {"producer_byte_rate": 2.0}}
    passes(other, one)
    assert Entity(user="alice") in one.others[PORT]["b"].quotas


def test_user_whom_its_flow_needs_no_more_gets_new_passwords_from_the_one_that_does() -> None:
    one, other = two_worlds(Kind.SCRAM_USER)
    passes(one, other)
    one.source_acls.bindings.remove(acl("ALLOW READ User:alice TOPIC x"))
    for world in (one, other):
        world.provider.known["alice"] = ("hush-2", "2")
    passes(one, other)
    assert one.target_users.stored[ALICE].password == "hush-2"


def restarted(*worlds: World) -> None:
    """One process has all of them."""
    wishes = Wishes()
    for world in worlds:
        world.wishes = wishes
    for world in worlds:
        world.restart()


def made_by_hand(world: World) -> None:
    """The flow wants ACLs, and owns none of them."""
    world.source_acls.bindings = {TOPIC, GROUP}
    world.target_acls.bindings.add(replace(TOPIC, resource_name="c.x"))


def test_after_a_restart_a_source_without_acls_frees_none_that_its_flow_wanted() -> None:
    one, other = two_worlds()
    made_by_hand(other)
    passes(one, other)
    assert not other.ledger().owned(Kind.ACL)
    restarted(one, other)
    other.source_acls.bindings = set()
    one.source_acls.bindings.remove(GROUP)
    passes(other, one)
    assert GROUP in one.target_acls.bindings


def test_after_a_restart_a_source_without_users_frees_none_that_its_flow_wanted() -> None:
    one, other = two_worlds(Kind.SCRAM_USER)
    passes(one, other)
    restarted(one, other)
    other.source_users.stored = {}
    one.source_acls.bindings.remove(acl("ALLOW READ User:alice TOPIC x"))
    passes(other, one)
    assert ALICE in one.target_users.stored


def test_after_a_restart_a_source_without_quotas_frees_none_that_its_flow_wanted() -> None:
    one, other = two_worlds(Kind.CLIENT_QUOTA)
    passes(one, other)
    restarted(one, other)
    other.others[PORT]["c"].quotas = {}
    one.others[PORT]["a"].quotas = {Entity(user="bob"): {"producer_byte_rate": 2.0}}
    passes(other, one)
    assert Entity(user="alice") in one.others[PORT]["b"].quotas


def test_after_a_restart_a_source_without_its_authorizer_frees_nothing_that_its_flow_wanted() -> None:
    one, other = two_worlds()
    made_by_hand(other)
    passes(one, other)
    restarted(one, other)
    other.source_acls.authorizer = False
    one.source_acls.bindings.remove(GROUP)
    passes(other, one)
    assert GROUP in one.target_acls.bindings


def test_flow_whose_source_never_showed_anything_holds_nobody_up_after_a_restart() -> None:
    one, other = two_worlds()
    other.source_acls.bindings = set()
    passes(one, other)
    restarted(one, other)
    one.source_acls.bindings.remove(GROUP)
    passes(other, one)
    assert GROUP not in one.target_acls.bindings


def test_ledger_of_a_flow_that_is_alone_says_that_it_wanted_anything_for_flows_of_other_processes() -> None:
    world = World(flow_settings(enabled=[Kind.ACL]), source_acls=MemoryAcls("a", {TOPIC, GROUP}))
    put_topic(world.source, "x")
    world.settle()
    assert world.ledger().values(Entry.CLAIMED).keys() == {(Kind.ACL.value,)}


@pytest.mark.parametrize("restarts", [False, True], ids=["the same job", "another job"])
def test_another_flow_takes_no_access_from_clients_that_may_have_moved(restarts: bool) -> None:
    one, other = two_worlds()
    passes(other, one)
    assert GROUP.key in other.ledger().owned(Kind.ACL)
    keep_divergences(one.ledger(), {"x": Divergence("a.x", [10], [10], [0], True)})
    passes(one, other)
    one.source_acls.bindings.remove(GROUP)
    passes(one, other)
    if restarts:
        restarted(one, other)
    other.source_acls.bindings.remove(GROUP)
    passes(one, other)
    passes(other, one)
    assert GROUP in one.target_acls.bindings


def test_another_flow_adds_no_denial_where_clients_may_have_moved() -> None:
    one, other = two_worlds()
    passes(one, other)
    drained_in_a_batch(one.ledger(), "x", 10)
    passes(one, other)
    denial = acl("DENY READ User:al GROUP g")
    other.source_acls.bindings.add(denial)
    passes(one, other)
    assert denial not in one.target_acls.bindings
    one.ledger().put({(Entry.DIVERGENCE, ("x",)): None})
    passes(one, other)
    assert denial in one.target_acls.bindings


def test_another_flow_lowers_no_quota_where_clients_may_have_moved() -> None:
    one, other = two_worlds(Kind.CLIENT_QUOTA)
    passes(one, other)
    drained_in_a_batch(one.ledger(), "x", 10)
    passes(one, other)
    one.others[PORT]["a"].quotas = other.others[PORT]["c"].quotas = {Entity(user="alice"): {"producer_byte_rate": 0.5}}
    passes(one, other)
    assert one.others[PORT]["b"].quotas == QUOTA


def test_another_flow_changes_no_brokers_defaults_where_clients_may_have_moved() -> None:
    one, other = two_worlds(Kind.BROKER_CONFIG)
    one.settings = replace(one.settings, enabled={**one.settings.enabled, Kind.BROKER_CONFIG: False})
    for world in (one, other):
        world.target_levels = one.target_levels
        world.restart()
    source, target = other.source_levels.set_at, one.target_levels.set_at
    source[DEFAULT_OF_ALL] = {"log.retention.ms": "1000000"}
    passes(one, other)
    drained_in_a_batch(one.ledger(), "x", 10)
    passes(one, other)
    source[DEFAULT_OF_ALL] = {"log.retention.ms": "1"}
    passes(one, other)
    assert target[DEFAULT_OF_ALL] == {"log.retention.ms": "1000000"}
