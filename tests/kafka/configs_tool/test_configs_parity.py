"""What works with Kafka's own tool works here, with the same meaning: `kafka.admin.ConfigCommand` beside ours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from app.configs_tool.config_groups import GROUP_OF, LISTENER_ANYWHERE, STORES
from app.configs_tool.flags import LEGAL_NAME, WrongUsage, parse_added, parse_deleted
from app.local.jars import kafka_jars
from app.local.java import JavaProcess
from app.local.waiting import wait_for
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ResourceType
from streaming.errors import LockstepError
from tests.kafka.configs_tool.conftest import SOON, Three
from tests.kafka.kafka_tools import CONFIGS
from tests.quick_java import QUICK_KAFKA

LINE = re.compile(r"  (?P<name>[^=]+)=(?P<value>.*) sensitive=(?P<sensitive>\w+) synonyms=\{(?P<synonyms>.*)\}")
TWO, THREE = (ConfigEntity(ResourceType.BROKER, name) for name in "23")


def kafka_refuses(three: Three, *flags: str) -> bool:
    """Whether Kafka's tool ends with an error."""
    arguments = ["--bootstrap-server", three.cluster.bootstrap, *flags]
    with JavaProcess(CONFIGS, arguments, kafka_jars(), three.folder / "kafka-configs.log", QUICK_KAFKA) as tool:
        wait_for(lambda: not tool.runs, SOON, "kafka-configs to end")
        with pytest.raises(LockstepError, match="exit code 1"):
            tool.succeeded()
    return True


def of_kafka(said: str) -> dict[str, tuple[str | None, bool, str]]:
    """Its lines by name: value, whether sensitive, synonyms as it writes them."""
    found = {}
    for line in filter(None, map(LINE.fullmatch, said.splitlines())):
        value = None if line["value"] == "null" else line["value"]
        found[line["name"]] = (value, line["sensitive"] == "true", line["synonyms"])
    return found


def of_ours(document: str) -> dict[str, tuple[str | None, bool, str]]:
    """The same from our JSON."""
    (entity,) = json.loads(document)["entities"]
    return {row["name"]: (row["value"], row["sensitive"], _synonyms(row)) for row in entity["configs"]}


def _synonyms(row: dict[str, Any]) -> str:
    levels = ((one["source"], one["name"], "null" if one["value"] is None else one["value"]) for one in row["levels"])
    return ", ".join(f"{source}:{name}={value}" for source, name, value in levels)


def parsed_by_kafka(jvm: JavaGateway, text: str) -> dict[str, str] | None:
    """What its tool makes of `--add-config`; None where it refuses."""
    options = _options(jvm, ["--alter", "--add-config", text])
    try:
        properties = jvm.jvm.kafka.admin.ConfigCommand.parseConfigsToBeAdded(options)
    except Py4JJavaError:
        return None
    return {name: properties.getProperty(name) for name in properties.stringPropertyNames()}


def _options(jvm: JavaGateway, arguments: list[str]) -> Any:
    strings = jvm.new_array(jvm.jvm.java.lang.String, len(arguments))
    for number, argument in enumerate(arguments):
        strings[number] = argument
    loader = jvm.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    options = jvm.jvm.java.lang.Class.forName(f"{CONFIGS}$ConfigCommandOptions", True, loader)
    values = jvm.new_array(jvm.jvm.java.lang.Object, 1)
    values[0] = strings
    return options.getConstructors()[0].newInstance(values)


def test_added_configs_are_read_as_kafkas_tool_reads_them(jvm: JavaGateway) -> None:
    @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.text("ab=,[] .\t-$", min_size=1, max_size=24))
    @example("a=[x=1,y=2],b=,c=[]")
    @example('listener.name.x.plain.sasl.jaas.config=[M required user_al="a,b";]')
    def same(text: str) -> None:
        try:
            ours: dict[str, str] | None = parse_added(text)
        except WrongUsage:
            ours = None
        kafkas = parsed_by_kafka(jvm, text)
        # Names that no config can have are refused here as they were by the tool before Kafka 4; now it sends them.
        legal = kafkas is not None and all(name and LEGAL_NAME.fullmatch(name) for name in kafkas)
        assert ours == (kafkas if legal else None)

    same()


def test_names_to_delete_are_read_as_kafkas_tool_reads_them(jvm: JavaGateway) -> None:
    for texts in (["a,b"], ["a", "b,c"], ["a.b-c"]):
        flags = [word for text in texts for word in ("--delete-config", text)]
        found = jvm.jvm.kafka.admin.ConfigCommand.parseConfigsToBeDeleted(_options(jvm, flags))
        assert [found.apply(number) for number in range(found.size())] == list(parse_deleted(texts))


def test_groups_and_their_levels_are_those_of_the_brokers(jvm: JavaGateway) -> None:
    modes = jvm.jvm.org.apache.kafka.server.config.DynamicBrokerConfig.dynamicConfigUpdateModes()
    assert {name: group.level.value for name, group in GROUP_OF.items()} == dict(modes)


@pytest.mark.parametrize(("names", "listener", "default"), [(STORES, False, False), (LISTENER_ANYWHERE, True, True)])
def test_what_belongs_to_a_listener_is_what_brokers_say(
    jvm: JavaGateway, names: frozenset[str], listener: bool, default: bool
) -> None:
    config = jvm.jvm.org.apache.kafka.server.config.DynamicBrokerConfig
    for name in names:
        properties = jvm.jvm.java.util.Properties()
        properties.setProperty(f"listener.name.x.{name}" if listener else name, "1")
        assert config.securityConfigsWithoutListenerPrefix(properties).isEmpty() is listener
        assert config.perBrokerConfigs(properties).isEmpty() is default


@pytest.mark.parametrize(
    "flags",
    [
        ("--entity-type", "brokers", "--entity-name", "1", "--all"),
        ("--entity-type", "brokers", "--entity-name", "2"),
        ("--broker", "2"),
        ("--entity-type", "brokers", "--entity-default"),
        ("--broker-defaults", "--all"),
        ("--entity-type", "topics", "--entity-name", "TOPIC"),
        ("--topic", "TOPIC", "--all"),
    ],
)
def test_describe_tells_what_kafkas_tool_tells(three: Three, unique: str, flags: tuple[str, ...]) -> None:
    topic = f"{unique}-described"
    three.create(topic, TopicSpec(1, 1, (("retention.ms", "5000"),)))
    three.levels.alter(
        {DEFAULT_OF_ALL: {"background.threads": "12"}, TWO: {"background.threads": "11", "own.key": "x"}}
    )
    named = [topic if flag == "TOPIC" else flag for flag in flags]
    try:
        wait_for(lambda: "own.key" in three.own(TWO), SOON, "the config to be seen")
        three.agree(ResourceType.BROKER, "")
        kafkas = of_kafka(three.kafka_configs("--describe", *named))
        assert kafkas == of_ours(three.done("--describe", *named, "-o", "json"))
        assert kafkas
    finally:
        three.levels.alter(
            {DEFAULT_OF_ALL: {"background.threads": None}, TWO: dict.fromkeys(("background.threads", "own.key"))}
        )


def test_alter_does_what_kafkas_tool_does(three: Three, tmp_path: Path) -> None:
    file = tmp_path / "added.properties"
    file.write_text("log.cleaner.threads=2\nlog.cleanup.policy=compact,delete\n")
    steps: list[tuple[str, ...]] = [
        ("--add-config", "background.threads=11, num.io.threads = 9,log.cleanup.policy=[compact,delete]"),
        ("--add-config", "num.io.threads=7", "--delete-config", "background.threads,log.cleanup.policy"),
        ("--add-config-file", str(file)),
        ("--delete-config", "num.io.threads", "--delete-config", "log.cleaner.threads,not.there"),
        ("--delete-config", "log.cleanup.policy"),
    ]
    for step in steps:
        three.kafka_configs("--alter", "--entity-type", "brokers", "--entity-name", "2", *step)
        three.done("--alter", "--entity-type", "brokers", "--entity-name", "3", *step)
        wait_for(lambda: three.own(TWO) == three.own(THREE), SOON, f"both to have the same after {step}")
    assert three.own(TWO) == {}


def test_what_kafkas_tool_refuses_to_alter_is_refused_here(three: Three) -> None:
    for flags in (
        ("--alter", "--entity-type", "brokers", "--add-config", "background.threads=9"),
        ("--alter", "--broker", "2", "--add-config", "background.threads=none"),
        ("--alter", "--broker-defaults", "--add-config", "listener.name.secured.ssl.keystore.type=JKS"),
    ):
        assert kafka_refuses(three, *flags)
        assert three.run(*flags).code != 0
