"""One suite for every watch on ACLs: it reports each difference once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.local.ports import free_ports
from app.wiring import admin_of
from sinks.faults import ClusterUnreachable
from sinks.kafka.jvm.jvm_acls import RECENT, JvmAcls, JvmAclWatch, SharedJvmAcls
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import Acls, AclWatch
from tests.contract.acl_looks import broker_of, kafka_acls, shows
from tests.memory.memory_acls import MemoryAcls, PlainAclWatch
from tests.sinks.kinds.acls.acl_builders import acl


@dataclass(frozen=True)
class Watched:
    """ACLs and a watch on them."""

    acls: Acls
    watch: AclWatch


@pytest.fixture(
    params=["memory", pytest.param("plain", marks=pytest.mark.kafka), pytest.param("jvm", marks=pytest.mark.kafka)]
)
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    if request.param == "memory":
        memory = MemoryAcls("b")
        yield Watched(memory, PlainAclWatch(memory))
        return
    properties = {"bootstrap.servers": broker_of(request).bootstrap}
    kafka = kafka_acls(properties)
    watch = PlainAclWatch(kafka) if request.param == "plain" else JvmAclWatch(kafka)
    yield Watched(kafka, watch)


@pytest.fixture
def one(unique: str) -> AclBinding:
    """An ACL that no other test has."""
    return acl(f"ALLOW READ User:{unique} TOPIC {unique}")


def test_first_look_is_a_change_and_then_each_change_is_reported_once(watched: Watched, one: AclBinding) -> None:
    assert watched.watch.changed()
    assert not watched.watch.changed()
    for write, there in ((watched.acls.create, {one}), (watched.acls.delete, set[AclBinding]())):
        write([one])
        shows(watched.acls, one.principal, there)
        assert watched.watch.changed()
        assert not watched.watch.changed()


def test_writing_what_is_there_is_no_change(watched: Watched, one: AclBinding) -> None:
    watched.acls.create([one])
    shows(watched.acls, one.principal, {one})
    watched.watch.changed()
    watched.acls.create([one])
    assert not watched.watch.changed()
    watched.acls.delete([one])
    # Else it would be a change to the next test's watch.
    shows(watched.acls, one.principal, set())


def test_forgotten_look_is_reported_again(watched: Watched) -> None:
    watched.watch.changed()
    watched.watch.forget()
    assert watched.watch.changed()
    assert not watched.watch.changed()


@pytest.mark.kafka
def test_unreachable_cluster_is_said_to_be_so() -> None:
    (port,) = free_ports(1)
    watch = JvmAclWatch(kafka_acls({"bootstrap.servers": f"127.0.0.1:{port}", "default.api.timeout.ms": "1500"}))
    with pytest.raises(ClusterUnreachable, match=r"cluster b: .*refuses connections"):
        watch.changed()


@pytest.mark.kafka
def test_flows_of_one_account_share_an_answer_until_it_is_old_or_one_of_them_writes(
    request: pytest.FixtureRequest, one: AclBinding
) -> None:
    properties, now, shared = {"bootstrap.servers": broker_of(request).bootstrap}, [100.0], SharedJvmAcls()

    def opened() -> JvmAcls:
        return JvmAcls(admin_of("b", properties), lambda: now[0])

    with shared.used("somebody", opened) as first, shared.used("somebody", opened) as second:
        assert first is second
        before = first.recent()
        kafka_acls(properties).create([one])
        shows(kafka_acls(properties), one.principal, {one})
        now[0] += RECENT
        assert second.recent() is before
        now[0] += 0.1
        assert first.recent() - before == {one}
        first.delete([one])
        shows(kafka_acls(properties), one.principal, set())
        assert second.recent() == before
