"""A writer of the ledger has no more power than the file gives: the same rules hold at load as at write."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.overrides.overridable import checked_overrides, permitted, refusals
from app.overrides.with_overrides import OverridesRefused, OverrideWatch, load_with_overrides
from app.properties.keys import OPENABLE
from app.properties.mistakes import ConfigurationError
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.overrides import InLedger, Override
from streaming.errors import WrongUsage
from streaming.flow import Flow
from tests.memory.memory_cluster import MemoryCluster

AB = Flow("a", "b")
BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
RATE = Override("7")

FORGED: dict[str, tuple[str, Override]] = {
    "the login's address": ("source.admin.bootstrap.servers", Override("attacker:9092")),
    "a client setting": ("sasl.jaas.config", Override("x", encoded=True)),
    "the policy": ("replication.policy.class", Override("evil:Policy")),
    "the secret of passwords": ("password.encoder.secret", Override("x", encoded=True)),
    "the secret of the ledger": ("lockstep.ledger.secret", Override("x", encoded=True)),
    "what the file opens": ("lockstep.overrides.allowed", Override("references")),
    "an encoded value that would be shown": ("topics", Override("c2FsdA==", encoded=True)),
    "a secret in plain text": ("lockstep.listener.webhook.secret", Override("t0ps3cr3t")),
}
OPENED: dict[str, tuple[str, Override]] = {
    "references": ("topics", Override("${file:/etc/shadow:root}", reference=True)),
    "classes": ("topic.filter.class", Override("evil:Filter")),
    "addresses": ("lockstep.listener.webhook.url", Override("x", encoded=True)),
    "kinds": ("lockstep.sync.broker.configs.enabled", Override("true")),
    "deletions": ("lockstep.sync.topic.deletes.enabled", Override("true")),
    "limits": ("lockstep.limits.max.delete.percent", Override("100")),
    "mappings": ("lockstep.acl.principal.mapping", Override("RULE:.*/User:evil/")),
}


def stored(name: str, override: Override, level: str = "flow") -> InLedger:
    return {(level, name): override.to_text(), ("flow", "lockstep.observe.rate"): RATE.to_text()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "m.properties"
    file.write_text(BASE)
    return file


@pytest.mark.parametrize("level", ["flow", ""])
@pytest.mark.parametrize(("name", "override"), [*FORGED.values(), *OPENED.values()], ids=[*FORGED, *OPENED])
def test_override_that_breaks_a_rule_refuses_all_of_the_ledger_s_for_the_job_and_for_commands(
    path: Path, name: str, override: Override, level: str
) -> None:
    forged = stored(name, override, level)
    found = load_with_overrides(path, read=lambda settings: {AB: forged}, job=True)
    assert (found.stored_overrides, found.override_values) == ({AB: None}, {})
    assert found.flows[0].pace.observe_rate == 0
    with pytest.raises(ConfigurationError, match=f"refuses all overrides.*{name}"):
        load_with_overrides(path, read=lambda settings: {AB: forged})


@pytest.mark.parametrize("name", ["lockstep.acl.principals.protected", "lockstep.scram.users.adopt"])
def test_whom_the_source_must_not_touch_holds_from_the_file_alone(name: str) -> None:
    (problem,) = refusals(stored(name, Override("admin")), ())
    assert problem.startswith(f"{name}: only the properties file may set mappings")


@pytest.mark.parametrize("name", FORGED)
def test_forged_override_stops_its_flow_in_a_running_job_whatever_the_file_opens(name: str) -> None:
    cluster = MemoryCluster("b")
    ledger, watch = Ledger("l", cluster, cluster, 1), OverrideWatch({AB: {}}, OPENABLE)
    watch.see(AB, ledger)
    key, override = FORGED[name]
    ledger.put({(Entry.OVERRIDE, place): text for place, text in stored(key, override).items()})
    with pytest.raises(OverridesRefused, match=f"a->b does nothing: Lockstep refuses all overrides.*{key}"):
        watch.see(AB, ledger)
    ledger.put({(Entry.OVERRIDE, ("flow", key)): None})
    watch.see(AB, ledger)


@pytest.mark.parametrize("word", OPENED)
def test_what_the_file_opens_is_taken_and_nothing_else(word: str) -> None:
    entries = stored(*OPENED[word])
    assert refusals(entries, {word}) == []
    (problem,) = refusals(entries, set(OPENABLE) - {word})
    assert problem.startswith(f"{OPENED[word][0]}: only the properties file may set {word}")
    assert problem.endswith(f"add {word} to lockstep.overrides.allowed")


@pytest.mark.parametrize("word", OPENED)
def test_what_would_be_refused_at_load_is_refused_when_it_is_written(word: str) -> None:
    name, override = OPENED[word]
    value = {"addresses": "http://h/hook"}.get(word, override.value)
    with pytest.raises(WrongUsage, match=f"only the properties file may set {word}"):
        checked_overrides({name: value}, (), literal=override.reference)
    assert checked_overrides({name: value}, (), literal=override.reference, opened=(word,)) == {name: value}


@pytest.mark.parametrize("name", ["acme.url", "acme.bootstrap.servers", "acme.handler.class", "acme.store"])
def test_plug_in_s_own_keys_that_lead_somewhere_are_closed_as_well(name: str) -> None:
    assert refusals(stored(name, Override("x")), ()) != []
    assert refusals(stored("acme.size", Override("3")), ()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lockstep.failover.fence.proof", "0.1"),
        ("lockstep.acl.stage.writes", "false"),
        ("lockstep.failover.ends.interval", "3600"),
    ],
)
def test_what_a_failover_rests_on_holds_from_the_file_alone(name: str, value: str) -> None:
    assert refusals(stored(name, Override(value)), ()) != []
    assert refusals(stored(name, Override(value)), ("limits",)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lockstep.sync.broker.configs.enabled", "true"),
        ("lockstep.sync.client.quotas.enabled", "true"),
        ("sync.topic.acls.enabled", "true"),
        ("sync.full.acl.enabled", "true"),
        ("sync.topic.configs.enabled", "true"),
        ("sync.group.offsets.enabled", "true"),
        ("refresh.topics.enabled", "true"),
        ("emit.checkpoints.enabled", "true"),
        ("lockstep.broker.config.properties", "unclean.leader.election.enable,min.insync.replicas"),
        ("config.properties.exclude", "none"),
        ("lockstep.acl.principals", ".*"),
        ("lockstep.acl.principals.exclude", ""),
        ("lockstep.copier", "offset-preserving"),
        ("lockstep.copier.keeps", ""),
    ],
)
def test_what_widens_what_is_written_to_the_target_needs_a_word_of_the_file(name: str, value: str) -> None:
    (problem,) = refusals(stored(name, Override(value)), ())
    assert problem.endswith("add kinds to lockstep.overrides.allowed")
    assert refusals(stored(name, Override(value)), ("kinds",)) == []


def test_bound_of_creations_needs_a_word_of_the_file() -> None:
    assert refusals(stored("lockstep.limits.max.create", Override("1000000000")), ()) != []
    assert refusals(stored("lockstep.limits.max.create", Override("1000000000")), ("limits",)) == []


def test_kind_may_be_switched_off_without_a_word_of_the_file() -> None:
    assert refusals(stored("sync.topic.acls.enabled", Override("false")), ()) == []
    assert checked_overrides({"sync.topic.acls.enabled": "false"}, ()) == {"sync.topic.acls.enabled": "false"}


def test_switch_that_each_job_looks_up_needs_a_word_of_the_file() -> None:
    looked_up = Override("${env:ACLS}", reference=True)
    assert refusals(stored("sync.topic.acls.enabled", looked_up), ("references",)) != []


def test_no_refusal_shows_a_value() -> None:
    for name, override in (*FORGED.values(), *OPENED.values()):
        assert override.value not in " ".join(refusals(stored(name, override), ())) or len(override.value) < 5


def test_file_alone_says_what_is_open() -> None:
    assert permitted({}) == frozenset()
    assert permitted({"lockstep.overrides.allowed": "classes, limits"}) == {"classes", "limits"}
    assert permitted({"lockstep.overrides.allowed": "everything"}) == frozenset(), "load refuses it, with the words"
