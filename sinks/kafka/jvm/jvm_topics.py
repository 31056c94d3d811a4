"""Topics of one cluster, their partitions and their configs, through Java's Admin."""

from __future__ import annotations

import struct
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sinks.faults import ClusterUnreachable, IncrementalUnsupported, ItemFault, NotSupported, Observed, where_it_is
from sinks.kafka.jvm.java_admin import JavaAdmin, Settled
from sinks.kafka.jvm.java_errors import TOO_OLD, UNKNOWN_TOPIC
from sinks.kafka.jvm.java_rows import TEXT, WORD, LeftOut, Make
from sinks.kafka.ports.cluster import (
    Alterations,
    ConfigEntry,
    Faults,
    Origin,
    Replicas,
    TopicConfigs,
    TopicFound,
    TopicSpec,
    chunks,
)
from sinks.kafka.ports.config_levels import ConfigEntity, ConfigValues, ResourceType
from sinks.kafka.ports.permitted import ask_again
from streaming.mm2.records import TopicPartition

ADMIN, CONFIG = "org.apache.kafka.clients.admin.", "org.apache.kafka.common.config."
NEW_TOPIC = Make(ADMIN + "NewTopic", (TEXT, "int", "short"))
NEW_PARTITIONS = Make(ADMIN + "NewPartitions", ("int",), by="increaseTo")
CONFIG_RESOURCE = Make(CONFIG + "ConfigResource", (CONFIG + "ConfigResource$Type", TEXT))
ALTERATION = Make(ADMIN + "AlterConfigOp", (Make(ADMIN + "ConfigEntry", (TEXT, TEXT)), ADMIN + "AlterConfigOp$OpType"))
UUID = Make("org.apache.kafka.common.Uuid", (TEXT,), by="fromString")

NODES = {"org.apache.kafka.common.Node": ("hash", "idString", "isFenced", "rack")}
NODE = {"org.apache.kafka.common.Node": ("hash", "host", "idString", "isFenced", "port", "rack")}
DESCRIPTION = {ADMIN + "TopicDescription": ("name", "internal")}
PARTITION = "org.apache.kafka.common.TopicPartitionInfo"
REPLICAS = DESCRIPTION | NODE | {PARTITION: ("elr", "lastKnownElr")}
LEADERS = DESCRIPTION | NODE | {PARTITION: ("elr", "lastKnownElr", "replicas", "isr")}
COUNTS = DESCRIPTION | {PARTITION: ("elr", "lastKnownElr", "replicas", "isr", "leader", "partition")}
ENTRIES = {ADMIN + "ConfigEntry": ("name", "synonyms", "type", "documentation")}
"""Fields of an answer that stay in the JVM, by class."""

TOPICS_IN_A_REQUEST = 1000
"""Topics whose configs come in one text; each topic has 2 KB."""

PING_TIMEOUT = 5.0
"""Seconds that a ping may take. A slower cluster counts as down."""

BETWEEN_ASKING = (0.0, 0.1, 0.3)
"""Seconds to wait before each time that a broker is asked whether a topic is gone. Right after its start a broker may
not know the topic yet."""

NO_ID = {"mostSignificantBits": 0, "leastSignificantBits": 0}
UNKNOWN_ID = "UNKNOWN_TOPIC_ID"
URL_SAFE = str.maketrans("+/", "-_")
"""Turns the base64 of an id in ledgers into that of `Uuid.toString`."""

DESCRIBE_TOPICS, DESCRIBE_CONFIGS = "DescribeTopics", "DescribeConfigs"
INCREMENTAL = "IncrementalAlterConfigs"


@lru_cache(maxsize=65536)
def _entry(value: str | None, source: str, read_only: bool, sensitive: bool) -> ConfigEntry:
    # Thousands of topics share a few dozen different entries.
    return ConfigEntry(value, Origin(source), read_only, sensitive)


class JvmTopics:
    """Topics of one cluster. May be called from any thread. Errors as in `ports.cluster`."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin = admin
        self.listed_ids: Mapping[str, str] = {}

    def cluster_id(self) -> str:
        described: list[Any] = []

        def describe(client: Any) -> Any:
            described[:] = [client.describeCluster()]
            return described[0].clusterId()

        found = self._admin.call("DescribeCluster", describe)
        nodes = self._admin.rows.read(described[0].nodes().getNow(None), NODES)
        self._admin.learn_nodes((one["host"], one["port"]) for one in nodes or ())
        if found is None:
            alias = self._admin.alias
            raise ClusterUnreachable(
                f"cluster {alias}: the broker that answers has no cluster id; {where_it_is(alias)}"
            )
        return str(found)

    def broker_count(self) -> int:
        return int(self._admin.call("DescribeCluster", lambda client: client.describeCluster().nodes()).size())

    def ping(self) -> None:
        """Raises ClusterUnreachable if no broker answers within PING_TIMEOUT, or within a request's time limit if that
        is less."""
        within = int(min(PING_TIMEOUT, self._admin.timeout) * 1000)
        options = self._admin.jvm.org.apache.kafka.clients.admin.DescribeClusterOptions()
        options.timeoutMs(self._admin.jvm.java.lang.Integer.valueOf(within))
        self._admin.call("DescribeCluster", lambda client: client.describeCluster(options).clusterId())

    def names(self) -> list[str]:
        options = self._admin.jvm.org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(True)
        found = self._admin.call("Metadata", lambda client: client.listTopics(options).names())
        listed: list[str] = self._admin.rows.read(found)
        return sorted(listed)

    def list_topics(self) -> dict[str, int]:
        names = self.names()
        found = self._described(names, COUNTS)
        self.listed_ids = {name: _id_of(one["topicId"]) for name, one in found.items()}
        return {name: len(found[name]["partitions"]) if name in found else 0 for name in names}

    def find_topic(self, topic: str) -> TopicFound | None:
        found = self._described([topic], COUNTS).get(topic)
        return TopicFound(len(found["partitions"]), _id_of(found["topicId"])) if found is not None else None

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        found = self._described(sorted(topics), COUNTS)
        return {name: _id_of(one["topicId"]) for name, one in found.items()}

    def replicas(self) -> Replicas:
        brokers, found = self.broker_count(), self._described(self.names(), REPLICAS)
        factors, in_sync, counts = dict[str, int](), dict[str, int](), dict[str, int]()
        offline, lagging = set[TopicPartition](), set[TopicPartition]()
        for name, topic in found.items():
            partitions = topic["partitions"]
            factors[name] = min((len(one["replicas"]) for one in partitions), default=0)
            in_sync[name] = min((len(one["isr"]) for one in partitions), default=0)
            counts[name] = len(partitions)
            offline |= {TopicPartition(name, one["partition"]) for one in partitions if not has_leader(one)}
            lagging |= {
                TopicPartition(name, one["partition"]) for one in partitions if len(one["isr"]) < len(one["replicas"])
            }
        return Replicas(brokers, factors, in_sync, counts, frozenset(offline), frozenset(lagging))

    def troubles(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, ItemFault]:
        """Returns partitions that are gone or have no leader, each with its fault. `partitions`: some that did not
        answer."""
        topics = sorted({one.topic for one in partitions})
        settled = described_topics(self._admin, topics)
        found = self._admin.answers(settled, LEADERS)
        troubled: dict[TopicPartition, ItemFault] = {}
        for one in partitions:
            if one.topic in settled.faults:
                troubled[one] = settled.faults[one.topic]
                continue
            numbered = {each["partition"]: each for each in found[one.topic]["partitions"]}
            if one.partition not in numbered:
                troubled[one] = ItemFault(UNKNOWN_TOPIC, "it has no such partition", retriable=True)
            elif not has_leader(numbered[one.partition]):
                troubled[one] = ItemFault("LEADER_NOT_AVAILABLE", "no broker leads it now", retriable=True)
        return troubled

    def confirmed_absent(self, topics: Collection[str]) -> set[str]:
        absent = set(topics)
        for pause in BETWEEN_ASKING:
            if not absent:
                break
            time.sleep(pause)
            faults = described_topics(self._admin, sorted(absent)).faults
            absent = {name for name, fault in faults.items() if fault.code == UNKNOWN_TOPIC}
        return absent

    def _described(self, names: Sequence[str], left_out: LeftOut) -> dict[str, Any]:
        return self._admin.answers(described_topics(self._admin, names), left_out) if names else {}

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        items: dict[str, TopicConfigs] = {}
        errors: dict[str, ItemFault] = {}
        for some in chunks(list(dict.fromkeys(topics)), TOPICS_IN_A_REQUEST):
            settled = described_configs(self._admin, [ConfigEntity(ResourceType.TOPIC, name) for name in some])
            errors |= {one.name: fault for one, fault in settled.faults.items()}
            for one, config in self._admin.answers(settled, ENTRIES).items():
                items[one.name] = {
                    key: _entry(entry["value"], entry["source"], entry["isReadOnly"], entry["isSensitive"])
                    for key, entry in config["entries"].items()
                }
        return Observed(items, errors)

    def create_topics(self, specs: Mapping[str, TopicSpec], validate_only: bool = False) -> Faults:
        if not specs:
            return {}
        names, rows = list(specs), self._admin.rows
        new = rows.made(
            NEW_TOPIC, ([name, str(spec.partitions), str(spec.replication_factor)] for name, spec in specs.items())
        )
        configs = [[name, key, value] for name, spec in specs.items() for key, value in spec.configs]
        if configs:
            by_name = rows.maps(WORD, WORD, WORD, configs)
            for at, (name, spec) in enumerate(specs.items()):
                if spec.configs:
                    new[at].configs(by_name.get(name))
        options = self._admin.jvm.org.apache.kafka.clients.admin.CreateTopicsOptions().validateOnly(validate_only)
        asked = rows.texts(names)
        ask = self._admin.settle if validate_only else self._admin.write
        settled = ask(
            "CreateTopics", names, lambda client: rows.of_map(client.createTopics(new, options).values(), asked)
        )
        return _faults(settled)

    def create_partitions(self, counts: Mapping[str, int]) -> Faults:
        if not counts:
            return {}
        # A topic that has as many already answers INVALID_PARTITIONS, like one that cannot grow to that number.
        existing = {name: len(one["partitions"]) for name, one in self._described(list(counts), COUNTS).items()}
        growing = {name: count for name, count in counts.items() if existing.get(name, 0) < count}
        faults: Faults = dict.fromkeys(counts)
        if growing:
            ask_again()
            rows = self._admin.rows
            wanted = rows.pairs(WORD, NEW_PARTITIONS, ([name, str(count)] for name, count in growing.items()))
            asked = rows.texts(growing)
            faults |= _faults(
                self._admin.write(
                    "CreatePartitions",
                    list(growing),
                    lambda client: rows.of_map(client.createPartitions(wanted).values(), asked),
                )
            )
        return faults

    def delete_topics(self, topics: Collection[str], ids: Mapping[str, str] | None = None) -> Faults:
        known = {name: found for name in topics if (found := (ids or {}).get(name))}
        names, rows, faults = [name for name in topics if name not in known], self._admin.rows, dict[str, Any]()
        if names:
            asked = rows.texts(names)
            faults |= self._deleted(names, lambda client: client.deleteTopics(asked).topicNameValues(), asked)
        if known:
            ask_again()
            uuids = rows.made(UUID, ([found.translate(URL_SAFE)] for found in known.values()))
            these = self._admin.jvm.org.apache.kafka.common.TopicCollection.ofTopicIds(uuids)
            faults |= self._deleted(list(known), lambda client: client.deleteTopics(these).topicIdValues(), uuids)
        return faults

    def _deleted(self, names: Sequence[str], delete: Callable[[Any], Any], keys: Any) -> Faults:
        settled = self._admin.write("DeleteTopics", names, lambda client: self._admin.rows.of_map(delete(client), keys))
        return {
            name: None if fault is None or fault.code in (UNKNOWN_TOPIC, UNKNOWN_ID) else fault
            for name, fault in _faults(settled).items()
        }

    def alter_topic_configs(self, alterations: Alterations) -> Faults:
        if not alterations:
            return {}
        wanted = {ConfigEntity(ResourceType.TOPIC, topic): changes for topic, changes in alterations.items()}
        faults = altered_configs(self._admin, wanted).faults
        return {one.name: faults.get(one) for one in wanted}

    def replace_topic_configs(self, overrides: Mapping[str, Mapping[str, str]]) -> Faults:
        if not overrides:
            return {}
        names, rows, client = list(overrides), self._admin.rows, self._admin.jvm.org.apache.kafka.clients.admin
        asked = config_resources(self._admin, [ConfigEntity(ResourceType.TOPIC, name) for name in names])
        wanted = self._admin.jvm.java.util.HashMap()
        for at, entries in enumerate(overrides.values()):
            made = rows.made(Make(ADMIN + "ConfigEntry", (TEXT, TEXT)), entries.items())
            wanted.put(asked[at], client.Config(made))
        settled = self._admin.write(
            "AlterConfigs", names, lambda java: rows.of_map(java.alterConfigs(wanted).values(), asked)
        )
        return _faults(settled)


def described_topics(admin: JavaAdmin, names: Sequence[str], *options: Any) -> Settled[str]:
    """Returns descriptions, which stay in the JVM."""
    rows, asked = admin.rows, admin.rows.texts(names)
    return admin.settle(
        DESCRIBE_TOPICS,
        names,
        lambda client: rows.of_map(client.describeTopics(asked, *options).topicNameValues(), asked),
    )


def config_resources(admin: JavaAdmin, entities: Iterable[ConfigEntity]) -> Any:
    """Returns a Java list of ConfigResources."""
    return admin.rows.made(CONFIG_RESOURCE, ([one.type.value, one.name] for one in entities))


def described_configs(admin: JavaAdmin, entities: Sequence[ConfigEntity], *options: Any) -> Settled[ConfigEntity]:
    """Returns the configs of each entity, which stay in the JVM."""
    rows, asked = admin.rows, config_resources(admin, entities)
    return admin.settle(
        DESCRIBE_CONFIGS, entities, lambda client: rows.of_map(client.describeConfigs(asked, *options).values(), asked)
    )


def altered_configs(
    admin: JavaAdmin, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
) -> Settled[ConfigEntity]:
    """Alters each entity all or nothing. Raises as `JavaAdmin.write`, and IncrementalUnsupported."""
    rows, entities = admin.rows, list(wanted)
    changes = rows.groups(
        CONFIG_RESOURCE,
        ALTERATION,
        (
            [one.type.value, one.name, name, value, "SET" if value is not None else "DELETE"]
            for one in entities
            for name, value in wanted[one].items()
        ),
    )
    asked = config_resources(admin, entities)
    options = admin.jvm.org.apache.kafka.clients.admin.AlterConfigsOptions().validateOnly(validate_only)
    try:
        settled = admin.write(
            INCREMENTAL,
            entities,
            lambda client: rows.of_map(client.incrementalAlterConfigs(changes, options).values(), asked),
        )
    except NotSupported as error:
        raise IncrementalUnsupported(str(error)) from error
    for fault in settled.faults.values():
        if fault.code == TOO_OLD:
            raise IncrementalUnsupported(f"cluster {admin.alias}: {INCREMENTAL}: {fault}")
    return settled


def has_leader(partition: Mapping[str, Any]) -> bool:
    """Whether this partition, as JSON of Java's Admin, has a leader."""
    leader = partition["leader"]
    return leader is not None and leader["id"] >= 0


def _faults(settled: Settled[str]) -> Faults:
    return {name: settled.faults.get(name) for name in settled.keys}


def _id_of(uuid: Mapping[str, int]) -> str:
    """Returns an id in plain base64, as ledgers have it; `Uuid.toString` has the URL-safe alphabet. "" for
    `Uuid.ZERO_UUID`."""
    if uuid == NO_ID:
        return ""
    both = struct.pack(">qq", uuid["mostSignificantBits"], uuid["leastSignificantBits"])
    return b64encode(both).decode().rstrip("=")
