"""Which of Lockstep's properties can be overridden while it runs, and which values they take."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.overrides.overridable import checked_overrides, is_hidden, overridable_keys, own_name
from app.properties import keys
from app.properties.keys import OPENABLE, Key, KeyScope, Live
from app.settings import Settings, load
from sinks.flow_settings import FlowSettings
from streaming.errors import WrongUsage
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\nb->a.enabled=true\n"
SECRET = keys.WEBHOOK_SECRET.name
SOUND = {
    keys.REFRESH_TOPICS_INTERVAL.name: "7",
    keys.SYNC_TOPIC_CONFIGS_INTERVAL.name: "7",
    keys.SYNC_GROUP_OFFSETS_INTERVAL.name: "7",
    keys.WEBHOOK_URL.name: "http://h/hook",
    keys.WEBHOOK_SECRET.name: "t0ps3cr3t",
}
"""Values of keys that have no default."""


def refusal(name: str, value: str | None, *there: str, custom: bool = False) -> str:
    with pytest.raises(WrongUsage) as error:
        checked_overrides({name: value}, there, custom, opened=OPENABLE)
    return str(error.value)


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("replication.policy.class", "it names the ledger that stores overrides"),
        ("replication.policy.separator", "it names the ledger that stores overrides"),
        ("replication.policy.internal.topic.separator.enabled", "it names the ledger that stores overrides"),
        ("lockstep.ledger.secret", "it concerns the ledger that stores overrides"),
        ("lockstep.overrides.allowed", "it holds for the whole job, not for a flow"),
        ("lockstep.cluster.id", "it holds for the whole job, not for a flow"),
        ("password.encoder.secret", "passwords in the ledger are encoded with it"),
        ("password.encoder.of.a.later.version", "passwords in the ledger are encoded with it"),
        ("clusters", "it holds for the whole job, not for a flow"),
        ("lockstep.http.port", "it holds for the whole job, not for a flow"),
        ("metric.reporters", "it holds for the whole job, not for a flow"),
        ("enabled", "it cannot change while the job runs"),
        ("security.protocol", "client settings cannot change while the job runs"),
        ("consumer.isolation.level", "client settings cannot change while the job runs"),
        ("source.admin.request.timeout.ms", "client settings cannot change while the job runs"),
        ("target.producer.of.a.later.version", "client settings cannot change while the job runs"),
        ("source.cluster.bootstrap.servers", "client settings cannot change while the job runs"),
        ("tasks.max", "it is for MM2 alone: Lockstep does not read it"),
        ("emit.heartbeats.enabled", "it is for MM2 alone: Lockstep does not read it"),
        ("offset.flush.interval.ms", "it is for MM2 alone: Lockstep does not read it"),
    ],
)
def test_what_no_override_can_change_is_refused_with_the_reason(name: str, reason: str, custom: bool) -> None:
    assert refusal(name, "1", custom=custom).startswith(f"{name}: {reason}")


def test_key_that_the_job_or_a_restart_must_read_is_none_that_can_be_overridden() -> None:
    found = overridable_keys(OPENABLE)
    assert {key.scope for key in found} == {KeyScope.FLOW}
    assert Live.JOB not in {key.live for key in found}
    assert [key.name for key in found] == sorted(key.name for key in found)


@pytest.mark.parametrize(
    ("written", "own"),
    [
        ("topics", "topics"),
        ("lockstep.topics", "topics"),
        (" lockstep.sync.full.acl.enabled ", "sync.full.acl.enabled"),
        ("lockstep.observe.rate", "lockstep.observe.rate"),
        ("observe.rate", "lockstep.observe.rate"),
        ("my.size", "my.size"),
        ("lockstep.my.size", "my.size"),
    ],
)
def test_key_is_kept_with_the_prefix_only_where_it_belongs_to_its_own_name(written: str, own: str) -> None:
    assert own_name(written) == own
    assert checked_overrides({written: None}, (own,)) == {own: None}


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("lockstep.observe.rate", "-1", "'-1' is not allowed; allowed: a whole number of topics a second, 0 or more"),
        ("sync.topic.configs.enabled", "yes", "'yes' is not allowed; allowed: true, false"),
        ("use.defaults.from", "sourc", "'sourc' is not allowed; allowed: source, target; nearest: source"),
        ("lockstep.limits.max.delete.percent", "101", "'101' is not allowed; allowed: a number, 0 to 100"),
        ("topics", "a,(", "'a,(' is not allowed; allowed: names and regular expressions, separated by commas"),
        ("topic.filter.class", "my filter", "'my filter' is not allowed; allowed: package.module:Class"),
        (SECRET, "", "its value is not allowed; allowed: some text"),
    ],
)
def test_value_of_the_wrong_type_or_range_is_refused_in_the_keys_own_words(
    name: str, value: str, complaint: str
) -> None:
    assert refusal(name, value).startswith(f"{name}: {complaint}")


def test_unknown_key_is_refused_with_the_nearest_that_can_be_overridden_unless_it_is_custom() -> None:
    assert refusal("topicz", "a") == (
        "topicz: Lockstep has no such key; nearest: topics; give --custom if your own plug-in reads it"
    )
    assert "nearest" not in refusal("my.size", "3")
    assert checked_overrides({"my.size": "3", "topicz": "a"}, (), custom=True) == {"my.size": "3", "topicz": "a"}


@pytest.mark.parametrize("name", ["topics", SECRET, "my.size"])
def test_value_that_no_ledger_could_keep_is_refused(name: str) -> None:
    given_in_latin_1 = os.fsdecode(b"caf\xe9")
    assert refusal(name, given_in_latin_1, custom=True) == f"{name}: its value is not in UTF-8"


def test_custom_lets_no_wrong_value_of_a_known_key_through() -> None:
    assert refusal("observe.rate", "many", custom=True).startswith("observe.rate: 'many' is not allowed")


def test_literal_reference_is_left_to_the_job_that_looks_it_up_but_a_refused_key_stays_refused() -> None:
    wanted = {"lockstep.observe.rate": "${env:RATE}", SECRET: "${file:/x:y}"}
    assert checked_overrides(wanted, (), literal=True, opened=OPENABLE) == wanted
    with pytest.raises(WrongUsage, match="enabled: it cannot change"):
        checked_overrides({"enabled": "${env:ENABLED}"}, (), literal=True, opened=OPENABLE)


def test_text_that_looks_like_a_reference_and_is_a_value_is_checked_as_one() -> None:
    assert refusal("lockstep.observe.rate", "${env:RATE}").startswith("lockstep.observe.rate: '${env:RATE}' is not")


def test_values_of_secrets_and_of_keys_that_lockstep_does_not_know_are_hidden() -> None:
    hidden = [name for name in ("topics", SECRET, "lockstep.listener.webhook.url", "my.size") if is_hidden(name)]
    assert hidden == [SECRET, "lockstep.listener.webhook.url", "my.size"]


def test_what_is_set_can_be_deleted_known_or_not_and_nothing_else() -> None:
    there = ("topics", "of.an.earlier.version", "enabled")
    assert checked_overrides(dict.fromkeys(("lockstep.topics", *there[1:])), there) == dict.fromkeys(there)
    assert refusal("topic", None, *there) == ("topic: it is not set here, so it cannot be deleted; nearest: topics")
    assert refusal("groups", None) == "groups: it is not set here, so it cannot be deleted"


@pytest.mark.parametrize("value", ["2", None])
def test_one_key_under_two_names_is_refused_for_one_of_them_would_be_lost(value: str | None) -> None:
    with pytest.raises(WrongUsage, match=r"^lockstep\.topics: it is the same key as topics: name it once$"):
        checked_overrides({"topics": "1", "lockstep.topics": value}, ("topics",))


def test_everything_that_is_wrong_is_told_at_once_by_the_keys_as_written_and_secrets_never() -> None:
    wanted = {
        "lockstep.topicz": "t0ps3cr3t",
        "observe.rate": "x",
        SECRET: "",
        "enabled": "true",
        "a": None,
        "topics": "t",
    }
    with pytest.raises(WrongUsage) as error:
        checked_overrides(wanted, ())
    lines = str(error.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["lockstep.topicz", "observe.rate", SECRET, "enabled", "a"]
    assert "t0ps3cr3t" not in str(error.value)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("file") / "m.properties"
    file.write_text(BASE)
    return file


def text_of(default: object) -> str:
    """As a file would have it."""
    if isinstance(default, bool):
        return str(default).lower()
    return ",".join(default) if isinstance(default, tuple) else str(default)


def of(found: Settings, flow: Flow) -> FlowSettings:
    return next(one for one in found.flows if one.flow == flow)


@pytest.mark.parametrize("key", overridable_keys(OPENABLE), ids=lambda key: key.name)
def test_every_key_that_can_be_overridden_is_taken_and_leaves_the_other_flow_as_it_is(
    path: Path, key: Key[object]
) -> None:
    value = SOUND.get(key.name) or text_of(key.default)
    assert checked_overrides({key.name: value}, (), opened=OPENABLE) == {key.name: value}
    alone = load(path)
    found = load(path, overrides={AB: {key.name: value}}, before=alone)
    assert of(found, BA) is of(alone, BA)
    assert found.plugin_properties[AB][key.name] == value
    assert found.plugin_properties[BA] == alone.plugin_properties[BA]
