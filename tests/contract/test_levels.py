"""One suite for every `ConfigLevels`: levels in KIP-226's order, and what a broker refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.faults import ClusterUnreachable, ItemFault, RightsMissing
from sinks.kafka.jvm.jvm_levels import fault_without_secrets
from sinks.kafka.ports.cluster import Origin, TopicSpec
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ConfigLevels, ResourceType
from tests.contract import level_looks
from tests.contract.acl_looks import broker_of, restricted
from tests.contract.level_looks import ONE, SOON, at, clear, levels_of, shows, written
from tests.memory.memory_levels import MemoryLevels

NAMES = ("background.threads", "log.cleaner.delete.retention.ms", "log.retention.ms", "num.io.threads")
"""Those that these tests write on a broker that others use as well."""


@dataclass(frozen=True)
class Levelled:
    """Levels, and a topic of the cluster."""

    levels: ConfigLevels
    topic: ConfigEntity


@pytest.fixture(params=["memory", pytest.param("jvm", marks=pytest.mark.kafka)])
def levelled(request: pytest.FixtureRequest, unique: str) -> Iterator[Levelled]:
    topic = ConfigEntity(ResourceType.TOPIC, f"{unique}-levels")
    if request.param == "memory":
        yield Levelled(MemoryLevels("b", topics={topic.name}, static={"node.id": "1"}), topic)
        return
    local = broker_of(request)
    kafka = open_cluster("b", {"bootstrap.servers": local.bootstrap})
    assert kafka.create_topics({topic.name: TopicSpec(1)})[topic.name] is None
    levels = levels_of(local)
    clear(levels, NAMES)
    wait_for(lambda: not levels.describe([topic]).errors, SOON, "the topic to be seen")
    yield Levelled(levels, topic)
    clear(levels, NAMES)
    kafka.close()


@pytest.fixture
def levels(levelled: Levelled) -> ConfigLevels:
    return levelled.levels


def test_every_level_that_is_set_is_told_in_the_order_of_precedence(levels: ConfigLevels) -> None:
    assert levels.alter({DEFAULT_OF_ALL: {"num.io.threads": "9"}, ONE: {"num.io.threads": "7"}}) == {
        DEFAULT_OF_ALL: None,
        ONE: None,
    }
    shows(levels, ONE, "num.io.threads", "7")
    shows(levels, DEFAULT_OF_ALL, "num.io.threads", "9")
    entry = at(levels, ONE)["num.io.threads"]
    assert (entry.value, entry.origin) == ("7", Origin.BROKER)
    assert written(entry) == [("7", Origin.BROKER), ("9", Origin.CLUSTER), ("8", Origin.DEFAULT)]


def test_what_is_deleted_falls_back_to_the_next_level(levels: ConfigLevels) -> None:
    levels.alter({DEFAULT_OF_ALL: {"background.threads": "11"}, ONE: {"background.threads": "12"}})
    shows(levels, ONE, "background.threads", "12")
    levels.alter({ONE: {"background.threads": None}})
    shows(levels, ONE, "background.threads", "11")
    levels.alter({DEFAULT_OF_ALL: {"background.threads": None}})
    shows(levels, ONE, "background.threads", "10")
    assert at(levels, ONE)["background.threads"].origin is Origin.DEFAULT


def test_cluster_wide_default_tells_what_is_set_there_and_no_other_level(levels: ConfigLevels) -> None:
    levels.alter({DEFAULT_OF_ALL: {"background.threads": "11"}, ONE: {"num.io.threads": "7"}})
    shows(levels, DEFAULT_OF_ALL, "background.threads", "11")
    entries = at(levels, DEFAULT_OF_ALL)
    assert written(entries["background.threads"]) == [("11", Origin.CLUSTER)]
    assert {entry.origin for entry in entries.values()} == {Origin.CLUSTER}
    assert "num.io.threads" not in entries


def test_topic_follows_the_brokers_under_the_name_that_they_have_for_it(levelled: Levelled) -> None:
    levels, topic = levelled.levels, levelled.topic
    levels.alter({DEFAULT_OF_ALL: {"log.retention.ms": "86400000"}})
    shows(levels, topic, "retention.ms", "86400000")
    assert levels.alter({topic: {"retention.ms": "3600000"}}) == {topic: None}
    shows(levels, topic, "retention.ms", "3600000")
    synonyms = at(levels, topic)["retention.ms"].synonyms
    assert [(one.name, one.value, one.origin) for one in synonyms[:2]] == [
        ("retention.ms", "3600000", Origin.TOPIC),
        ("log.retention.ms", "86400000", Origin.CLUSTER),
    ]


@pytest.mark.parametrize(
    ("entity", "name", "value", "said"),
    [
        (ONE, "node.id", "4", "Cannot update these configs dynamically"),
        (DEFAULT_OF_ALL, "log.retention.hours", "4", "Cannot update these configs dynamically"),
        (ONE, "ssl.keystore.location", "/x", "only per-listener"),
        (DEFAULT_OF_ALL, "listener.name.plaintext.ssl.keystore.location", "/x", "at default cluster level"),
        (DEFAULT_OF_ALL, "log.retention.ms", "soon", "Invalid value soon for configuration log.retention.ms"),
        (DEFAULT_OF_ALL, "num.io.threads", "0", "Invalid value 0 for configuration num.io.threads"),
        (DEFAULT_OF_ALL, "num.io.threads", "17", "value should not be greater than double the current value 8"),
        (ONE, "num.io.threads", "3", "value should be at least half the current value 8"),
        (ONE, "log.cleanup.policy", "burn", "Invalid value burn for configuration log.cleanup.policy"),
    ],
)
def test_what_a_broker_refuses_is_the_fault_of_its_entity(
    levels: ConfigLevels, entity: ConfigEntity, name: str, value: str, said: str
) -> None:
    before = at(levels, entity).get(name)
    fault = levels.alter({entity: {name: value, "background.threads": "11"}})[entity]
    assert fault is not None
    assert (fault.code, fault.retriable) == ("INVALID_REQUEST", False)
    assert said in fault.message
    assert at(levels, entity).get(name) == before


def test_entity_is_written_whole_or_not_at_all_and_others_beside_it(levels: ConfigLevels) -> None:
    wanted = {ONE: {"num.io.threads": "7"}, DEFAULT_OF_ALL: {"background.threads": "11", "num.io.threads": "none"}}
    faults = levels.alter(wanted)
    assert faults[ONE] is None
    assert faults[DEFAULT_OF_ALL] is not None
    shows(levels, ONE, "num.io.threads", "7")
    assert at(levels, ONE)["background.threads"].value == "10"


def test_what_is_only_validated_is_refused_alike_and_never_written(levels: ConfigLevels) -> None:
    assert levels.alter({ONE: {"num.io.threads": "7"}}, validate_only=True) == {ONE: None}
    assert levels.alter({ONE: {"num.io.threads": "0"}}, validate_only=True)[ONE] is not None
    # A write that comes after it is seen, so what was to be validated only would be, too.
    levels.alter({ONE: {"background.threads": "12"}})
    shows(levels, ONE, "background.threads", "12")
    assert at(levels, ONE)["num.io.threads"].value == "8"


def test_custom_config_is_taken_and_its_value_hidden(levels: ConfigLevels, unique: str) -> None:
    name = f"{unique}.reporter.token"
    assert levels.alter({DEFAULT_OF_ALL: {name: "hush"}}) == {DEFAULT_OF_ALL: None}
    wait_for(lambda: name in at(levels, DEFAULT_OF_ALL), SOON, "the custom config to be seen")
    entry = at(levels, DEFAULT_OF_ALL)[name]
    assert (entry.value, entry.sensitive) == (None, True)
    assert written(entry) == [(None, Origin.CLUSTER)]
    clear(levels, [name])


def test_broker_and_topic_that_are_not_there_are_faults_of_their_own(levels: ConfigLevels, unique: str) -> None:
    absent, gone, word = (
        ConfigEntity(ResourceType.BROKER, "77"),
        ConfigEntity(ResourceType.TOPIC, unique),
        ConfigEntity(ONE.type, "x"),
    )
    seen = levels.describe([ONE, absent, word, gone])
    assert seen.items.keys() == {ONE}
    assert {entity: fault.code for entity, fault in seen.errors.items()} == {
        absent: "BROKER_NOT_AVAILABLE",
        word: "BROKER_NOT_AVAILABLE",
        gone: "UNKNOWN_TOPIC_OR_PART",
    }
    assert seen.errors[absent].message == "there is no broker 77; there are: 1"
    faults = levels.alter({absent: {"num.io.threads": "7"}, ONE: {"num.io.threads": "7"}})
    assert (faults[absent], faults[ONE]) == (seen.errors[absent], None)


def test_brokers_are_those_that_are_up(levels: ConfigLevels) -> None:
    assert levels.brokers() == ["1"]


def test_secret_that_is_written_is_taken_out_of_the_fault_s_message() -> None:
    jaas = 'x.Module required user_x="hush";'
    fault = ItemFault("INVALID_REQUEST", f"Invalid value {jaas} for configuration x; 5 is less than 7")
    wanted = {"listener.name.sasl.plain.sasl.jaas.config": jaas, "num.io.threads": "5", "ssl.key.password": None}
    hidden = fault_without_secrets(fault, wanted)
    assert hidden.message == "Invalid value [hidden] for configuration x; 5 is less than 7"


@pytest.mark.kafka
@pytest.mark.spark
def test_password_that_a_broker_refuses_is_in_no_message(request: pytest.FixtureRequest) -> None:
    levels = levels_of(broker_of(request))
    fault = levels.alter({ONE: {"ssl.keystore.password": "hush"}}, validate_only=True)[ONE]
    assert fault is not None
    assert "hush" not in str(fault)


@pytest.mark.kafka
@pytest.mark.spark
def test_who_may_not_is_told_the_right_that_is_missing(request: pytest.FixtureRequest) -> None:
    levels = level_looks.jvm_levels("b", restricted(request))
    with pytest.raises(RightsMissing, match=r"cluster b: DescribeConfigs: .*; grant the principal DESCRIBE_CONFIGS"):
        levels.describe([DEFAULT_OF_ALL])
    with pytest.raises(RightsMissing, match=r"grant the principal ALTER_CONFIGS on the cluster b"):
        levels.alter({DEFAULT_OF_ALL: {"num.io.threads": "7"}})


@pytest.mark.kafka
@pytest.mark.spark
def test_unreachable_cluster_is_said_to_be_so(request: pytest.FixtureRequest) -> None:
    (port,) = free_ports(1)
    levels = level_looks.jvm_levels("b", {"bootstrap.servers": f"127.0.0.1:{port}", "default.api.timeout.ms": "1500"})
    for entity in (DEFAULT_OF_ALL, ONE):
        with pytest.raises(ClusterUnreachable, match=r"cluster b: .*refuses connections"):
            levels.describe([entity])
    with pytest.raises(ClusterUnreachable, match=r"cluster b: .*refuses connections"):
        levels.alter({DEFAULT_OF_ALL: {"num.io.threads": "7"}})
