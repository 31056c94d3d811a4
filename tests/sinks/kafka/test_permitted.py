"""Ports that ask before they write: everything but a declared read does."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from sinks.kafka.ports.acls import AclReader
from sinks.kafka.ports.cluster import Reader, TopicSpec
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.config_levels import LevelReader
from sinks.kafka.ports.groups import GroupReader
from sinks.kafka.ports.permitted import permitted
from sinks.kafka.ports.transactions import TransactionReader
from sinks.kafka.ports.users import UserReader
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.quota_port import QuotaReader
from streaming.errors import LockstepError
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.memory.memory_quotas import MemoryQuotas
from tests.memory.memory_records import MemoryRecords
from tests.memory.memory_transactions import MemoryTransactions
from tests.memory.memory_users import MemoryUsers
from tests.sinks.memory_flow import memory_ports


class Growing(MemoryCluster):
    """A port that got another method."""

    def abort_transactions(self) -> None:
        self.writes += 1


def refuse() -> None:
    raise LockstepError("not now")


READERS = {
    "cluster": Reader,
    "acls": AclReader,
    "users": UserReader,
    "groups": GroupReader,
    "levels": LevelReader,
    "transactions": TransactionReader,
    PORT: QuotaReader,
}
"""By port of a cluster, the protocol that only looks."""


ONLY_LOOK = {"epochs", "config_watch", "acl_watch", "group_watch", "records", "java", "others", "permit"}
"""What else a cluster has: it only looks, or is asked for through `port`."""


def guarded() -> dict[str, object]:
    """Every port of a cluster that may be written through, by name."""
    cluster = Growing("b")
    others = {PORT: {"b": MemoryQuotas("b")}}
    plain = memory_ports(cluster, MemoryAcls("b"), MemoryUsers("b"), MemoryGroups("b"), others)
    ports = replace(plain, transactions=MemoryTransactions(MemoryRecords("b"))).written_with(refuse)
    named = {name: getattr(ports, name) for name in ("cluster", "acls", "users", "groups")}
    opened = {"levels": ports.levels, "transactions": ports.transactions}
    return {**named, **opened, PORT: ports.port(PORT, MemoryQuotas, QuotaReader)}


def declared(reader: type) -> set[str]:
    """What a protocol asks for."""
    return {name for of in reader.__mro__ for name in vars(of) if not name.startswith("_")}


@pytest.mark.parametrize("name", READERS)
def test_everything_of_a_port_but_its_declared_reads_asks_first(name: str) -> None:
    port, reads = guarded()[name], declared(READERS[name])
    public = {one for one in dir(port._port) if not one.startswith("_")}  # type: ignore[attr-defined]  # what it guards
    asking = {one for one in public - reads if callable(getattr(port, one))}
    assert asking
    for one in asking:
        with pytest.raises(LockstepError, match="not now"):
            getattr(port, one)()
    for one in reads & public:
        assert getattr(port, one) == getattr(port._port, one)  # type: ignore[attr-defined]  # what it guards


def test_port_that_a_cluster_gets_is_guarded_or_only_looks() -> None:
    assert {one.name for one in fields(ClusterPorts)} <= READERS.keys() | ONLY_LOOK


def test_method_that_nobody_declared_asks_first() -> None:
    port = guarded()["cluster"]
    with pytest.raises(LockstepError, match="not now"):
        port.abort_transactions()  # type: ignore[attr-defined]  # of no protocol


def test_without_a_reader_everything_asks() -> None:
    with pytest.raises(LockstepError, match="not now"):
        permitted(MemoryCluster("b"), refuse).list_topics()


def test_write_that_is_not_permitted_does_not_leave_and_a_look_does() -> None:
    cluster = MemoryCluster("b")
    asking = permitted(cluster, refuse, Reader)
    with pytest.raises(LockstepError, match="not now"):
        asking.create_topics({"x": TopicSpec(1)})
    assert (asking.list_topics(), cluster.writes) == ({}, 0)
