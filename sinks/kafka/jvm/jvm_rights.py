"""What the client of a cluster may do there, as the cluster itself says (KIP-430: authorized operations)."""

from __future__ import annotations

from collections.abc import Collection

from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.jvm_groups import allowed_on_groups
from sinks.kafka.jvm.jvm_topics import JvmTopics
from sinks.kafka.ports.acls import Allowed
from sinks.kafka.ports.cluster import TopicSpec

NAMES_IN_A_REQUEST = 500
"""Groups in one request."""


def ask_allowed(
    admin: JavaAdmin, topics: Collection[str], creatable: Collection[str], groups: Collection[str] = ()
) -> Allowed:
    """Asks about the cluster, topics and groups; `creatable` are tried with `validateOnly`, which writes nothing.

    Needs no right of its own. Raises ClusterUnreachable, RightsMissing.
    """
    options = admin.jvm.org.apache.kafka.clients.admin.DescribeClusterOptions().includeAuthorizedOperations(True)
    described = admin.call("DescribeCluster", lambda client: client.describeCluster(options).authorizedOperations())
    cluster: list[str] | None = admin.rows.read(described)
    of_topics = JvmTopics(admin)
    # Whatever else is wrong with it, a topic that exists, say, was looked at after the right.
    faults = of_topics.create_topics(dict.fromkeys(sorted(creatable), TopicSpec(1, 1)), validate_only=True)
    return Allowed(
        frozenset(cluster or ()),
        of_topics.allowed(sorted(topics)),
        {name: fault is None or not fault.is_denied for name, fault in faults.items()},
        allowed_on_groups(admin, sorted(groups)[:NAMES_IN_A_REQUEST]),
    )
