"""`lockstep configs`: flags that do not fit are refused, values are looked up, and no secret is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.cli.configs_command import cluster_access
from app.configs_tool.flags import EntityType, Flags, check_flags, entity_of, resolved, wanted_configs
from app.properties.config_providers import ConfigProvider, environment_provider, file_provider
from app.properties.mistakes import ConfigurationError
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ResourceType
from streaming.errors import WrongUsage

LOOK: dict[str, Any] = {"describe": True, "bootstrap_server": "h:1", "entity_type": EntityType.BROKERS}
ALTER: dict[str, Any] = {"alter": True, "bootstrap_server": "h:1", "broker": "1", "added": ("a=1",)}
DEFAULTS: dict[str, Any] = {"alter": True, "cluster": "a", "broker_defaults": True, "added": ("a=1",)}
OWN: dict[str, Any] = {"describe": True, "entity_type": EntityType.LOCKSTEP}
OWN_ALTER: dict[str, Any] = OWN | {"describe": False, "alter": True, "entity_name": "a->b", "added": ("topics=t",)}
PROVIDERS: dict[str, ConfigProvider] = {
    "env": environment_provider({"PASSWORD": "hush,[hush]"}),
    "file": file_provider(),
}


@pytest.mark.parametrize(
    ("flags", "entity"),
    [
        (LOOK, None),
        (LOOK | {"entity_name": "3", "every": True}, ConfigEntity(ResourceType.BROKER, "3")),
        (LOOK | {"entity_default": True}, DEFAULT_OF_ALL),
        (LOOK | {"entity_type": EntityType.TOPICS}, None),
        (LOOK | {"entity_type": EntityType.TOPICS, "entity_name": "t"}, ConfigEntity(ResourceType.TOPIC, "t")),
        (ALTER, ConfigEntity(ResourceType.BROKER, "1")),
        (ALTER | {"broker": None, "topic": "t"}, ConfigEntity(ResourceType.TOPIC, "t")),
        (DEFAULTS | {"canary": "2", "canary_time": 0.0}, DEFAULT_OF_ALL),
    ],
)
def test_flags_name_an_entity(flags: dict[str, Any], entity: ConfigEntity | None) -> None:
    check_flags(Flags(**flags))
    assert entity_of(Flags(**flags)) == entity


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (OWN, None),
        (OWN | {"entity_name": "a->b", "every": True}, "a->b"),
        (OWN | {"entity_default": True}, ""),
        (OWN_ALTER | {"custom": True, "literal": True, "dry_run": True}, "a->b"),
        (OWN_ALTER | {"added": (), "deleted": ("topics",)}, "a->b"),
        (OWN_ALTER | {"entity_name": None, "entity_default": True, "added": (), "added_file": Path("x")}, ""),
    ],
)
def test_lockstep_itself_needs_no_cluster_and_its_entities_are_flows(flags: dict[str, Any], name: str | None) -> None:
    check_flags(Flags(**flags))
    assert (Flags(**flags).kind, Flags(**flags).name) == (EntityType.LOCKSTEP, name)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (LOOK | {"alter": True, "entity_name": "1", "added": ("a=1",)}, "exactly one of --describe and --alter"),
        (LOOK | {"describe": False}, "exactly one of --describe and --alter"),
        (LOOK | {"cluster": "a"}, "exactly one of --cluster"),
        (LOOK | {"bootstrap_server": None}, "exactly one of --cluster"),
        (DEFAULTS | {"command_config": Path("x")}, "--command-config goes with"),
        (LOOK | {"entity_type": None}, "name the entities"),
        (LOOK | {"broker": "1"}, "do not go with --broker"),
        (LOOK | {"entity_type": None, "broker": "1", "topic": "t"}, "give only one of"),
        (LOOK | {"entity_name": "1", "entity_default": True}, "not both"),
        (LOOK | {"entity_type": EntityType.TOPICS, "entity_default": True}, "topics have no --entity-default"),
        (LOOK | {"entity_name": "one"}, "is its id, a number"),
        (LOOK | {"entity_name": ""}, "name is empty"),
        (LOOK | {"added": ("a=1",)}, "go with --alter"),
        (LOOK | {"dry_run": True}, "go with --alter"),
        (ALTER | {"broker": None, "entity_type": EntityType.BROKERS}, "--alter needs --entity-name"),
        (ALTER | {"added": ()}, "--alter needs --add-config"),
        (ALTER | {"added_file": Path("x")}, "not both"),
        (ALTER | {"every": True}, "--all goes with --describe"),
        (ALTER | {"canary": "1"}, "say --entity-type brokers --entity-default"),
        (DEFAULTS | {"canary": "x"}, "the id of a broker"),
        (DEFAULTS | {"canary": "1", "deleted": ("b",)}, "tries values out"),
        (DEFAULTS | {"canary": "1", "dry_run": True}, "does not go with --dry-run"),
        (DEFAULTS | {"canary_time": 3.0}, "goes with --canary"),
        (OWN | {"cluster": "a"}, "goes without --cluster and --bootstrap-server: its configs are kept in each flow's"),
        (OWN_ALTER | {"bootstrap_server": "h:1"}, "goes without --cluster and --bootstrap-server"),
        (OWN | {"command_config": Path("x")}, "--command-config goes with"),
        (OWN | {"broker": "1"}, "do not go with --broker"),
        (OWN | {"entity_name": ""}, "name is empty"),
        (OWN | {"entity_name": "a->b", "entity_default": True}, "not both"),
        (OWN | {"alter": True}, "exactly one of --describe and --alter"),
        (OWN | {"added": ("topics=t",)}, "go with --alter"),
        (OWN | {"custom": True}, "go with --alter"),
        (OWN | {"literal": True}, "go with --alter"),
        (OWN_ALTER | {"entity_name": None}, "--alter needs --entity-name, or --entity-default"),
        (OWN_ALTER | {"added": ()}, "--alter needs --add-config"),
        (OWN_ALTER | {"every": True}, "--all goes with --describe"),
        (OWN_ALTER | {"canary": "1"}, "say --entity-type brokers --entity-default"),
        (OWN_ALTER | {"canary_time": 3.0}, "goes with --canary"),
    ],
)
def test_flags_that_do_not_fit_are_refused(flags: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUsage, match=said):
        check_flags(Flags(**flags))


def test_values_come_from_providers_and_from_the_terminal_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("key=from a file")
    text = f"a=${{env:PASSWORD}},b=?,c=[x-${{file:{file}:key}}],d=9"
    wanted = wanted_configs([text], None, ["e"])
    assert resolved(wanted, PROVIDERS, lambda name: f"asked for {name}") == {
        "a": "hush,[hush]",
        "b": "asked for b",
        "c": "x-from a file",
        "d": "9",
        "e": None,
    }
    assert resolved(wanted, None, lambda name: "")["a"] == "${env:PASSWORD}"


def test_reference_that_leads_nowhere_is_refused_for_a_broker_would_take_its_text() -> None:
    wanted = wanted_configs(["a=${env:NOT_SET},b=${vault:x:y}"], None, [])
    with pytest.raises(WrongUsage, match=r"(?s)a: .*NOT_SET is not set.*b: there is no config provider"):
        resolved(wanted, PROVIDERS, lambda name: "")


def test_what_is_added_and_deleted_at_once_or_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="a: named to add and to delete"):
        wanted_configs(["a=1"], None, ["a"])
    with pytest.raises(WrongUsage, match="cannot be read: No such file"):
        wanted_configs([], tmp_path / "none", [])
    with pytest.raises(WrongUsage, match="there is no config in"):
        wanted_configs([","], None, [])


def test_flags_show_no_value() -> None:
    assert "hush" not in repr(Flags(added=("a=hush",)))


def test_cluster_is_an_alias_of_the_file_or_an_address_with_a_clients_file(tmp_path: Path) -> None:
    file, client = tmp_path / "mirror.properties", tmp_path / "client.properties"
    file.write_text("clusters=a,b\na.bootstrap.servers=h1:1\nb.bootstrap.servers=h2:2\na->b.enabled=true\n")
    (tmp_path / "secret.properties").write_text("password=hush\n")
    client.write_text(f"ssl.key.password=${{file:{tmp_path}/secret.properties:password}}\n")
    assert cluster_access(Flags(cluster="b"), file).properties["bootstrap.servers"] == "h2:2"
    asked = cluster_access(Flags(bootstrap_server="h3:3", command_config=client), file)
    assert asked.properties == {"bootstrap.servers": "h3:3", "ssl.key.password": "hush"}
    assert "hush" not in repr(asked)


def test_cluster_that_is_in_no_file_is_told_with_those_that_are(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text("clusters=a,b\na.bootstrap.servers=h1:1\nb.bootstrap.servers=h2:2\na->b.enabled=true\n")
    with pytest.raises(WrongUsage, match=r"--cluster c: .* has a, b"):
        cluster_access(Flags(cluster="c"), file)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        cluster_access(Flags(bootstrap_server="h:1", command_config=tmp_path / "none"), file)
