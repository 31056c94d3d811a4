"""Another cluster takes over a cluster's address while a client of Kafka runs: what the client then does.

Clients of 4.4 send the ids of the cluster and of the node that they expect (KIP-1242). The client follows the address
all the same, so only Lockstep's own pinned ids tell two clusters apart.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from app.local.jar_sets import KAFKA_JARS, JarSet
from app.local.jars import fetched, pyspark_jar
from app.local.local_cluster import LocalCluster
from bench.matrix.releases import JARS_39, JARS_44

STRINGS = "org.apache.kafka.common.serialization.StringSerializer"
TOPIC = "moved"

PAIRS = [
    pytest.param(JARS_44, JARS_44, id="client 4.4, brokers 4.4"),
    pytest.param(JARS_44, KAFKA_JARS, id="client 4.4, brokers 4.3"),
    pytest.param(JARS_39, JARS_44, id="client 3.9, brokers 4.4"),
]

pytestmark = pytest.mark.endurance


@pytest.mark.parametrize(("client", "brokers"), PAIRS)
def test_a_running_producer_writes_to_the_cluster_that_took_over_its_address(
    client: JarSet, brokers: JarSet, tmp_path: Path
) -> None:
    cluster = LocalCluster("c", tmp_path / "c", jars=brokers)
    with java_with(client) as jvm, cluster:
        make_topic(jvm, cluster)
        producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(
            properties(jvm, {**at(cluster), "key.serializer": STRINGS, "value.serializer": STRINGS})
        )
        assert [written(jvm, producer, "first"), written(jvm, producer, "second")] == [0, 1]
        before = id_of(jvm, cluster)
        cluster.stop()
        shutil.rmtree(tmp_path / "c" / "data-1")
        cluster.start()
        make_topic(jvm, cluster)
        assert id_of(jvm, cluster) != before
        assert written(jvm, producer, "third") == 0
        producer.close()


@contextmanager
def java_with(jars: JarSet) -> Iterator[Any]:
    """A Java of its own with the client of a version of Kafka."""
    classpath = os.pathsep.join(map(str, fetched(jars)))
    port, token = launch_gateway(
        jarpath=str(pyspark_jar("py4j-*.jar")), classpath=classpath, die_on_exit=True, enable_auth=True
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()


def at(cluster: LocalCluster) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap}


def properties(jvm: Any, values: Mapping[str, str]) -> Any:
    made = jvm.java.util.Properties()
    for key, value in values.items():
        made.put(key, value)
    return made


def make_topic(jvm: Any, cluster: LocalCluster) -> None:
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties(jvm, at(cluster)))
    admin.createTopics([jvm.org.apache.kafka.clients.admin.NewTopic(TOPIC, 1, 1)]).all().get()
    admin.close()


def id_of(jvm: Any, cluster: LocalCluster) -> str:
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties(jvm, at(cluster)))
    found: str = admin.describeCluster().clusterId().get()
    admin.close()
    return found


def written(jvm: Any, producer: Any, value: str) -> int:
    """Offset at which the broker has it."""
    sent = producer.send(jvm.org.apache.kafka.clients.producer.ProducerRecord(TOPIC, value))
    offset: int = sent.get().offset()
    return offset
