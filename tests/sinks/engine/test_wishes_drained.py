"""What another flow drained holds from the first pass on, in a job that has just begun and in a command."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from sinks.every_kind.wishes import LEFT_OUT, Wishes
from sinks.faults import NotLeading
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kinds.acls.controller import REST
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.quota_port import Entity
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Change, Kind
from sinks.model.plan import Refusal
from streaming.errors import LockstepError
from tests.sinks.builders import World, drained_in_a_batch
from tests.sinks.engine.test_wishes import AB, GROUP, QUOTA, passes, restarted, two_worlds
from tests.sinks.engine.test_wishes_beside import LedElsewhere
from tests.sinks.kinds.acls.acl_builders import acl

DENIAL = acl("DENY READ User:al GROUP g")
LOWERED = {Entity(user="alice"): {"producer_byte_rate": 0.5}}
BOTH, ALONE = ("c->b", "a->b"), ("c->b",)


def after_a_drain(enabled: Kind = Kind.ACL) -> tuple[World, World]:
    """Both flows in a process that has read no ledger yet; a->b drained x before."""
    one, other = two_worlds(enabled)
    passes(one, other)
    drained_in_a_batch(one.ledger(), "x", 10)
    restarted(one, other)
    return one, other


def without_the_source_of(one: World, other: World) -> None:
    """A few passes of both while the drained flow's source is gone."""
    one.source.reachable = one.source_acls.reachable = False
    for _ in range(4):
        with pytest.raises(LockstepError):
            one.run_pass(after=60.0, everything=True)
        other.run_pass(after=60.0, everything=True)


def planned(flows: Sequence[str], one: World, other: World) -> tuple[list[Change], list[Refusal]]:
    """What `lockstep apply` plans for c->b and refuses: each flow in turn, then once more those that wait."""
    wishes, worlds = Wishes(), {"a->b": one, "c->b": other}
    if "a->b" not in flows:
        wishes.leave_out(AB, one.ledger())
    for name in flows:
        wishes.join(worlds[name].settings.flow)
        wishes.expect(worlds[name].settings.flow, Kind.ACL)
    compared = {}
    for name in flows:
        worlds[name].wishes, worlds[name].reviewed = wishes, True
        worlds[name].restart()
        compared[name] = worlds[name].reconcile.compare(everything=True)
    for flow in wishes.waiting():
        compared[flow.name] = worlds[flow.name].reconcile.compare(everything=True)
    return list(compared["c->b"].plan.changes), list(compared["c->b"].plan.refused)


def test_job_that_begins_anew_adds_no_denial_before_it_read_what_the_other_flow_drained() -> None:
    one, other = after_a_drain()
    other.source_acls.bindings.add(DENIAL)
    passes(other, one)
    assert DENIAL not in one.target_acls.bindings


def test_drained_flow_whose_source_is_gone_keeps_denials_away() -> None:
    one, other = after_a_drain()
    other.source_acls.bindings.add(DENIAL)
    without_the_source_of(one, other)
    assert DENIAL not in one.target_acls.bindings


def test_flow_that_drains_while_its_source_goes_keeps_denials_away() -> None:
    one, other = two_worlds()
    passes(one, other)
    drained_in_a_batch(one.ledger(), "x", 10)
    other.source_acls.bindings.add(DENIAL)
    without_the_source_of(one, other)
    assert DENIAL not in one.target_acls.bindings


def test_flow_that_drained_nothing_keeps_no_denial_away_although_its_source_is_gone() -> None:
    one, other = two_worlds()
    passes(one, other)
    restarted(one, other)
    other.source_acls.bindings.add(DENIAL)
    without_the_source_of(one, other)
    assert DENIAL in one.target_acls.bindings


def test_drained_flow_whose_source_is_gone_keeps_quotas_as_high() -> None:
    one, other = after_a_drain(Kind.CLIENT_QUOTA)
    other.others[PORT]["c"].quotas = LOWERED
    without_the_source_of(one, other)
    assert one.others[PORT]["b"].quotas == QUOTA


def test_drained_flow_whose_source_is_gone_keeps_the_brokers_defaults() -> None:
    one, other = two_worlds(Kind.BROKER_CONFIG)
    one.settings = replace(one.settings, enabled={**one.settings.enabled, Kind.BROKER_CONFIG: False})
    other.target_levels = one.target_levels
    restarted(one, other)
    other.source_levels.set_at[DEFAULT_OF_ALL] = {"log.retention.ms": "1000000"}
    passes(one, other)
    drained_in_a_batch(one.ledger(), "x", 10)
    restarted(one, other)
    other.source_levels.set_at[DEFAULT_OF_ALL] = {"log.retention.ms": "1"}
    without_the_source_of(one, other)
    assert one.target_levels.set_at[DEFAULT_OF_ALL] == {"log.retention.ms": "1000000"}


@pytest.mark.parametrize("flows", [BOTH, ALONE], ids=["c->b first", "--flow c->b"])
def test_command_takes_no_access_beside_a_drained_flow(flows: Sequence[str]) -> None:
    one, other = after_a_drain()
    other.source_acls.bindings.add(DENIAL)
    changes, refused = planned(flows, one, other)
    assert not changes
    assert "a->b drained topics" in next(row.reason for row in refused if row.key == DENIAL.key)


@pytest.mark.parametrize("flows", [BOTH, ALONE], ids=["c->b first", "--flow c->b"])
def test_command_adds_a_denial_beside_a_flow_that_drained_nothing(flows: Sequence[str]) -> None:
    one, other = two_worlds()
    passes(one, other)
    other.source_acls.bindings.add(DENIAL)
    changes, _ = planned(flows, one, other)
    assert [change.key for change in changes] == [DENIAL.key]


@pytest.mark.parametrize("flows", [BOTH, ALONE], ids=["all flows", "--flow c->b"])
@pytest.mark.parametrize("state", [State.DRAINED, State.PROMOTED])
def test_command_revokes_nothing_that_clients_of_a_drained_flow_need(flows: Sequence[str], state: State) -> None:
    one, other = two_worlds()
    passes(other)
    passes(one, other)
    drained_in_a_batch(one.ledger(), "x", 10)
    one.ledger().put({(Entry.FAILOVER, ("state",)): FailoverRecord(state, topics=("x",)).to_text()})
    other.source_acls.bindings.remove(GROUP)
    assert not planned(flows, one, other)[0]


def test_command_that_leaves_a_flow_out_deletes_nothing_that_it_may_want_and_says_how_to_go_on() -> None:
    one, other = two_worlds()
    passes(other)
    passes(one, other)
    other.source_acls.bindings.remove(GROUP)
    changes, refused = planned(ALONE, one, other)
    assert (changes, [row.reason for row in refused]) == ([], [LEFT_OUT.format("a->b")])


def test_command_that_leaves_a_flow_out_which_never_wanted_anything_deletes_as_before() -> None:
    one, other = two_worlds()
    one.source_acls.bindings = set()
    passes(other, one)
    other.source_acls.bindings.remove(GROUP)
    changes, _ = planned(ALONE, one, other)
    assert [change.key for change in changes] == [GROUP.key]


def test_at_first_contact_a_denial_is_there_after_two_passes_of_both_flows() -> None:
    one, other = two_worlds()
    other.source_acls.bindings.add(DENIAL)
    refused = other.run_pass().plan.refused
    assert "a->b drained topics is not known" in next(row.reason for row in refused if row.key == DENIAL.key)
    assert other.wishes.waiting() == {other.settings.flow}
    one.run_pass()
    other.run_pass()
    assert DENIAL in one.target_acls.bindings


def test_denial_comes_with_the_next_pass_once_the_other_flow_is_unfenced() -> None:
    one, other = after_a_drain()
    other.source_acls.bindings.add(DENIAL)
    passes(one, other, after=REST)
    one.ledger().put({(Entry.DIVERGENCE, ("x",)): None})
    one.run_pass(everything=True)
    other.run_pass(after=0.1)
    assert DENIAL in one.target_acls.bindings


def test_what_a_flow_drained_is_read_while_another_process_leads_it() -> None:
    one, other = two_worlds()
    one.settings = replace(one.settings, enabled={kind: kind is Kind.TOPIC for kind in Kind})
    one.leadership = LedElsewhere()
    restarted(one, other)
    drained_in_a_batch(one.ledger(), "x", 10)
    with suppress(NotLeading):
        one.run_pass()
    assert other.wishes.beside(other.settings.flow) == ({AB}, frozenset())


FOR_ALL, BUT_EVIL = "ALLOW READ User:* TOPIC {}x", "DENY READ User:evil TOPIC {}x"


def with_a_narrowed_right(world: World) -> None:
    """Everybody may read a topic of the source, but one."""
    world.source_acls.bindings |= {acl(FOR_ALL.format("")), acl(BUT_EVIL.format(""))}


def rights_there(world: World) -> tuple[bool, bool]:
    """Whether the target has the ALLOW, and the DENY that narrows it."""
    return (
        acl(FOR_ALL.format("a.")) in world.target_acls.bindings,
        acl(BUT_EVIL.format("a.")) in world.target_acls.bindings,
    )


def test_an_allow_waits_for_the_denial_that_narrows_it() -> None:
    one, other = two_worlds()
    with_a_narrowed_right(one)
    one.run_pass(after=60.0)
    assert rights_there(one) == (False, False)
    passes(other, one)
    assert rights_there(one) == (True, True)


def test_an_allow_waits_beside_a_drained_flow_as_well() -> None:
    one, other = two_worlds()
    passes(one, other)
    drained_in_a_batch(other.ledger(), "x", 10)
    passes(one, other)
    with_a_narrowed_right(one)
    passes(one, other)
    assert rights_there(one) == (False, False)


def test_a_flow_that_has_no_ledger_yet_drained_nothing_though_its_source_is_gone() -> None:
    one, other = two_worlds()
    other.source.reachable = other.source_acls.reachable = False
    with_a_narrowed_right(one)
    with pytest.raises(LockstepError):
        other.run_pass(after=60.0, everything=True)
    one.run_pass(after=60.0, everything=True)
    assert rights_there(one) == (True, True)
