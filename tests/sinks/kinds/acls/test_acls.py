"""Which ACLs the target should have, in MM2's mode and in full."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.kinds.acls.rules import AclRules, desired_acls
from sinks.model.principals import PrincipalFilter, PrincipalMapping
from tests.sinks.kinds.acls.acl_builders import FULL, MM2, acl, identity, lines, one, source_topics, synced


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("ALLOW READ User:al TOPIC x", ["ALLOW READ User:al TOPIC a.x"]),
        ("ALLOW DESCRIBE User:al TOPIC x", ["ALLOW DESCRIBE User:al TOPIC a.x"]),
        ("ALLOW ALTER_CONFIGS User:al TOPIC x", ["ALLOW ALTER_CONFIGS User:al TOPIC a.x"]),
        ("ALLOW ALL User:al TOPIC x", ["ALLOW READ User:al TOPIC a.x"]),
        ("ALLOW WRITE User:al TOPIC x", []),
        ("DENY WRITE User:al TOPIC x", ["DENY WRITE User:al TOPIC a.x"]),
        ("DENY ALL User:al TOPIC x", ["DENY ALL User:al TOPIC a.x"]),
        ("ALLOW READ User:al TOPIC not-there-yet", ["ALLOW READ User:al TOPIC a.not-there-yet"]),
        ("ALLOW READ User:al TOPIC *", ["ALLOW READ User:al TOPIC a.*"]),
        ("ALLOW READ User:al TOPIC __consumer_offsets", []),
        ("ALLOW READ User:al TOPIC b.x", []),
        ("ALLOW READ User:al TOPIC x…", []),
        ("ALLOW READ User:al GROUP x", []),
        ("ALLOW WRITE User:al TRANSACTIONAL_ID x", []),
    ],
)
def test_mm2_mode_copies_what_mm2_copies(source: str, target: list[str]) -> None:
    assert synced(source_topics("x"), source, rules=MM2) == target


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("ALLOW WRITE User:al TOPIC orders", ["ALLOW WRITE User:al TOPIC a.orders"]),
        ("ALLOW ALL User:al TOPIC orders", ["ALLOW ALL User:al TOPIC a.orders"]),
        ("DENY READ User:al TOPIC orders", ["DENY READ User:al TOPIC a.orders"]),
        ("ALLOW READ User:al TOPIC ord…", ["ALLOW READ User:al TOPIC a.ord…"]),
        ("ALLOW READ User:al TOPIC *", ["ALLOW READ User:al TOPIC a.…"]),
        ("ALLOW READ User:al TOPIC __consumer_offsets", []),
        ("ALLOW READ User:al TOPIC __…", []),
    ],
)
def test_full_mode_translates_the_names_of_topics(source: str, target: list[str]) -> None:
    assert synced(source_topics("orders", "__consumer_offsets"), source) == target


@pytest.mark.parametrize("name", ["orders", "ord…"])
@pytest.mark.parametrize("rules", [MM2, FULL])
def test_identity_policy_keeps_names(name: str, rules: AclRules) -> None:
    topics = source_topics("orders", policy=identity())
    text = f"ALLOW READ User:al TOPIC {name}"
    assert synced(topics, text, rules=rules) == ([] if name == "ord…" and not rules.full else [text])


def test_hosts_are_kept() -> None:
    here, there = (acl("ALLOW READ User:al TOPIC x", host) for host in ("10.0.0.1", "10.0.0.2"))
    assert {each.host for each in desired_acls([here, there], FULL, source_topics("x")).wanted} == {
        "10.0.0.1",
        "10.0.0.2",
    }


def test_groups_and_transactional_ids_go_along_as_they_are_for_principals_of_the_topics() -> None:
    beside = [
        "ALLOW ALL User:al GROUP g…",
        "ALLOW READ User:al GROUP *",
        "ALLOW WRITE User:al TRANSACTIONAL_ID tx",
        "DENY READ User:al GROUP g1",
    ]
    topics = source_topics("x")
    assert synced(topics, "ALLOW READ User:al TOPIC x", *beside) == sorted([*beside, "ALLOW READ User:al TOPIC a.x"])
    assert synced(topics, "ALLOW READ User:bo TOPIC __x", *beside) == []
    assert one(topics, beside[0]).skipped == {"no-topic": 1}


@pytest.mark.parametrize("resource_type", ["GROUP", "TRANSACTIONAL_ID"])
def test_allow_on_all_groups_or_all_transactional_ids_is_copied_and_noted(resource_type: str) -> None:
    def notes(name: str, permission: str = "ALLOW") -> tuple[str, ...]:
        acls = ("ALLOW READ User:al TOPIC x", f"{permission} DESCRIBE User:al {resource_type} {name}")
        desired = desired_acls(map(acl, acls), FULL, source_topics("x"))
        assert len(desired.wanted) == 2
        return desired.notes

    (note,) = notes("*")
    assert f"ALLOW DESCRIBE on {resource_type} * for User:al is copied as it is" in note
    assert notes("g…") == notes("g") == notes("g…", "DENY") == ()


@pytest.mark.parametrize(("name", "noted"), [("a-mm…", True), ("a-…", True), ("*", True), ("a-orders-…", False)])
def test_allow_on_groups_that_covers_mm2s_workers_is_noted(name: str, noted: bool) -> None:
    acls = ("ALLOW READ User:al TOPIC x", f"ALLOW READ User:al GROUP {name}")
    notes = desired_acls(map(acl, acls), FULL, source_topics("x")).notes
    assert any("MM2's workers (a-mm2)" in note for note in notes) == noted


@pytest.mark.parametrize("resource_type", ["GROUP", "TRANSACTIONAL_ID"])
def test_deny_of_all_groups_or_all_transactional_ids_is_refused_until_the_file_asks_for_it(resource_type: str) -> None:
    text = f"DENY READ User:al {resource_type} *"
    acls = [acl("ALLOW READ User:al TOPIC x"), acl(text)]
    desired = desired_acls(acls, FULL, source_topics("x"))
    assert lines(desired.wanted) == ["ALLOW READ User:al TOPIC a.x"]
    (refusal,) = desired.refusals(set())
    assert refusal.key == acl(text).key
    assert "lockstep.acl.wildcard.denies.enabled=true" in refusal.reason
    asked = desired_acls(acls, replace(FULL, wildcard_denies=True), source_topics("x"))
    assert text in lines(asked.wanted)
    assert not asked.refusals(set())
    (note,) = asked.notes
    assert f"DENY READ on {resource_type} * for User:al is copied as it is" in note


def test_group_acls_of_everybody_go_along_with_anybodys_topics_and_the_other_way_round() -> None:
    topics = source_topics("x")
    assert "ALLOW READ User:* GROUP g" in synced(topics, "ALLOW READ User:al TOPIC x", "ALLOW READ User:* GROUP g")
    assert "ALLOW READ User:al GROUP g" in synced(topics, "ALLOW READ User:* TOPIC x", "ALLOW READ User:al GROUP g")
    assert synced(topics, "ALLOW READ User:* GROUP g") == []


@pytest.mark.parametrize("rules", [MM2, FULL])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ALLOW ALTER User:al CLUSTER kafka-cluster", "cluster"),
        ("ALLOW DESCRIBE User:al DELEGATION_TOKEN t", "delegation-token"),
        ("ALLOW CREATE_TOKENS User:al USER User:bo", "user"),
        ("ALLOW READ User:al UNKNOWN x", "unknown"),
        ("ALLOW UNKNOWN User:al TOPIC x", "unknown"),
        ("UNKNOWN READ User:al TOPIC x", "unknown"),
    ],
)
def test_what_is_never_written_is_counted(rules: AclRules, text: str, reason: str) -> None:
    desired = one(source_topics("x"), text, rules)
    assert not desired.wanted
    assert desired.skipped == {reason: 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ALLOW WRITE User:al TOPIC x", "write"),
        ("ALLOW READ User:al TOPIC x…", "prefixed"),
        ("ALLOW READ User:al TOPIC __x", "not-replicated"),
        ("ALLOW READ User:al GROUP x", "group"),
        ("ALLOW READ User:al TRANSACTIONAL_ID x", "transactional-id"),
    ],
)
def test_what_mm2_leaves_out_is_counted(text: str, reason: str) -> None:
    assert one(source_topics("x"), text, MM2).skipped == {reason: 1}


def test_principals_that_the_filter_keeps_back_are_counted_and_bring_no_groups() -> None:
    rules = AclRules(full=True, principals=PrincipalFilter({"lockstep.acl.principals.exclude": "al"}))
    acls = [acl(f"ALLOW READ User:al {where}") for where in ("TOPIC x", "GROUP g")]
    desired = desired_acls(acls, rules, source_topics("x"))
    assert not desired.wanted
    assert desired.skipped == {"principal": 2}


@pytest.mark.parametrize("full", [False, True])
def test_principals_are_called_as_the_mapping_says_and_those_without_a_rule_are_counted(full: bool) -> None:
    rules = AclRules(full=full, mapping=PrincipalMapping.parse("RULE:CN=(.*)/$1/L"))
    acls = [acl(f"ALLOW READ {name} TOPIC x") for name in ("User:CN=Al", "User:bo", "Group:g")]
    desired = desired_acls(acls, rules, source_topics("x"))
    assert lines(desired.wanted) == ["ALLOW READ Group:g TOPIC a.x", "ALLOW READ User:al TOPIC a.x"]
    assert desired.skipped == {"unmapped": 1}
    assert desired.principals == {"User:CN=Al": "User:al", "Group:g": "Group:g"}
