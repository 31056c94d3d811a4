"""Flows that form a cycle."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.flow import Flow
from streaming.mm2.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    endless_cycles,
)


def policies(policy: type[DefaultReplicationPolicy], *names: str) -> Mapping[Flow, ReplicationPolicy]:
    made: dict[Flow, ReplicationPolicy] = {}
    for flow in map(Flow.parse, names):
        one = policy()
        one.configure({"source.cluster.alias": flow.source})
        made[flow] = one
    return made


def rounds(given: Mapping[Flow, ReplicationPolicy]) -> list[str]:
    return [" ".join(flow.name for flow in whole) for whole in endless_cycles(given)]


def test_a_policy_with_the_alias_in_the_name_ends_every_round() -> None:
    assert rounds(policies(DefaultReplicationPolicy, "a->b", "b->a", "b->c", "c->a")) == []


def test_under_the_identity_policy_flows_that_lead_back_are_endless() -> None:
    assert rounds(policies(IdentityReplicationPolicy, "a->b", "b->a")) == ["a->b b->a"]
    assert rounds(policies(IdentityReplicationPolicy, "b->c", "c->a", "a->b")) == ["a->b b->c c->a"]


def test_flows_that_do_not_lead_back_are_no_round_under_any_policy() -> None:
    assert rounds(policies(IdentityReplicationPolicy, "a->b", "a->c", "b->c", "b->d")) == []


def test_one_flow_whose_policy_looks_at_no_alias_is_enough() -> None:
    mixed = {**policies(DefaultReplicationPolicy, "a->b"), **policies(IdentityReplicationPolicy, "b->a")}
    assert rounds(mixed) == ["a->b b->a"]


def test_each_round_is_told_once() -> None:
    both = policies(IdentityReplicationPolicy, "a->b", "b->a", "c->d", "d->c")
    assert rounds(both) == ["a->b b->a", "c->d d->c"]
