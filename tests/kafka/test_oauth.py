"""OAUTHBEARER with client credentials, in Java's settings, before a real broker: librdkafka, the JVM and Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from app.local.jars import PROJECT
from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.wiring import admin_of, open_cluster
from sinks.faults import RightsMissing
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.jvm.jvm_watches import JvmWatch
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicConfigs, TopicSpec
from streaming.flow import Flow
from streaming.mm2.codec import encode_record
from streaming.mm2.internal_topic_names import TopicRole
from streaming.mm2.records import Heartbeat, RecordKind
from streaming.query import collect_hints, start, trace_of
from streaming.query_plan import ClusterSource, QueryPlan
from tests.kafka.handler_jar import FILE_OPTION, HANDLER, handler_jar
from tests.kafka.tokens import ALLOWED, CLIENT, LISTENER, LOGIN, SCOPE, SECRET, TokenEndpoint, token, token_endpoint
from tests.quick_java import QUICK_KAFKA

SOON = 180.0
HANDLERS = ("oauthbearer.OAuthBearerLoginCallbackHandler", "oauthbearer.secured.OAuthBearerLoginCallbackHandler")
"""Kafka's name of it today, and an older one; the kafka-clients of Spark's connector has both."""


@dataclass(frozen=True)
class Guarded:
    """A cluster whose users come with tokens, and where they get them."""

    cluster: LocalCluster
    url: str
    topics: list[str] = field(default_factory=list)

    def properties(self, secret: str = SECRET, handler: str = HANDLERS[0]) -> dict[str, str]:
        """A client's settings, as a user writes them."""
        return {
            "bootstrap.servers": self.cluster.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.login.callback.handler.class": f"org.apache.kafka.common.security.{handler}",
            "sasl.jaas.config": f'{LOGIN} clientId="{CLIENT}" clientSecret="{secret}" scope="{SCOPE}";',
        }

    def client(self, secret: str = SECRET) -> KafkaCluster:
        return open_cluster("o", self.properties(secret))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One broker and one token endpoint for all tests here."""
    with token_endpoint() as url:
        folder = tmp_path_factory.mktemp("oauth")
        overrides = LISTENER | {"sasl.oauthbearer.jwks.endpoint.url": url}
        options = (*QUICK_KAFKA, f"{ALLOWED}{url}")
        with LocalCluster(
            "o", folder, heap="256m", java_options=options, overrides=overrides, allow_everyone=True
        ) as cluster:
            yield Guarded(cluster, url)


def make_topic(client: KafkaCluster, topic: str) -> TopicConfigs:
    """A topic that is there and visible; its configs."""
    assert client.create_topics({topic: TopicSpec(1, 1, (("retention.ms", "3600000"),))}) == {topic: None}
    return wait_for(lambda: client.describe_topic_configs([topic]).items.get(topic, {}), SOON, f"{topic} to be visible")


def test_librdkafka_lists_describes_appends_and_reads_with_a_token(guarded: Guarded) -> None:
    with closing(guarded.client()) as client:
        assert make_topic(client, "tokens")["retention.ms"].value == "3600000"
        wait_for(lambda: client.list_topics().get("tokens") == 1, SOON, "the topic to be listed")
        client.append_log("tokens", [(b"k", b"v")])
        assert client.read_log("tokens") == [(b"k", b"v")]
    assert set(TokenEndpoint.granted) == {SCOPE}


@pytest.mark.parametrize("handler", HANDLERS)
def test_the_jvms_admin_looks_with_a_token_by_either_name_of_the_handler(
    guarded: Guarded, spark: SparkSession, unique: str, handler: str
) -> None:
    with closing(guarded.client()) as client:
        make_topic(client, unique)
    properties = guarded.properties(handler=handler)
    with closing(admin_of("o", properties)) as admin:
        assert JvmWatch(admin).changed([[unique]]) == {unique}
        assert JvmLevels(admin).brokers() == ["1"]


def test_sparks_source_reads_with_a_token(guarded: Guarded, spark: SparkSession, tmp_path: Path) -> None:
    with closing(guarded.client()) as client:
        make_topic(client, "heartbeats")
        client.append_log("heartbeats", [encode_record(Heartbeat("a", "o", 1))])
    role = TopicRole(RecordKind.HEARTBEAT, Flow("a", "o"))
    source = ClusterSource("o", guarded.properties(), {"heartbeats": role})
    rows: list[int] = []

    def sink(batch: DataFrame, _: int) -> None:
        rows.append(collect_hints(batch).rows)

    query = start(spark, QueryPlan("o", (source,), 1.0, tmp_path), sink, once=True)
    assert query.awaitTermination(4 * int(SOON))
    assert trace_of(query) is None
    assert sum(rows) == 1


def test_the_jvms_admin_names_the_cluster_of_a_wrong_client_secret_and_shows_none(
    guarded: Guarded, spark: SparkSession
) -> None:
    with pytest.raises(RightsMissing) as error:
        JvmLevels(admin_of("o", guarded.properties("wr0ng-s3cret"))).brokers()
    assert str(error.value).startswith(
        "cluster o: Java's client cannot be created with these settings: KafkaException, "
    )
    assert "s3cret" not in str(error.value)


def test_a_wrong_client_secret_names_the_cluster_and_shows_no_secret(guarded: Guarded) -> None:
    with closing(guarded.client("wr0ng-s3cret")) as client, pytest.raises(RightsMissing) as error:
        client.ping()
    assert str(error.value).startswith("cluster o: ")
    assert "s3cret" not in str(error.value)


READ_BY_A_COMMAND = """
import sys
from contextlib import closing
import orjson
from app.wiring import open_cluster
with closing(open_cluster("o", orjson.loads(sys.argv[1]))) as client:
    client.create_log("by-handler", 1, {})
    client.append_log("by-handler", [(b"k", b"v")])
    print(client.read_log("by-handler"))
"""


def run_with(jars: str, properties: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A program of its own, with a JVM of its own, that asks the cluster and writes and reads a record."""
    command = [sys.executable, "-c", READ_BY_A_COMMAND, json.dumps(properties)]
    environment = {**os.environ, "LOCKSTEP_JARS": jars}
    return subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, timeout=900
    )


def own_handler(guarded: Guarded, folder: Path, name: str = HANDLER) -> dict[str, str]:
    """The login of a handler class that comes in a jar."""
    (folder / "token").write_text(token())
    jaas = f'{LOGIN} {FILE_OPTION}="{folder / "token"}";'
    properties = {**guarded.properties(), "sasl.login.callback.handler.class": name, "sasl.jaas.config": jaas}
    return {key: value for key, value in properties.items() if not key.startswith("sasl.oauthbearer.")}


def test_handler_class_of_a_jar_logs_in_java_and_gives_librdkafka_its_token(guarded: Guarded, tmp_path: Path) -> None:
    run = run_with(str(handler_jar(tmp_path)), own_handler(guarded, tmp_path))
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[(b'k', b'v')]"


def test_handler_class_that_is_in_no_jar_is_named_with_what_to_do(guarded: Guarded, tmp_path: Path) -> None:
    run = run_with("", own_handler(guarded, tmp_path, "acme.Missing"))
    assert "cluster o: Java finds no class acme.Missing" in run.stderr
    assert "LOCKSTEP_JARS" in run.stderr


def test_jar_that_is_not_there_is_named(guarded: Guarded, tmp_path: Path) -> None:
    run = run_with(str(tmp_path / "none.jar"), own_handler(guarded, tmp_path))
    assert f"LOCKSTEP_JARS names {tmp_path / 'none.jar'}, which this user cannot read as a file" in run.stderr
