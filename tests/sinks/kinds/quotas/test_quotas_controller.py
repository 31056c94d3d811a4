"""Client quotas in passes: they arrive, are owned and revoked, and trouble with them is theirs alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.flow_settings import AclRules
from sinks.kinds.polled_controller import REST
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.quota_port import Entity
from sinks.model.changes import Kind
from sinks.model.principals import NamedPrincipals
from tests.memory.memory_quotas import MemoryQuotas
from tests.sinks.builders import World, flow_settings, put_topic

ALICE, EVERYBODY, BOTH = Entity(user="alice"), Entity(user=""), Entity(user="alice", client_id="app")
PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"


class QuotaWorld(World):
    """A flow that keeps topics and client quotas."""

    source_quotas: MemoryQuotas
    target_quotas: MemoryQuotas


@pytest.fixture
def world() -> QuotaWorld:
    source, target = MemoryQuotas("a", {ALICE: {PRODUCE: 1024.0}}), MemoryQuotas("b")
    settings = flow_settings(enabled=[Kind.TOPIC, Kind.CLIENT_QUOTA])
    built = QuotaWorld(settings, others={PORT: {"a": source, "b": target}})
    built.source_quotas, built.target_quotas = source, target
    put_topic(built.source, "x")
    return built


def test_quotas_arrive_and_with_nothing_to_do_nothing_is_written(world: QuotaWorld) -> None:
    world.source_quotas.quotas[EVERYBODY] = {CONSUME: 5.0}
    world.settle()
    assert world.target_quotas.quotas == {ALICE: {PRODUCE: 1024.0}, EVERYBODY: {CONSUME: 5.0}}
    writes = world.target_quotas.writes
    world.run_pass(after=REST)
    assert world.target_quotas.writes == writes


def test_quota_of_lockstep_s_goes_with_the_source_s_and_another_one_stays(world: QuotaWorld) -> None:
    world.target_quotas.quotas[BOTH] = {CONSUME: 7.0}
    world.source_quotas.quotas[EVERYBODY] = {CONSUME: 5.0}
    world.settle()
    del world.source_quotas.quotas[ALICE]
    world.run_until_deleted(after=REST)
    assert world.target_quotas.quotas == {EVERYBODY: {CONSUME: 5.0}, BOTH: {CONSUME: 7.0}}
    assert world.ledger().owned(Kind.CLIENT_QUOTA) == {(*EVERYBODY, CONSUME)}


def test_source_without_any_quota_is_not_believed(world: QuotaWorld) -> None:
    world.settle()
    world.source_quotas.quotas.clear()
    report = world.run_until_deleted(after=REST)
    assert world.target_quotas.quotas == {ALICE: {PRODUCE: 1024.0}}
    assert ["shows no client quota" in error.reason for error in report.plan.errors] == [True]


def test_missing_right_stops_quotas_and_no_other_kind(world: QuotaWorld) -> None:
    world.source_quotas.denied.add("describe")
    report = world.run_pass()
    assert "a.x" in world.target.topics
    assert "needs DESCRIBE_CONFIGS" in report.plan.errors[0].reason
    world.source_quotas.denied.clear()
    world.run_pass(after=REST)
    assert world.target_quotas.quotas == {ALICE: {PRODUCE: 1024.0}}


def test_refused_quota_is_backed_off_and_the_others_are_written(world: QuotaWorld) -> None:
    world.source_quotas.quotas[EVERYBODY] = {CONSUME: -1.0}
    report = world.run_pass()
    assert world.target_quotas.quotas == {ALICE: {PRODUCE: 1024.0}}
    assert [outcome.change.key for outcome in report.outcomes if outcome.error] == [(*EVERYBODY, CONSUME)]
    assert [refusal.kind for refusal in world.run_pass(after=REST).plan.refused] == [Kind.CLIENT_QUOTA]


def test_quotas_of_protected_users_are_left_alone(world: QuotaWorld) -> None:
    world.settle()
    protected = NamedPrincipals(known=["User:alice"])
    world.settings = replace(world.settings, acls=AclRules(protected=protected))
    world.restart()
    world.source_quotas.quotas[ALICE] = {PRODUCE: 1.0}
    world.source_quotas.quotas[BOTH] = {PRODUCE: 1.0}
    report = world.run_pass(after=REST)
    assert report.plan.skipped == {"client quotas of protected users": 2}
    world.source_quotas.quotas = {EVERYBODY: {CONSUME: 5.0}}
    for _ in range(3):
        world.run_pass(after=REST)
    assert world.target_quotas.quotas == {ALICE: {PRODUCE: 1024.0}, EVERYBODY: {CONSUME: 5.0}}


def test_each_change_is_audited_under_its_kind(world: QuotaWorld) -> None:
    world.settle()
    assert ("client-quota", "create", "applied") in {(one.kind, one.op, one.result) for one in world.events()}
