"""Whom the source's ACLs do not concern, which users are adopted, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.properties.mistakes import ConfigurationError
from app.settings import Settings, load
from sinks.engine.flow_status import KnownStatus
from sinks.flow_settings import AclRules
from sinks.model.changes import Kind
from streaming.flow import Flow

BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
SASL = "b.security.protocol=SASL_SSL\n"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username={} password=hush;\n"
OAUTH = SASL + "b.sasl.mechanism=OAUTHBEARER"
PROTECTED = "lockstep.acl.principals.protected"


def settings_of(folder: Path, *lines: str) -> Settings:
    path = folder / "m.properties"
    path.write_text(BASE + "\n".join(lines))
    return load(path, environ={})


def rules_of(folder: Path, *lines: str) -> AclRules:
    return settings_of(folder, *lines).flows[0].acls


def test_job_s_own_principal_on_the_target_is_protected_in_each_role(tmp_path: Path) -> None:
    logins = [f"{role}sasl.jaas.config={JAAS.format(name)}" for role, name in (("", "mm2"), ("producer.", "writer"))]
    source = "a.security.protocol=SASL_SSL\na.sasl.mechanism=PLAIN\na.sasl.jaas.config=" + JAAS.format("source-only")
    found = rules_of(tmp_path, source + SASL + "b.sasl.mechanism=PLAIN", *(f"b.{login}" for login in logins))
    assert [name in found.protected for name in ("User:mm2", "User:writer", "User:source-only")] == [True, True, False]


def test_principals_that_the_file_names_are_protected_as_well(tmp_path: Path) -> None:
    found = rules_of(tmp_path, f"{PROTECTED}=admin,User:root-.*")
    protected = ("User:ANONYMOUS", "User:admin", "User:root-1", "User:al")
    assert [name in found.protected for name in protected] == [True, True, True, False]


@pytest.mark.parametrize("lines", [OAUTH, "b.security.protocol=SSL\nb.ssl.keystore.location=/no/such.p12"])
def test_principal_that_is_not_known_is_warned_about_until_it_is_named(tmp_path: Path, lines: str) -> None:
    (warning,) = [one for one in settings_of(tmp_path, lines).warnings if one.key == PROTECTED]
    assert "Lockstep cannot tell its own principal on b" in warning.message
    assert not [one for one in settings_of(tmp_path, lines, f"{PROTECTED}=me").warnings if one.key == PROTECTED]


def test_nothing_is_said_where_no_acl_user_or_quota_is_synced(tmp_path: Path) -> None:
    found = settings_of(tmp_path, OAUTH, "sync.topic.acls.enabled=false")
    assert not [one for one in found.warnings if one.key == PROTECTED]


@pytest.mark.parametrize("key", [PROTECTED, "lockstep.scram.users.adopt"])
def test_list_that_is_none_is_a_mistake_at_its_line(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        settings_of(tmp_path, f"{key}=(")
    assert [mistake.key for mistake in raised.value.mistakes] == [key]


def test_wildcard_denies_are_left_out_unless_the_file_asks_for_them(tmp_path: Path) -> None:
    asked = rules_of(tmp_path, "lockstep.acl.wildcard.denies.enabled=true").wildcard_denies
    assert (rules_of(tmp_path).wildcard_denies, asked) == (False, True)


def test_users_are_adopted_by_name_or_pattern(tmp_path: Path) -> None:
    found = rules_of(tmp_path, "lockstep.scram.users.adopt=alice,team-.*").adopted
    assert ["User:alice" in found, "User:team-x" in found, "User:bob" in found] == [True, True, False]


def test_scram_users_that_are_silently_off_are_warned_about_and_status_says_why(tmp_path: Path) -> None:
    found = settings_of(tmp_path, "sync.full.acl.enabled=true")
    (warning,) = [one for one in found.warnings if one.key == "sync.full.acl.enabled"]
    assert "the SCRAM users of a->b are not enabled: set password.encoder.secret" in warning.message
    kinds = KnownStatus(found.flows[0]).status().kinds
    assert (kinds[Kind.SCRAM_USER].reason or "").startswith("not enabled: set password.encoder.secret")
    assert kinds[Kind.BROKER_CONFIG].reason == "not enabled"


def test_nothing_is_said_of_scram_users_that_are_synced_or_not_asked_for(tmp_path: Path) -> None:
    secret = "password.encoder.secret=sixteen characters"
    for lines in (("sync.full.acl.enabled=true", secret), ()):
        found = settings_of(tmp_path, *lines)
        assert not [one for one in found.warnings if one.key == "sync.full.acl.enabled"]
        assert not found.flows[0].disabled_reasons


def test_flow_of_its_own_line_is_named(tmp_path: Path) -> None:
    found = settings_of(tmp_path, "a->b.sync.full.acl.enabled=true")
    assert [one.key for one in found.warnings if "SCRAM" in one.message] == ["a->b.sync.full.acl.enabled"]
    assert found.flows[0].flow == Flow("a", "b")
