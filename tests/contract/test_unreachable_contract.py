"""One suite for every cluster: it does not answer, and every call says so in time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from app.local.java_gateway import process_jvm
from app.local.ports import free_ports
from app.wiring import open_cluster
from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.cluster import Cluster, TopicSpec
from tests.memory.memory_cluster import MemoryCluster

pytestmark = pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")
"""The old API is what `use.incremental.alter.configs=never` asks for."""


CALLS: dict[str, Callable[[Cluster], object]] = {
    "cluster_id": lambda cluster: cluster.cluster_id(),
    "list_topics": lambda cluster: cluster.list_topics(),
    "describe_topic_configs": lambda cluster: cluster.describe_topic_configs(["t", "u"]),
    "create_topics": lambda cluster: cluster.create_topics({"t": TopicSpec(1)}),
    "create_partitions": lambda cluster: cluster.create_partitions({"t": 2}),
    "delete_topics": lambda cluster: cluster.delete_topics(["t"]),
    "alter_topic_configs": lambda cluster: cluster.alter_topic_configs({"t": {"retention.ms": "1"}}),
    "replace_topic_configs": lambda cluster: cluster.replace_topic_configs({"t": {"retention.ms": "1"}}),
    "create_log": lambda cluster: cluster.create_log("t", 1, {}),
    "append_log": lambda cluster: cluster.append_log("t", [(b"k", b"v")]),
    "read_log": lambda cluster: cluster.read_log("t"),
    "read_log_last": lambda cluster: cluster.read_log("t", last=1),
}


LIMIT = 1.0
"""Seconds that a request may take here; reading the last records of a log is two."""
WITHIN = 50.0
"""Seconds for a call on a busy machine. Kafka's own limit is 60."""


KINDS = ["memory", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=KINDS)
def unreachable(request: pytest.FixtureRequest) -> Cluster:
    """A cluster that does not answer, with short limits."""
    if request.param == "memory":
        return MemoryCluster("b", reachable=False)
    (port,) = free_ports(1)
    process_jvm()
    return open_cluster(
        "b", {"bootstrap.servers": f"127.0.0.1:{port}", "default.api.timeout.ms": str(int(LIMIT * 1000))}
    )


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_unreachable_cluster_is_said_to_be_so_within_the_limit(
    unreachable: Cluster, call: Callable[[Cluster], object]
) -> None:
    started = time.monotonic()
    with pytest.raises(ClusterUnreachable, match=r"^(cluster )?b: "):
        call(unreachable)
    assert time.monotonic() - started < WITHIN
