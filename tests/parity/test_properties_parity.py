"""The same reading of a file by ours and by Kafka's own classes: format, references, keys, defaults, precedence."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import javaproperties
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from app.properties.config_providers import directory_provider, file_provider, resolve
from app.properties.keys import TABLE
from app.properties.known import ROLES, kafka_names
from app.properties.mistakes import Findings, PropertyLine
from app.properties.parse import parse
from app.properties.scoped_keys import Properties
from app.properties.value_types import CLASS
from streaming.flow import Flow
from tests.parity.kafka_classes import MIRROR, Kafka

RUNTIME = "org.apache.kafka.connect.runtime.distributed."
A_TO_B = Flow("a", "b")


def static(kafka: Kafka, class_name: str, name: str) -> Any:
    """A static field, public or not."""
    field = kafka.jvm.java.lang.Class.forName(class_name).getDeclaredField(name)
    field.setAccessible(True)
    return field.get(None)


@cache
def method(kafka: Kafka, class_name: str, name: str) -> Any:
    """The method of that name that takes no Map, public or not."""
    for found in kafka.jvm.java.lang.Class.forName(class_name).getDeclaredMethods():
        if found.getName() == name and "Map" not in str(found.toString()).partition("(")[2]:
            found.setAccessible(True)
            return found
    raise AssertionError(f"{class_name} has no {name}")


def call(kafka: Kafka, class_name: str, name: str, instance: Any, *arguments: Any) -> Any:
    """What that method returns."""
    kind = kafka.jvm.java.lang.Class.forName("java.lang.Object")
    array = kafka.jvm.java.lang.reflect.Array.newInstance(kind, len(arguments))
    for index, argument in enumerate(arguments):
        array[index] = argument
    return method(kafka, class_name, name).invoke(instance, array)


def definitions(kafka: Kafka) -> Mapping[str, list[Any]]:
    """Kafka's ConfigDefs by what app/properties/kafka-names.json calls them."""
    crypto = static(kafka, f"{RUNTIME}Crypto", "SYSTEM")
    clients = "org.apache.kafka.clients."
    connectors = ("MirrorSourceConfig", "MirrorCheckpointConfig", "MirrorHeartbeatConfig")
    filters = ("DefaultTopicFilter$TopicFilterConfig", "DefaultGroupFilter$GroupFilterConfig")
    return {
        "client": [static(kafka, f"{MIRROR}MirrorClientConfig", "CLIENT_CONFIG_DEF")],
        "admin": [call(kafka, f"{clients}admin.AdminClientConfig", "configDef", None)],
        "consumer": [call(kafka, f"{clients}consumer.ConsumerConfig", "configDef", None)],
        "producer": [call(kafka, f"{clients}producer.ProducerConfig", "configDef", None)],
        "worker": [call(kafka, f"{RUNTIME}DistributedConfig", "config", None, crypto)],
        "mirror": [
            *(static(kafka, f"{MIRROR}{name}", "CONNECTOR_CONFIG_DEF") for name in connectors),
            *(static(kafka, f"{MIRROR}{name}", "DEF") for name in filters),
            static(kafka, f"{MIRROR}DefaultConfigPropertyFilter$ConfigPropertyFilterConfig", "DEF"),
            call(kafka, f"{MIRROR}MirrorMakerConfig", "config", None),
        ],
    }


def test_the_names_of_kafka_are_those_of_its_classes(kafka: Kafka) -> None:
    known = kafka_names()
    for kind, found in definitions(kafka).items():
        names = {name for definition in found for name in definition.names()}
        assert known[kind] | known["client"] == names | known["client"], kind
    assert known["client"] == set(definitions(kafka)["client"][0].names())


def test_defaults_of_mm2s_keys_are_mm2s(kafka: Kafka) -> None:
    theirs: dict[str, Any] = {}
    for definition in definitions(kafka)["mirror"]:
        theirs |= dict(definition.defaultValues().items())
    compared = 0
    for key in TABLE.values():
        # enabled: false, because MirrorMakerConfig says so in its own map; there is no definition to compare.
        if key.name in theirs and not key.prefixed and key.name not in ("enabled", "config.providers"):
            default = theirs[key.name]
            if isinstance(key.default, tuple):
                default = tuple(default)
            elif key.type is CLASS:
                default = default.getName()
            assert key.default == default, key.name
            compared += 1
    assert compared > 15


@example(text="\\\r#")
@example(text="\\\n#a=b\n")
@example(text=" \\\r\n\t\\\n!\\\na=b")
@example(text="a\\\n#b")
@example(text="#\\\n\\\n#a")
@given(text=st.text(st.sampled_from("ab=: \t\f\\\n\r#!u041\u00e9\0"), max_size=30))
def test_a_file_is_read_as_java_reads_it(kafka: Kafka, text: str) -> None:
    findings = Findings("f")
    entries = parse(text.encode("iso-8859-1"), findings)
    properties = kafka.jvm.java.util.Properties()
    try:
        properties.load(kafka.jvm.java.io.ByteArrayInputStream(text.encode("iso-8859-1")))
    except Py4JJavaError as error:
        assert "Malformed \\uxxxx" in str(error.java_exception.getMessage())
        assert findings.mistakes
    else:
        assert not findings.mistakes
        # A backslash alone is an empty key to Java, and nothing to us: no program has an empty key.
        ours, theirs = {key: entry.raw for key, entry in entries.items()}, dict(properties.items())
        assert {key: raw for key, raw in ours.items() if key} == {key: raw for key, raw in theirs.items() if key}


PARTS = st.sampled_from(
    ["$", "{", "}", ":", "x", "{F}", "{D}", "plain", "odd", "a:b", "file", "dir", "${", " ", "none"]
)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "plain").write_text("from a folder")
    (folder / "odd").write_text("${file:x:plain}")
    (folder / "f.properties").write_text("plain = from a file\nodd = }:{\na\\:b = colon\n")
    return folder


def references(secrets: Path) -> st.SearchStrategy[str]:
    """Texts with references to what is there, to what is not, and to nothing at all."""
    known = st.builds(
        lambda provider, path, key: f"${{{provider}:{path}:{key}}}",
        st.sampled_from(["file", "dir"]),
        st.sampled_from([str(secrets), f"{secrets}/f.properties"]),
        st.sampled_from(["plain", "odd", "a:b", "none", ""]),
    )
    return st.lists(known | PARTS, max_size=6).map("".join)


@settings(deadline=None)
@given(data=st.data())
def test_references_are_resolved_as_kafkas_transformer_does(kafka: Kafka, secrets: Path, data: st.DataObject) -> None:
    """Where we see a problem, Kafka leaves the reference as it is, or fails."""
    text = data.draw(references(secrets))
    providers = {"file": file_provider(), "dir": directory_provider()}
    entry = resolve(PropertyLine("k", text, 1, text), providers, Findings("f"))
    package = kafka.jvm.org.apache.kafka.common.config
    theirs = {"file": package.provider.FileConfigProvider(), "dir": package.provider.DirectoryConfigProvider()}
    for provider in theirs.values():
        provider.configure({})
    try:
        value = package.ConfigTransformer(theirs).transform({"k": text}).data()["k"]
    except Py4JJavaError:
        assert entry.problem
    else:
        if entry.problem:
            assert "${" in value
        else:
            assert entry.value == value.strip()


NAMES = ("ssl.protocol", "sasl.jaas.config", "client.id", "fetch.max.bytes", "admin.timeout.ms")
ENDS = tuple(f"a->b.{end}.{role}." for end in ("source", "target") for role in (*ROLES, "cluster"))
SLOTS = ENDS + tuple(
    f"{scope}{role}" for scope in ("", "a.", "b.", "a->b.", "b->a.") for role in ("", *(f"{r}." for r in ROLES))
)
FLOW_KEYS = tuple(
    f"{scope}{name}" for scope in ("", "a->b.", "b->a.", "a.") for name in ("topics", "replication.factor")
)
FIXED = {
    "clusters": "a,b",
    "a.bootstrap.servers": "h:1",
    "b.bootstrap.servers": "h:2",
    "a->b.enabled": "true",
    # Without this, MirrorMakerConfig searches all jars for plug-ins each time that it is made.
    "plugin.discovery": "service_load",
}
FILES = st.dictionaries(
    st.builds("".join, st.tuples(st.sampled_from(SLOTS), st.sampled_from(NAMES))).filter(
        lambda key: "timeout" not in key
    )
    | st.sampled_from(FLOW_KEYS),
    st.integers(1, 99).map(str),
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(lines=FILES)
def test_what_holds_for_a_flow_and_its_clients_is_what_holds_for_mm2(kafka: Kafka, lines: Mapping[str, str]) -> None:
    written = {**lines, **FIXED}
    findings = Findings("f")
    ours = Properties(parse(javaproperties.dumps(written).encode(), findings), ("a", "b"), findings)
    maker = kafka.mirror.MirrorMakerConfig(written)
    connector = kafka.jvm.java.lang.Class.forName(f"{MIRROR}MirrorSourceConnector")
    base = maker.connectorBaseConfig(kafka.mirror.SourceAndTarget("a", "b"), connector)
    config = kafka.mirror.MirrorSourceConfig(base)
    for name in ("topics", "replication.factor", "enabled"):
        entry = ours.entry(name, A_TO_B)
        assert (entry.value if entry else None) == base.get(name)
    for end, alias in (("source", "a"), ("target", "b")):
        for role in ROLES:
            theirs = dict(call(kafka, f"{MIRROR}MirrorConnectorConfig", f"{end}{role.title()}Config", config, "r"))
            assert ours.client(role, alias, A_TO_B) == without_mm2s_own(role, theirs), (alias, role)


def without_mm2s_own(role: str, client: dict[str, str]) -> dict[str, str]:
    """Client settings without what MirrorConnectorConfig adds by itself."""
    own = client.pop("client.id").rpartition("a->b|")[0].removesuffix("|")
    if role == "consumer":
        assert client.pop("enable.auto.commit") == "false"
        assert client.pop("auto.offset.reset") == "earliest"
    return client | ({"client.id": own} if own else {})
