"""The one door for deletions: one stale answer deletes nothing, and neither does what only the file stopped naming."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from sinks.engine import reconcile
from sinks.engine.deletion_checks import SECOND_LOOK_AFTER_S
from sinks.flow_settings import AclRules
from sinks.kafka.jvm.jvm_acls import RECENT
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclList
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.quota_port import Entity
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from sinks.model.principals import PRINCIPALS, NamedPrincipals, PrincipalFilter, PrincipalMapping
from streaming.flow import Flow
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_quotas import MemoryQuotas
from tests.memory.memory_users import Stored
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.one_signal import with_signal

ALICE, GROUP = acl("ALLOW READ User:alice TOPIC orders"), acl("ALLOW READ User:alice GROUP g")
BOB = acl("ALLOW READ User:bob TOPIC others")
ALL_KINDS = (Kind.TOPIC, Kind.TOPIC_CONFIG, Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA, Kind.BROKER_CONFIG)
NAME = "log.retention.ms"
POLL = 10.0


def in_step() -> World:
    """Something of alice's and of bob's of each kind that is polled as a list, made on the target by Lockstep."""
    quotas = {
        "a": MemoryQuotas(
            "a",
            {
                Entity(user="alice"): {"producer_byte_rate": 1.0},
                Entity(user="bob"): {"producer_byte_rate": 2.0},
            },
        ),
        "b": MemoryQuotas("b"),
    }
    acls = MemoryAcls("a", {ALICE, GROUP, BOB})
    world = World(flow_settings(enabled=ALL_KINDS), source_acls=acls, others={PORT: dict(quotas)})
    for user in ("alice", "bob"):
        world.provider.known[user] = (f"secret of {user}", "1")
        world.source_users.stored[user, "SCRAM-SHA-256"] = Stored(4096, f"secret of {user}")
    world.source_levels.set_at[DEFAULT_OF_ALL] = {NAME: "1", "log.retention.bytes": "2"}
    for topic in ("orders", "others"):
        put_topic(world.source, topic)
    world.restart()
    for _ in range(4):
        world.run_pass(after=POLL)
    return world


def of_alice(world: World) -> dict[Kind, object]:
    """What the target has of alice's, and the config that goes away."""
    return {
        Kind.ACL: {one for one in world.target_acls.bindings if one.principal == ALICE.principal},
        Kind.SCRAM_USER: {key for key in world.target_users.stored if key[0] == "alice"},
        Kind.CLIENT_QUOTA: Entity(user="alice") in world.others[PORT]["b"].quotas,
        Kind.BROKER_CONFIG: NAME in world.target_levels.set_at[DEFAULT_OF_ALL],
    }


def lose_alice(world: World) -> None:
    """The source has nothing of hers any more, nor the config."""
    world.source_acls.bindings -= {ALICE, GROUP}
    world.source_users.stored.pop(("alice", "SCRAM-SHA-256"))
    world.others[PORT]["a"].quotas.pop(Entity(user="alice"))
    world.source_levels.set_at[DEFAULT_OF_ALL].pop(NAME)


def test_one_stale_answer_deletes_nothing_of_any_kind() -> None:
    world = in_step()
    before = deepcopy(of_alice(world))
    assert all(before.values())
    source = deepcopy((world.source_acls.bindings, world.source_users.stored, world.source_levels.set_at))
    quotas = deepcopy(world.others[PORT]["a"].quotas)
    lose_alice(world)
    world.run_pass(after=POLL)
    world.source_acls.bindings, world.source_users.stored, world.source_levels.set_at = source
    world.others[PORT]["a"].quotas = quotas
    for _ in range(8):
        world.run_pass(after=1.0)
        assert of_alice(world) == before


def test_what_the_source_lost_is_gone_from_the_target_within_seconds() -> None:
    world = in_step()
    lose_alice(world)
    world.run_pass(after=POLL)
    assert all(of_alice(world).values())
    for _ in range(8):
        world.run_pass(after=1.0)
    assert not any(of_alice(world).values())


class KeptAcls(MemoryAcls):
    """Keeps its last answer for some seconds, as a job's client does."""

    def __init__(self, world_clock: Callable[[], float], bindings: set[AclBinding]) -> None:
        super().__init__("a", bindings)
        self.clock, self.asked, self.asked_at = world_clock, 0, float("-inf")
        self.kept = AclList()

    def describe(self) -> list[AclBinding]:
        self.asked, self.asked_at, self.kept = self.asked + 1, self.clock(), AclList(super().describe())
        return list(self.kept)

    def recent(self) -> AclList:
        if self.clock() - self.asked_at >= RECENT:
            self.describe()
        return self.kept


def test_second_comparison_and_second_look_ask_the_source_each_for_itself() -> None:
    world = in_step()
    acls = world.source_acls = KeptAcls(world.clock, world.source_acls.bindings)
    world.restart()
    # While the signal is silent the watch does not poll in between.
    with_signal(world)
    for _ in range(4):
        world.run_pass(after=POLL)
    acls.bindings = acls.bindings - {ALICE, GROUP}
    world.run_pass(after=POLL)
    before = acls.asked
    compared = world.reconcile.compare(everything=False)
    assert not compared.plan.changes
    assert acls.asked == before
    world.clock.now += SECOND_LOOK_AFTER_S
    compared = world.reconcile.compare(everything=False)
    assert {one.kind for one in compared.plan.changes} == {Kind.ACL, Kind.SCRAM_USER}
    # Of each kind, the comparison and the second look.
    assert acls.asked == before + 4


class Epochs:
    """How far the source's log is known to have come, and how far the broker that answers has followed it."""

    works = False

    def __init__(self) -> None:
        self.highest_epoch, self.answers = 100, [100]

    def take_signalled(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is open."""


def test_broker_that_is_cut_off_from_the_controller_confirms_no_deletion() -> None:
    world, epochs = in_step(), Epochs()
    world.signal, world.source_epochs = epochs, lambda: epochs.answers
    world.restart()
    for _ in range(4):
        world.run_pass(after=POLL)
    before = deepcopy(of_alice(world))
    lose_alice(world)
    epochs.answers, said = [99], set()
    for _ in range(24):
        report = world.run_pass(after=1.0)
        assert of_alice(world) == before
        said |= {one.kind for one in report.plan.errors if "follow the controller" in one.reason}
    assert said == set(before)
    epochs.answers = [101]
    for _ in range(24):
        world.run_pass(after=1.0)
    assert not any(of_alice(world).values())


def test_broker_whose_epoch_stands_still_since_a_restart_confirms_no_deletion() -> None:
    world, epochs = in_step(), Epochs()
    before = deepcopy(of_alice(world))
    lose_alice(world)
    epochs.highest_epoch = -1
    world.signal, world.source_epochs, said = epochs, lambda: epochs.answers, set()
    world.restart()
    for _ in range(24):
        report = world.run_pass(after=1.0)
        assert of_alice(world) == before
        said |= {one.kind for one in report.plan.errors if "follow the controller" in one.reason}
    assert said == set(before)
    epochs.answers = [101]
    for _ in range(24):
        world.run_pass(after=1.0)
    assert not any(of_alice(world).values())


def test_broker_that_is_cut_off_before_another_process_creates_an_item_confirms_nothing() -> None:
    world, epochs = in_step(), Epochs()
    epochs.answers = [140]
    world.signal, world.source_epochs, said = epochs, lambda: epochs.answers, set()
    world.restart()
    world.run_pass(after=POLL)
    epochs.answers = [150]
    world.run_pass(after=POLL)
    # From now on this process is shown what its broker knew at 150. What is on the target came by healthy brokers.
    before = deepcopy(of_alice(world))
    lose_alice(world)
    for _ in range(80):
        report = world.run_pass(after=1.0)
        assert of_alice(world) == before
        said |= {one.kind for one in report.plan.errors if "follow the controller" in one.reason}
    assert said == set(before)
    epochs.answers = [151]
    for _ in range(24):
        world.run_pass(after=1.0)
    assert not any(of_alice(world).values())


def test_source_is_asked_for_no_epoch_while_it_lacks_nothing() -> None:
    world, asked = in_step(), list[int]()

    def epochs() -> list[int]:
        asked.append(1)
        return []

    world.source_epochs = epochs
    world.restart()
    for _ in range(4):
        world.run_pass(after=POLL)
    assert not asked


def test_source_of_a_flow_that_has_ended_is_asked_for_no_epoch() -> None:
    world = in_step()
    world.ledger().put({(Entry.FAILOVER, ("state",)): FailoverRecord(State.PROMOTED).to_text()})
    world.source_epochs = lambda: pytest.fail("the source was asked")
    world.restart()
    assert world.run_pass().ended is not None


def test_command_waits_until_the_epoch_grew_between_its_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "EPOCHS_GROW_WITHIN_S", 0.7)
    world, epochs = in_step(), iter(range(100, 1000))
    lose_alice(world)
    world.reviewed = True
    world.restart()
    deleted = world.reconcile.compare(everything=True).plan.changes
    assert deleted
    world.source_epochs = lambda: [next(epochs) // 4]
    world.restart()
    assert world.reconcile.compare(everything=True).plan.changes == deleted
    world.source_epochs = lambda: [99]
    world.restart()
    assert not world.reconcile.compare(everything=True).plan.changes


def test_clients_that_tell_of_different_lengths_confirm_nothing_without_a_signal() -> None:
    world = in_step()
    epochs = iter(range(1000, 0, -1))
    world.source_epochs = lambda: [next(epochs)]
    world.restart()
    before = deepcopy(of_alice(world))
    lose_alice(world)
    for _ in range(12):
        world.run_pass(after=1.0)
    assert of_alice(world) == before


def renamed(world: World, properties: dict[str, str], acls: AclRules | None = None) -> None:
    """A new process with another file."""
    changed = flow_settings(properties, enabled=ALL_KINDS, acls=acls)
    world.settings = replace(changed, provider=world.provider)
    world.restart()


@pytest.mark.parametrize(
    ("properties", "acls"),
    [
        ({"topics": "ordesr, others"}, None),
        ({"topics.exclude": "orders"}, None),
        ({}, AclRules(full=True, principals=PrincipalFilter({PRINCIPALS: "bob"}))),
    ],
)
def test_what_only_the_file_stopped_naming_is_held_until_somebody_confirms_it(
    properties: dict[str, str], acls: AclRules | None
) -> None:
    world = in_step()
    before = deepcopy(of_alice(world))
    renamed(world, properties, acls)
    for _ in range(12):
        report = world.run_pass(after=POLL)
        assert of_alice(world) == before
    held = {one.key for one in report.plan.refused if "the file" in one.reason}
    assert acl("ALLOW READ User:alice TOPIC a.orders").key in held
    assert GROUP.key in held
    assert ("alice", "SCRAM-SHA-256") in held
    assert "lockstep apply --force" in report.trouble.held[Kind.ACL]
    world.reconcile.apply(world.reconcile.compare(everything=True, force=True))
    for _ in range(4):
        world.reconcile.apply(world.reconcile.compare(everything=True, force=True))
        world.clock.now += 5.0
    assert not of_alice(world)[Kind.ACL]
    assert not of_alice(world)[Kind.SCRAM_USER]


def test_user_that_only_the_file_leaves_out_is_held_although_the_target_has_none_of_the_acls() -> None:
    world = in_step()
    world.target_acls.bindings = {one for one in world.target_acls.bindings if one.principal != ALICE.principal}
    renamed(world, {}, AclRules(full=True, principals=PrincipalFilter({PRINCIPALS: "bob"})))
    for _ in range(12):
        report = world.run_pass(after=POLL)
        assert of_alice(world)[Kind.SCRAM_USER]
    assert "the properties file" in report.trouble.held[Kind.SCRAM_USER]


def test_what_is_held_goes_once_the_source_loses_it_as_well() -> None:
    world = in_step()
    renamed(world, {"topics.exclude": "orders"})
    for _ in range(3):
        world.run_pass(after=POLL)
    lose_alice(world)
    for _ in range(12):
        world.run_pass(after=POLL)
    assert not any(of_alice(world).values())


def test_rights_of_a_group_go_with_the_last_topic_although_the_source_keeps_them() -> None:
    world = in_step()
    world.source_acls.bindings -= {ALICE}
    for _ in range(4):
        world.run_pass(after=POLL)
    assert not of_alice(world)[Kind.ACL]


def test_right_of_a_group_is_held_although_somebody_took_that_of_its_topic_from_the_target() -> None:
    world = in_step()
    world.target_acls.bindings -= {acl("ALLOW READ User:alice TOPIC a.orders")}
    renamed(world, {"topics.exclude": "orders"})
    for _ in range(12):
        report = world.run_pass(after=POLL)
    assert GROUP in world.target_acls.bindings
    assert GROUP.key in {one.key for one in report.plan.refused if "the properties file" in one.reason}


@pytest.mark.parametrize("reader", ["User:alice", "User:*"])
def test_right_of_a_group_is_held_while_another_flow_lets_its_principal_read_on_the_target(reader: str) -> None:
    """The file of both flows names nothing any more: neither wants the right of the group, and the other still
    holds the right of its topic."""
    world = in_step()
    world.target_acls.bindings -= {acl("ALLOW READ User:alice TOPIC a.orders")}
    world.target_acls.bindings |= {acl(f"ALLOW READ {reader} TOPIC c.orders")}
    world.target.topics.pop("a.orders", None)
    renamed(world, {"topics.exclude": ".*"})
    for _ in range(12):
        report = world.run_pass(after=POLL)
    assert GROUP in world.target_acls.bindings
    assert GROUP.key in {one.key for one in report.plan.refused if "the properties file" in one.reason}


def test_right_of_everybody_to_a_group_is_held_while_anybody_reads_on_the_target() -> None:
    every = acl("ALLOW READ User:* GROUP shared")
    world = in_step()
    world.source_acls.bindings |= {every}
    for _ in range(4):
        world.run_pass(after=POLL)
    assert every in world.target_acls.bindings
    world.target_acls.bindings -= {
        acl("ALLOW READ User:alice TOPIC a.orders"),
        acl("ALLOW READ User:bob TOPIC a.others"),
    }
    world.target_acls.bindings |= {acl("ALLOW READ User:alice TOPIC c.orders")}
    for topic in ("a.orders", "a.others"):
        world.target.topics.pop(topic, None)
    renamed(world, {"topics.exclude": ".*"})
    for _ in range(12):
        world.run_pass(after=POLL)
    assert every in world.target_acls.bindings


def test_right_of_a_group_goes_whatever_its_principal_has_on_topics_that_were_never_copied() -> None:
    world = in_step()
    put_topic(world.source, "never")
    renamed(world, {"topics.exclude": "never"})
    world.source_acls.bindings |= {acl("ALLOW READ User:alice TOPIC never")}
    world.source_acls.bindings -= {ALICE}
    for _ in range(6):
        world.run_pass(after=POLL)
    assert not of_alice(world)[Kind.ACL]


@pytest.mark.parametrize("rules", ["RULE:alice/alicia/, DEFAULT", "DEFAULT"])
def test_what_a_changed_mapping_calls_otherwise_is_held_until_somebody_confirms_it(rules: str) -> None:
    world = in_step()
    renamed(world, {}, AclRules(full=True, mapping=PrincipalMapping.parse("RULE:alice/al/, DEFAULT")))
    for _ in range(4):
        world.reconcile.apply(world.reconcile.compare(everything=True, force=True))
        world.clock.now += POLL
    before = {one for one in world.target_acls.bindings if one.principal == "User:al"}
    assert before
    assert not of_alice(world)[Kind.ACL]
    renamed(world, {}, AclRules(full=True, mapping=PrincipalMapping.parse(rules)))
    for _ in range(12):
        report = world.run_pass(after=POLL)
        assert before <= world.target_acls.bindings
    assert "lockstep.acl.principal.mapping" in report.trouble.held[Kind.ACL]
    for _ in range(3):
        world.reconcile.apply(world.reconcile.compare(everything=True, force=True))
        world.clock.now += POLL
    assert not before & world.target_acls.bindings
    world.source_acls.bindings -= {GROUP}
    for _ in range(4):
        report = world.run_pass(after=POLL)
    assert GROUP.key not in {one.key for one in world.target_acls.bindings}
    assert not report.trouble.held


RENAMED_ALICE = PrincipalMapping.parse("RULE:alice/al/, DEFAULT")


def assert_alice_is_held(world: World, before: dict[Kind, object]) -> None:
    """Passes enough for any deletion; none of what has the former names goes."""
    for _ in range(12):
        report = world.run_pass(after=POLL)
    assert of_alice(world) == before
    assert report.trouble.held.keys() >= {Kind.ACL, Kind.SCRAM_USER}


def test_what_a_changed_mapping_calls_otherwise_is_held_when_deletes_are_turned_on_later() -> None:
    world = in_step()
    before = deepcopy(of_alice(world))
    renamed(world, {}, AclRules(full=True, deletes=False, mapping=RENAMED_ALICE))
    for _ in range(6):
        world.run_pass(after=POLL)
    renamed(world, {}, AclRules(full=True, mapping=RENAMED_ALICE))
    assert_alice_is_held(world, before)


def test_what_a_changed_mapping_calls_otherwise_is_held_although_the_target_once_showed_no_acl() -> None:
    world = in_step()
    before = deepcopy(of_alice(world))
    hidden, world.target_acls.bindings = world.target_acls.bindings, set()
    renamed(world, {}, AclRules(full=True, mapping=RENAMED_ALICE))
    world.run_pass(after=POLL)
    world.target_acls.bindings |= hidden
    assert_alice_is_held(world, before)


def protect_alice(world: World) -> AclRules:
    return AclRules(full=True, mapping=RENAMED_ALICE, protected=NamedPrincipals(known=["User:alice"]))


def let_another_flow_want_hers(world: World) -> AclRules:
    for kind in (Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA):
        hers = {key for key in world.ledger().owned(kind) if "alice" in "".join(key)}
        world.wishes.publish(Flow("c", "b"), kind, frozenset(hers))
    return AclRules(full=True, mapping=RENAMED_ALICE)


@pytest.mark.parametrize("keep", [protect_alice, let_another_flow_want_hers])
def test_what_stays_under_a_former_name_is_named_and_a_forced_apply_ends_the_hold(
    keep: Callable[[World], AclRules],
) -> None:
    world = in_step()
    renamed(world, {}, keep(world))
    for _ in range(6):
        report = world.run_pass(after=POLL)
    before = of_alice(world)
    shown = world.reconcile.compare(everything=True)
    assert any("acl" in note and "GROUP g" in note and "--force" in note for note in shown.plan.notes)
    world.source_acls.bindings -= {BOB}
    for _ in range(6):
        report = world.run_pass(after=POLL)
    assert "lockstep.acl.principal.mapping" in report.trouble.held[Kind.ACL]
    for _ in range(2):
        world.reconcile.apply(world.reconcile.compare(everything=True, force=True))
        world.clock.now += POLL
    assert of_alice(world) == before
    # From now on what the source loses goes by itself.
    world.source_acls.bindings -= {GROUP}
    for _ in range(6):
        report = world.run_pass(after=POLL)
    assert acl("ALLOW READ User:al GROUP g") not in world.target_acls.bindings
    assert not report.trouble.held
    assert of_alice(world) == before
    assert not report.plan.notes


def test_what_a_mapping_called_otherwise_is_held_once_the_mapping_is_taken_back() -> None:
    world = in_step()
    before = deepcopy(of_alice(world))
    renamed(world, {}, AclRules(full=True, mapping=RENAMED_ALICE))
    for _ in range(3):
        world.run_pass(after=POLL)
    made = {one for one in world.target_acls.bindings if one.principal == "User:al"}
    assert made
    renamed(world, {})
    for _ in range(12):
        report = world.run_pass(after=POLL)
    assert made <= world.target_acls.bindings
    assert of_alice(world) == before
    assert Kind.ACL in report.trouble.held


def test_command_takes_the_second_look_at_once_and_shows_what_is_held_as_refused() -> None:
    world = in_step()
    renamed(world, {"topics.exclude": "orders"})
    world.reviewed = True
    world.restart()
    compared = world.reconcile.compare(everything=True)
    held = {one.key for one in compared.plan.refused if one.kind is Kind.ACL}
    assert held == {acl("ALLOW READ User:alice TOPIC a.orders").key, GROUP.key}
    assert not compared.plan.changes
    assert Kind.ACL in compared.trouble.held
    lose_alice(world)
    compared = world.reconcile.compare(everything=True)
    gone = {one.key for one in compared.plan.changes if one.kind is Kind.ACL}
    assert gone == held
    assert not compared.trouble.held


def test_run_once_knows_that_another_pass_would_delete_something() -> None:
    world = in_step()
    assert not world.reconcile.awaits_second_look
    lose_alice(world)
    world.run_pass(after=POLL)
    assert world.reconcile.awaits_second_look
    for _ in range(4):
        world.run_pass(after=POLL)
    assert not world.reconcile.awaits_second_look


def take_all(world: World) -> None:
    """The source shows nothing any more."""
    world.source_acls.bindings = set()


def deny(world: World) -> None:
    """The source shows no ACL and no user to us any more."""
    world.source_acls.denied = world.source_users.denied = {"describe"}


def want_it(world: World) -> None:
    """Another flow wants all of it."""
    other = Flow("c", "b")
    for kind in (Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA):
        ours = world.ledger().owned(kind)
        world.wishes.publish(other, kind, ours)


@pytest.mark.parametrize("then", [take_all, deny, want_it])
@pytest.mark.parametrize("cause", ["source", "file"])
def test_deletion_that_waits_asks_for_no_pass_after_the_other(then: Callable[[World], None], cause: str) -> None:
    world = in_step()
    if cause == "source":
        lose_alice(world)
    else:
        renamed(world, {"topics.exclude": "orders"})
        for _ in range(3):
            world.run_pass(after=POLL)
    world.run_pass(after=1.0)
    then(world)
    for _ in range(12):
        report = world.run_pass(after=POLL)
        world.run_pass(after=0.1)
        report = world.run_pass(after=0.1)
        assert report.due > report.now
