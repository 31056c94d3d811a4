"""Ports that ask before they write: every method that changes a cluster does, whatever port it is of."""

from __future__ import annotations

import pytest

from sinks.kafka.memory.memory_cluster import MemoryCluster
from sinks.kafka.ports.acls import AclReader, Acls
from sinks.kafka.ports.cluster import Cluster, Reader, TopicSpec
from sinks.kafka.ports.config_levels import ConfigLevels, LevelReader
from sinks.kafka.ports.groups import GroupReader, Groups
from sinks.kafka.ports.permitted import WRITES, permitted
from sinks.kafka.ports.users import UserReader, Users
from sinks.kinds.quotas.quota_port import ClientQuotas, QuotaReader
from streaming.errors import LockstepError

PORTS = (
    (Cluster, Reader),
    (Acls, AclReader),
    (Users, UserReader),
    (Groups, GroupReader),
    (ConfigLevels, LevelReader),
    (ClientQuotas, QuotaReader),
)
"""Each port that writes, and the one that only looks."""


def methods(port: type) -> set[str]:
    """What a protocol asks for."""
    return {name for of in port.__mro__ for name in vars(of) if not name.startswith("_")}


@pytest.mark.parametrize(("port", "reader"), PORTS)
def test_every_method_that_the_reader_lacks_asks_first(port: type, reader: type) -> None:
    assert methods(port) - methods(reader) <= WRITES
    assert not methods(reader) & WRITES


def test_every_method_that_asks_first_is_one_of_some_port() -> None:
    assert frozenset().union(*(methods(port) - methods(reader) for port, reader in PORTS)) == WRITES


def test_write_that_is_not_permitted_does_not_leave_and_a_look_does() -> None:
    def refuse() -> None:
        raise LockstepError("not now")

    cluster = MemoryCluster("b")
    asking = permitted(cluster, refuse)
    with pytest.raises(LockstepError, match="not now"):
        asking.create_topics({"x": TopicSpec(1)})
    assert (asking.list_topics(), cluster.writes) == ({}, 0)
