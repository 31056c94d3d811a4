"""Client quotas: what of the source's the target gets, what goes again, and what stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.kinds.quotas.quota_port import Entity, Quotas
from sinks.kinds.quotas.rules import OF_ADDRESSES, OF_CLIENTS, desired_quotas, keys_of, plan_quotas
from sinks.model.changes import Change, Kind, Op, key_as_json, key_as_text
from sinks.model.principals import PRINCIPALS_EXCLUDE, PrincipalFilter, PrincipalMapping
from sinks.model.registry import ABSENT

PRODUCE, CONNECT = "producer_byte_rate", "connection_creation_rate"
ALICE, DEFAULT_USER, ADDRESS = Entity(user="alice"), Entity(user=""), Entity(ip="10.0.0.1")
NAMES = st.sampled_from(["alice", "bob", ""])
ENTITIES = st.one_of(
    NAMES.map(lambda name: Entity(user=name)),
    NAMES.map(lambda name: Entity(client_id=name)),
    st.tuples(NAMES, NAMES).map(lambda names: Entity(*names)),
)
QUOTAS: st.SearchStrategy[Quotas] = st.dictionaries(
    ENTITIES, st.dictionaries(st.sampled_from(sorted(OF_CLIENTS)), st.sampled_from([1.0, 2.5, 1024.0]), min_size=1)
)


def changes(source: Quotas, target: Quotas, *owned: tuple[str, ...]) -> list[Change]:
    """With every user let through under its own name."""
    desired = desired_quotas(source, PrincipalFilter(), PrincipalMapping())
    return list(plan_quotas(desired, target, owned))


@given(QUOTAS, QUOTAS)
def test_after_its_changes_the_target_has_all_that_the_source_has(source: Quotas, target: Quotas) -> None:
    have = keys_of(target)
    for change in changes(source, target):
        assert change.op is not Op.DELETE
        have[change.key] = float(str(change.after))
    assert keys_of(source).items() <= have.items()


@given(QUOTAS)
def test_with_the_same_on_both_sides_there_is_nothing_to_do(quotas: Quotas) -> None:
    assert changes(quotas, quotas, *keys_of(quotas)) == []


def test_only_what_lockstep_created_goes_with_the_source_s() -> None:
    ours, theirs = (*ALICE, PRODUCE), ("bob", ABSENT, ABSENT, PRODUCE)
    target = {ALICE: {PRODUCE: 1.0}, Entity(user="bob"): {PRODUCE: 1.0}}
    (deletion,) = changes({}, target, ours)
    assert (deletion.key, deletion.op) == (ours, Op.DELETE)
    assert theirs not in {change.key for change in changes({}, target, ours)}


def test_quota_of_ours_that_is_gone_from_the_target_already_is_no_change() -> None:
    assert changes({}, {}, (*ALICE, PRODUCE)) == []


def test_users_are_filtered_and_renamed_as_principals_of_acls_are() -> None:
    source = {ALICE: {PRODUCE: 1.0}, Entity(user="admin"): {PRODUCE: 2.0}, DEFAULT_USER: {PRODUCE: 3.0}}
    filtered = PrincipalFilter({PRINCIPALS_EXCLUDE: "admin"})
    desired = desired_quotas(source, filtered, PrincipalMapping.parse("RULE:(.+)/east-$1/"))
    assert desired.wanted == {("east-alice", *ALICE[1:], PRODUCE): 1.0, (*DEFAULT_USER, PRODUCE): 3.0}
    assert desired.skipped == {"client quotas of users that are left out": 1}


def test_two_users_that_become_one_with_different_quotas_are_refused() -> None:
    source = {ALICE: {PRODUCE: 1.0}, Entity(user="ALICE"): {PRODUCE: 2.0}}
    desired = desired_quotas(source, PrincipalFilter(), PrincipalMapping.parse("RULE:(.+)/$1/L"))
    assert desired.wanted == {}
    assert [refusal.key for refusal in desired.refused] == [(*ALICE, PRODUCE)]


@pytest.mark.parametrize(("entity", "name"), [(ALICE, CONNECT), (ADDRESS, PRODUCE), (ALICE, "acme_rate")])
def test_name_that_brokers_do_not_know_for_the_entity_is_skipped_and_counted(entity: Entity, name: str) -> None:
    desired = desired_quotas({entity: {name: 1.0}}, PrincipalFilter(), PrincipalMapping())
    assert (desired.wanted, sum(desired.skipped.values())) == ({}, 1)


def test_five_names_are_those_of_kafka() -> None:
    assert len(OF_CLIENTS | OF_ADDRESSES) == 5


def test_key_shows_absence_as_null_and_the_default_as_an_empty_name() -> None:
    assert key_as_json(Kind.CLIENT_QUOTA, (*DEFAULT_USER, PRODUCE)) == {
        "user": "",
        "client_id": None,
        "ip": None,
        "name": PRODUCE,
    }
    assert key_as_text(Kind.CLIENT_QUOTA, (*DEFAULT_USER, PRODUCE)) == f"<default> {PRODUCE}"
