"""Whose ACLs are synced, and what principals are called on the target."""

from __future__ import annotations

import pytest

from sinks.model.principals import PrincipalFilter, PrincipalMapping
from streaming.errors import LockstepError

INCLUDE, EXCLUDE = "lockstep.acl.principals", "lockstep.acl.principals.exclude"


@pytest.mark.parametrize(
    ("properties", "principal", "synced"),
    [
        ({}, "User:alice", True),
        ({}, "Group:ops", True),
        ({INCLUDE: ""}, "User:alice", False),
        ({INCLUDE: "alice, svc-.*"}, "User:svc-1", True),
        ({INCLUDE: "alice, svc-.*"}, "User:bob", False),
        ({INCLUDE: "User:alice"}, "User:alice", True),
        ({INCLUDE: "alice"}, "Group:alice", False),
        ({INCLUDE: r"CN=alice\x2cOU=x"}, "User:CN=alice,OU=x", True),
        ({EXCLUDE: "admin"}, "User:admin", False),
        ({EXCLUDE: "User:.*"}, "Group:ops", True),
        ({INCLUDE: "a.*", EXCLUDE: ".*z"}, "User:az", False),
    ],
)
def test_filter_matches_the_whole_principal_or_the_name_of_a_user(
    properties: dict[str, str], principal: str, synced: bool
) -> None:
    assert PrincipalFilter(properties).should_sync(principal) is synced


@pytest.mark.parametrize("key", [INCLUDE, EXCLUDE])
@pytest.mark.parametrize("value", ["a,,b", "(a"])
def test_list_that_is_none_is_refused_by_its_key(key: str, value: str) -> None:
    with pytest.raises(LockstepError, match=rf"^{key}: '") as refused:
        PrincipalFilter({key: value})
    assert "topics" not in str(refused.value)


@pytest.mark.parametrize(
    ("rules", "principal", "mapped"),
    [
        ("DEFAULT", "User:alice", "User:alice"),
        ("RULE:(.*)@EXAMPLE/$1/L, DEFAULT", "User:Alice@EXAMPLE", "User:alice"),
        ("RULE:(.*)@EXAMPLE/$1/L, DEFAULT", "User:Bob", "User:Bob"),
        ("RULE:(.*)@EXAMPLE/$1/", "User:Bob", None),
        ("RULE:a/first/,RULE:[ab]/second/U", "User:a", "User:first"),
        ("RULE:a/first/,RULE:[ab]/second/U", "User:b", "User:SECOND"),
        ("RULE:CN=(.*?),OU=.*/$1/", "User:CN=al,OU=x", "User:al"),
        (r"RULE:(?<name>.*)\/x/${name}\$1\/y/", "User:al/x", "User:al$1/y"),
        ("RULE:(.)(.)/$2$1$12$3/", "User:ab", "User:baa2$3"),
        ("RULE:^.*$/b-$0/", "User:al", "User:b-al"),
        ("RULE:(a)|(b)/x$2/", "User:a", "User:x"),
        ("RULE:.*/all/", "User:*", "User:*"),
        ("RULE:^.*$/all/", "Group:ops", "Group:ops"),
        ("RULE:^.*$/*/", "User:alice", None),
        ("RULE:^.*$//", "User:alice", None),
        ("RULE:a/b/, , DEFAULT,", "User:c", "User:c"),
    ],
)
def test_first_rule_that_matches_the_whole_name_of_a_user_gives_the_new_one(
    rules: str, principal: str, mapped: str | None
) -> None:
    assert PrincipalMapping.parse(rules).map(principal) == mapped


@pytest.mark.parametrize(
    ("rules", "wrong"),
    [
        ("alice", "alice"),
        ("DEFAULT, RULE:a/b", "RULE:a/b"),
        ("RULE:a/b/X, DEFAULT", "RULE:a/b/X"),
        ("RULE:(a/b/", "RULE:(a/b/"),
        ("RULE:a/$1/", "RULE:a/$1/"),
        ("RULE:(a)/$x/", "RULE:(a)/$x/"),
        ("RULE:(a)/${x}/", "RULE:(a)/${x}/"),
    ],
)
def test_wrong_rule_is_named(rules: str, wrong: str) -> None:
    with pytest.raises(LockstepError, match=r"^lockstep\.acl\.principal\.mapping: the rule ") as refused:
        PrincipalMapping.parse(rules)
    assert repr(wrong) in str(refused.value)


@pytest.mark.parametrize("rules", ["", " , "])
def test_mapping_without_a_rule_is_refused(rules: str) -> None:
    with pytest.raises(LockstepError, match="write DEFAULT to keep all names"):
        PrincipalMapping.parse(rules)
