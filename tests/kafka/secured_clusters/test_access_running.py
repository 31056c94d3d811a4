"""ACLs, their users and broker configs through the running job, over SASL_SSL beside a real MM2."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import javaproperties
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from app.local.broker import ADMIN
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.settings import load
from app.wiring import admin_of
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import GROUP, LITERAL, PREFIXED, TOPIC, TRANSACTIONAL_ID, AclBinding
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kafka.ports.users import Upsertion
from sinks.kafka.records.client_config import client_config
from sinks.model.changes import ALLOW
from tests.kafka.kafka_tools import KafkaTools
from tests.kafka.secured import Pair, grant, make_user
from tests.kafka.secured_cluster import SecuredCluster
from tests.kafka.staging import client_of, create, flow_of, wait_until_shown
from tests.quick_java import QUICK_KAFKA

SOURCE, TARGET = "east", "west"
"""Aliases that no other test has on these clusters."""

WITHIN = 180.0
"""Seconds until a change is on the target."""

GONE_WITHIN = 400.0
"""Seconds until something is deleted there: absence is believed only after some time."""

JOB, CLERK, MECHANISM = "shop-job", "clerk", "SCRAM-SHA-512"
ORDERS, READERS, WRITER = "shop-orders", "shop-readers", "shop-writer"
REMOTE = f"{SOURCE}.{ORDERS}"
RETENTION, DAY = "log.retention.ms", "86400000"


def acl(resource_type: str, name: str, operation: str, pattern_type: str = LITERAL) -> AclBinding:
    """One of the clerk's."""
    return AclBinding(resource_type, name, pattern_type, f"User:{CLERK}", "*", operation, ALLOW)


ON_TOPICS = {acl(TOPIC, ORDERS, operation) for operation in ("READ", "WRITE", "DESCRIBE")}
ON_GROUPS = {acl(GROUP, READERS, "READ"), acl(GROUP, "shop-ad-hoc-", "READ", PREFIXED)}
ON_TRANSACTIONS = {acl(TRANSACTIONAL_ID, WRITER, operation) for operation in ("WRITE", "DESCRIBE")}


@dataclass(frozen=True)
class Stage:
    """A flow east->west whose job has the least rights, MM2 beside it, and clients that may do everything."""

    ends: Pair
    source: KafkaCluster
    target: KafkaCluster
    source_levels: JvmLevels
    target_levels: JvmLevels
    job: LocalJob
    password: str

    def clients_acls(self, cluster: KafkaCluster) -> set[AclBinding]:
        """The clerk's ACLs on a cluster."""
        return {one for one in cluster.acls.describe() if one.principal == f"User:{CLERK}"}

    def client(self, alias: str) -> dict[str, str | int | float | bool]:
        """How the clerk comes to a cluster, in librdkafka's words."""
        return dict(client_config(alias, self.ends[alias].secured_properties((CLERK, self.password), MECHANISM)))


def default_of(levels: JvmLevels, name: str) -> str | None:
    """What is set for all brokers."""
    entry = levels.describe([DEFAULT_OF_ALL]).items[DEFAULT_OF_ALL].get(name)
    return entry.value if entry else None


def keys_of(clusters: dict[str, SecuredCluster], user: tuple[str, str], mechanism: str) -> dict[str, str]:
    """The client settings of both ends, by alias."""
    ends = {alias: cluster.secured_properties(user, mechanism) for alias, cluster in clusters.items()}
    return {f"{alias}.{name}": value for alias, own in ends.items() for name, value in own.items()}


def mirror(clusters: dict[str, SecuredCluster], folder: Path) -> LocalMirror:
    """MM2 as a super user: records and heartbeats, every second."""
    own = {
        "topics": "shop-.*",
        "refresh.topics.interval.seconds": "1",
        "emit.heartbeats.interval.seconds": "1",
        "sync.topic.configs.enabled": "false",
        "sync.topic.acls.enabled": "false",
    }
    properties = mirror_properties(
        dict.fromkeys(clusters, ""), [f"{SOURCE}->{TARGET}"], **keys_of(clusters, ADMIN, "PLAIN"), **own
    )
    return LocalMirror(properties, folder, java_options=QUICK_KAFKA)


def write_config(clusters: dict[str, SecuredCluster], folder: Path, user: tuple[str, str], port: int) -> Path:
    """The job's properties; the clerk's password is in a folder of passwords."""
    keys = {
        "topics": "shop-.*",
        "sync.full.acl.enabled": "true",
        "lockstep.acl.principals": CLERK,
        "lockstep.credential.provider.class": "app.credentials.credential_providers:DirectoryCredentialProvider",
        "lockstep.credential.store": str(folder / "passwords"),
        "lockstep.sync.broker.configs.enabled": "true",
        "lockstep.broker.config.properties": RETENTION,
        "lockstep.full.comparison.interval": "5 seconds",
        # Four of the clerk's seven ACLs are revoked at once.
        "lockstep.limits.max.delete.percent": "60",
        "lockstep.http.port": str(port),
        "lockstep.checkpoint.dir": str(folder / "checkpoints"),
    }
    properties = mirror_properties(
        dict.fromkeys(clusters, ""), [f"{SOURCE}->{TARGET}"], **keys_of(clusters, user, MECHANISM), **keys
    )
    path = folder / "job.properties"
    path.write_text(javaproperties.dumps(properties, timestamp=False), encoding="latin-1")
    return path


@pytest.fixture(scope="module")
def stage(secured: Pair, kafka_tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One MM2 and one job for all tests here; the topic is there, and nothing else yet."""
    folder, port = tmp_path_factory.mktemp("access"), free_ports(1)[0]
    ends = {SOURCE: secured["a"], TARGET: secured["b"]}
    user, password = (JOB, secrets.token_hex(12)), secrets.token_hex(12)
    (folder / "passwords").mkdir()
    (folder / "passwords" / CLERK).write_text(password)
    config = write_config(ends, folder, user, port)
    with ExitStack() as stack:
        mm2 = mirror(ends, folder / "mm2")
        stack.callback(mm2.stop)
        mm2.start(wait=False)
        source, target = (stack.enter_context(client_of(cluster)) for cluster in ends.values())
        levels = [
            JvmLevels(stack.enter_context(closing(admin_of(alias, end.client_properties()))))
            for alias, end in ends.items()
        ]
        for cluster in ends.values():
            make_user(cluster, user)
        grant(kafka_tools, ends, load(config), f"User:{JOB}")
        create(source, ORDERS, 1, {"retention.ms": "3600000"})
        job = LocalJob(config, port, folder / "job.log")
        stack.callback(job.stop)
        job.start()
        mm2.wait_until_ready()
        job.wait_until_compared()
        yield Stage(ends, source, target, *levels, job, password)


@pytest.fixture(scope="module")
def clerk(stage: Stage) -> Stage:
    """With a user of the source who reads, writes and has groups and transactions there."""
    stage.source.users.upsert([Upsertion(CLERK, MECHANISM, 8192, stage.password)])
    wait_for(lambda: CLERK in stage.source.users.describe([CLERK]), WITHIN, "the source to show the user")
    wanted = ON_TOPICS | ON_GROUPS | ON_TRANSACTIONS
    assert set(stage.source.acls.create(wanted).values()) == {None}
    wait_for(lambda: stage.clients_acls(stage.source) == wanted, WITHIN, "the source to show the ACLs")
    return stage


def test_acls_of_groups_and_transactional_ids_come_over_as_they_are_and_those_of_topics_renamed(clerk: Stage) -> None:
    renamed = {acl(TOPIC, REMOTE, one.operation) for one in ON_TOPICS}
    wanted = renamed | ON_GROUPS | ON_TRANSACTIONS
    wait_for(lambda: clerk.clients_acls(clerk.target) == wanted, WITHIN, f"the target to have {wanted}")


def test_user_of_the_acls_comes_over_with_the_iterations_of_the_source(clerk: Stage) -> None:
    shown = {CLERK: {MECHANISM: 8192}}
    wait_for(lambda: clerk.target.users.describe([CLERK]) == shown, WITHIN, "the user on the target")


def test_who_wrote_in_a_transaction_on_the_source_reads_the_copy_on_the_target_in_the_same_group(clerk: Stage) -> None:
    """By MM2 alone came the record, by Lockstep alone the user, the password and the rights."""
    producer = Producer({**clerk.client(SOURCE), "transactional.id": WRITER})
    producer.init_transactions(WITHIN)
    producer.begin_transaction()
    producer.produce(ORDERS, b"an order", b"k")
    producer.commit_transaction(WITHIN)
    read: list[bytes | None] = []
    with closing(Consumer({**clerk.client(TARGET), "group.id": READERS, "auto.offset.reset": "earliest"})) as consumer:
        consumer.subscribe([REMOTE])

        def arrived() -> bool:
            record = consumer.poll(0.2)
            if record is not None and record.error() is None:
                read.append(record.value())
            return bool(read)

        wait_for(arrived, WITHIN, "the clerk to read the copy")
    assert read == [b"an order"]


def test_group_that_no_acl_names_is_refused_there(clerk: Stage) -> None:
    with closing(Consumer({**clerk.client(TARGET), "group.id": "another", "enable.auto.commit": False})) as consumer:
        consumer.subscribe([REMOTE])

        def refused() -> bool:
            try:
                record = consumer.poll(0.2)
            except KafkaException as error:
                return error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
            assert record is None or record.error() is not None
            return record is not None and record.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED

        # A broker that is busy may be said to be away before.
        wait_for(refused, WITHIN, "the group to be refused")


def test_mm2_is_heard_and_the_topic_is_as_on_the_source(stage: Stage) -> None:
    wait_until_shown(stage.target, REMOTE, 1, {"retention.ms": "3600000"})
    wait_for(lambda: flow_of(stage.job)["state"] == "LIVE", WITHIN, "MM2's heartbeat to be heard")


def test_cluster_wide_broker_config_comes_over_and_goes_again(stage: Stage) -> None:
    for value, within in ((DAY, WITHIN), (None, GONE_WITHIN)):
        assert stage.source_levels.alter({DEFAULT_OF_ALL: {RETENTION: value}}) == {DEFAULT_OF_ALL: None}
        wait_for(lambda v=value: default_of(stage.target_levels, RETENTION) == v, within, f"{RETENTION}={value} there")


def test_acls_that_are_revoked_on_the_source_go_on_the_target_and_no_others(clerk: Stage) -> None:
    before = clerk.clients_acls(clerk.target)
    clerk.source.acls.delete(ON_GROUPS | ON_TRANSACTIONS)
    left = before - ON_GROUPS - ON_TRANSACTIONS
    wait_for(lambda: clerk.clients_acls(clerk.target) == left, GONE_WITHIN, f"the target to have {left} alone")
    assert {one.resource_type for one in left} == {TOPIC}
    assert clerk.target.users.describe([CLERK]) == {CLERK: {MECHANISM: 8192}}
