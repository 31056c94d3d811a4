"""What is asked for at the wrong level, or wrongly, is refused before a broker is asked, with what to do instead."""

from __future__ import annotations

import pytest

from app.configs_tool.alter import KnownConfigs, notes, objections
from app.configs_tool.config_groups import CONFIG_GROUPS, GROUP_OF, ConfigLevel
from app.configs_tool.precedence import open_value
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, LevelledEntry, ResourceType, Synonym
from sinks.secret_values import IN_PLACE_OF_SECRET

ONE = ConfigEntity(ResourceType.BROKER, "1")
TOPIC = ConfigEntity(ResourceType.TOPIC, "orders")


def entry(value: str | None, origin: Origin = Origin.DEFAULT, read_only: bool = False) -> LevelledEntry:
    return LevelledEntry(value, origin, read_only, value is None, (Synonym("", value, origin),))


BROKER = {
    "num.io.threads": entry("8"),
    "log.retention.ms": entry("1"),
    "log.retention.hours": entry("168", read_only=True),
    "node.id": entry("1", Origin.STATIC, read_only=True),
    "reporter.token": entry(None, Origin.BROKER, read_only=True),
}
KNOWN = KnownConfigs({}, BROKER, ["1", "2"])
JAAS = "org.apache.kafka.common.security.{} required {};"


def only(entity: ConfigEntity, name: str, value: str = "hush", custom: bool = False) -> str:
    """The one objection; empty where there is none."""
    found = objections(entity, {name: value}, KNOWN, custom)
    assert len(found) <= 1
    assert not any("hush" in line for line in found)
    return next(iter(found), "")


@pytest.mark.parametrize("group", CONFIG_GROUPS, ids=lambda group: group.title)
def test_every_group_is_taken_at_its_own_level(group: object) -> None:
    for name, found in GROUP_OF.items():
        if found is not group or name == "sasl.jaas.config":
            continue
        spelled = f"listener.name.x.{name}" if found.per_listener else name
        assert only(ONE, spelled) == ""
        assert bool(only(DEFAULT_OF_ALL, spelled)) is (found.level is ConfigLevel.PER_BROKER)


@pytest.mark.parametrize(
    ("entity", "name", "said"),
    [
        (DEFAULT_OF_ALL, "listeners", "set it per broker, --entity-type brokers --entity-name 1 (and so for 2)"),
        (DEFAULT_OF_ALL, "listener.name.x.ssl.keystore.location", "belongs to a listener of one broker"),
        (ONE, "ssl.keystore.location", "write listener.name.<listener>.ssl.keystore.location"),
        (ONE, "node.id", "change server.properties, and restart them one after the other"),
        (DEFAULT_OF_ALL, "log.retention.hours", "log.retention.ms means the same"),
        (ONE, "num.io.treads", "is num.io.threads meant? If it is a config of a metrics reporter's"),
        (ONE, "listener.name.x.ssl.keystore.locaton", "is listener.name.x.ssl.keystore.location meant?"),
        (TOPIC, "retention.mss", "topics have no such config"),
        (TOPIC, "log.segment.bytes", "it is a config of brokers: --entity-type brokers"),
    ],
)
def test_what_is_asked_wrongly_is_told_what_to_do(entity: ConfigEntity, name: str, said: str) -> None:
    assert said in only(entity, name)


@pytest.mark.parametrize(
    ("entity", "name"),
    [
        (DEFAULT_OF_ALL, "listener.name.x.max.connections"),
        (DEFAULT_OF_ALL, "my.reporter.period"),
        (ONE, "reporter.token"),
        (ONE, "listener.name.x.scram-sha-512.sasl.login.class"),
    ],
)
def test_a_reporters_own_key_and_a_listeners_limit_are_taken(entity: ConfigEntity, name: str) -> None:
    assert only(entity, name) == ""


def test_a_name_that_looks_like_a_slip_is_taken_when_it_is_said_to_be_meant() -> None:
    assert only(ONE, "num.io.treads", custom=True) == ""


def test_everything_that_is_wrong_is_said_at_once() -> None:
    assert len(objections(ONE, {"node.id": "4", "num.io.treads": "9", "num.io.threads": "9"}, KNOWN)) == 2


def test_unknown_names_and_deletions_of_what_is_not_set_are_noted() -> None:
    wanted = {"my.reporter.period": "9", "num.io.threads": None, "listener.name.x.plain.sasl.jaas.config": "x"}
    assert [note.partition(":")[0] for note in notes(ONE, wanted, KNOWN)] == ["my.reporter.period", "num.io.threads"]


def test_login_for_a_listener_that_runs_is_noted_for_brokers_take_it_and_do_not_use_it() -> None:
    known = KnownConfigs({}, BROKER | {"listeners": entry("PLAINTEXT://:1,SASL://:2", Origin.STATIC)}, ["1"])
    logins = {f"listener.name.{listener}.plain.sasl.jaas.config": "x" for listener in ("sasl", "new")}
    (note,) = notes(ONE, logins, known)
    assert note.startswith("listener.name.sasl.plain.sasl.jaas.config: the listener sasl runs already")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("listener.name.x.plain.sasl.jaas.config", JAAS.format("plain.PlainLoginModule", 'user_al="hush"'), ""),
        ("listener.name.x.scram-sha-512.sasl.jaas.config", JAAS.format("scram.ScramLoginModule", ""), ""),
        ("listener.name.x.plain.sasl.jaas.config", "com.example.Own required;", ""),
        ("listener.name.x.sasl.jaas.config", JAAS.format("plain.PlainLoginModule", ""), "brokers would ignore it"),
        ("plain.sasl.jaas.config", JAAS.format("plain.PlainLoginModule", ""), "brokers would ignore it"),
        ("listener.name.X.plain.sasl.jaas.config", JAAS.format("plain.PlainLoginModule", ""), "in lower case"),
        ("listener.name.x.plain.sasl.jaas.config", JAAS.format("scram.ScramLoginModule", ""), "is ScramLoginModule"),
        ("listener.name.x.plain.sasl.jaas.config", JAAS.format("plain.PlainLoginModule", ""), "it has no user"),
        ("listener.name.x.plain.sasl.jaas.config", "PlainLoginModule hush", "no control flag"),
        ("listener.name.x.plain.sasl.jaas.config", 'M required user_al="hush"', "does not end with a semicolon"),
        ("listener.name.x.plain.sasl.jaas.config", "M required hush hush;", "cannot be read"),
    ],
)
def test_a_login_is_checked_for_its_form_before_it_is_sent(name: str, value: str, said: str) -> None:
    found = only(ONE, name, value)
    assert said in found
    assert bool(found) is bool(said)


def test_secrets_are_hidden_by_name_by_the_brokers_word_and_where_nobody_knows_the_config() -> None:
    hidden = ["reporter.token", "listener.name.x.plain.sasl.jaas.config", "ssl.key.password", "of.somebodys.own"]
    assert [open_value(name, "hush", BROKER) for name in hidden] == [IN_PLACE_OF_SECRET] * len(hidden)
    assert open_value("num.io.threads", "9", BROKER) == "9"
