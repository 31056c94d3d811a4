"""One suite for every cluster: what `sinks.kinds.quotas.quota_port` promises, and what kafka-configs shows of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from app.local.jars import kafka_jars
from app.local.java import java
from app.local.waiting import wait_for
from app.wiring import admin_of
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kinds.quotas.jvm_quotas import JvmQuotas
from sinks.kinds.quotas.quota_port import ClientQuotas, Entity, Quotas
from tests.conftest import Clusters
from tests.memory.memory_quotas import MemoryQuotas
from tests.quick_java import QUICK_KAFKA

SOON = 180.0
PRODUCE, CONSUME, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATE, CONNECT = "controller_mutation_rate", "connection_creation_rate"
REAL = pytest.mark.kafka


class RealPorts:
    """As much of a cluster's ports as quotas need."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin = admin

    def java(self) -> JavaAdmin:
        return self._admin


@pytest.fixture(params=["memory", pytest.param("jvm", marks=REAL)])
def quotas(request: pytest.FixtureRequest) -> Iterator[ClientQuotas]:
    if request.param == "memory":
        yield MemoryQuotas("b")
        return
    clusters: Clusters = request.getfixturevalue("clusters")
    admin = admin_of("b", {"bootstrap.servers": clusters.b.bootstrap})
    built = JvmQuotas(RealPorts(admin))  # type: ignore[arg-type]
    yield built
    left = {entity: dict.fromkeys(values) for entity, values in built.describe().items()}
    built.alter(left)
    wait_for(lambda: not built.describe(), SOON, "the quotas of this test to be gone")
    admin.close()


def show(quotas: ClientQuotas, wanted: Quotas) -> None:
    """Brokers apply a moment later what the controller has written."""
    wait_for(lambda: quotas.describe() == wanted, SOON, f"the quotas to be {wanted}")


ENTITIES = [
    Entity(user="alice"),
    Entity(user=""),
    Entity(client_id="app"),
    Entity(client_id=""),
    Entity(user="alice", client_id="app"),
    Entity(user="alice", client_id=""),
    Entity(user="", client_id="app"),
    Entity(user="", client_id=""),
]


def test_every_kind_of_entity_comes_back_as_it_was_written_and_goes_again(quotas: ClientQuotas) -> None:
    wanted = {entity: {PRODUCE: 1024.0 + at, REQUEST: 50.5} for at, entity in enumerate(ENTITIES)}
    wanted |= {Entity(ip="127.0.0.9"): {CONNECT: 100.0}, Entity(ip=""): {CONNECT: 1000.0}}
    assert set(quotas.alter(wanted).values()) == {None}
    show(quotas, wanted)
    quotas.alter({entity: dict.fromkeys(values) for entity, values in wanted.items()})
    show(quotas, {})


def test_one_quota_of_an_entity_goes_and_the_others_stay(quotas: ClientQuotas) -> None:
    alice = Entity(user="alice")
    quotas.alter({alice: {PRODUCE: 1.0, CONSUME: 2.0, MUTATE: 3.0}})
    show(quotas, {alice: {PRODUCE: 1.0, CONSUME: 2.0, MUTATE: 3.0}})
    quotas.alter({alice: {PRODUCE: None, CONSUME: 5.0}})
    show(quotas, {alice: {CONSUME: 5.0, MUTATE: 3.0}})


def test_what_a_broker_refuses_is_the_fault_of_its_entity_alone(quotas: ClientQuotas) -> None:
    good, bad = Entity(user="alice"), Entity(user="bob")
    faults = quotas.alter({good: {PRODUCE: 1.0}, bad: {PRODUCE: -1.0}})
    assert faults[good] is None
    fault = faults[bad]
    assert fault is not None and fault.code == "INVALID_REQUEST"
    show(quotas, {good: {PRODUCE: 1.0}})


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("quotas", ["jvm"], indirect=True)
def test_kafka_configs_describes_what_was_written(quotas: ClientQuotas, clusters: Clusters) -> None:
    quotas.alter({Entity(user="alice", client_id=""): {PRODUCE: 1024.0}})
    show(quotas, {Entity(user="alice", client_id=""): {PRODUCE: 1024.0}})
    command = [java(), *QUICK_KAFKA, "-cp", os.pathsep.join(map(str, kafka_jars())), "kafka.admin.ConfigCommand"]
    flags = [
        "--bootstrap-server",
        clusters.b.bootstrap,
        "--describe",
        "--entity-type",
        "users",
        "--entity-name",
        "alice",
    ]
    run = subprocess.run(
        [*command, *flags, "--entity-type", "clients", "--entity-default"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    said = "Quota configs for user-principal 'alice', the default client-id are producer_byte_rate=1024.0"
    assert said in run.stdout, run.stdout + run.stderr
