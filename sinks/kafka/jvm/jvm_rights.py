"""What the client of a cluster may do there, as the cluster itself says (KIP-430: authorized operations)."""

from __future__ import annotations

from collections.abc import Collection

from sinks.kafka.jvm.java_admin import JavaAdmin, Settled
from sinks.kafka.jvm.java_rows import LeftOut
from sinks.kafka.jvm.jvm_groups import DESCRIBED, about_groups, described
from sinks.kafka.jvm.jvm_topics import COUNTS, JvmTopics, described_topics
from sinks.kafka.ports.acls import Allowed
from sinks.kafka.ports.cluster import TopicSpec

NAMES_IN_A_REQUEST = 500
"""Most groups that are asked about."""


def ask_allowed(
    admin: JavaAdmin, topics: Collection[str], creatable: Collection[str], groups: Collection[str] = ()
) -> Allowed:
    """Returns what the client may do with the cluster, topics and groups.

    `creatable`: topics whose creation is tried with `validateOnly`, which writes nothing. Needs no right of its own.
    Raises ClusterUnreachable, RightsMissing.
    """
    java = admin.jvm.org.apache.kafka.clients.admin
    with_rights = java.DescribeClusterOptions().includeAuthorizedOperations(True)
    operations = admin.call(
        "DescribeCluster", lambda client: client.describeCluster(with_rights).authorizedOperations()
    )
    cluster: list[str] | None = admin.rows.read(operations)
    # A broker checks the right first. Any other fault, such as a topic that exists, shows that the right is there.
    faults = JvmTopics(admin).create_topics(dict.fromkeys(sorted(creatable), TopicSpec(1, 1)), validate_only=True)
    on_topics, on_groups = dict[str, frozenset[str] | str](), dict[str, frozenset[str] | str]()
    if topics:
        options = java.DescribeTopicsOptions().includeAuthorizedOperations(True)
        on_topics = _allowed(admin, described_topics(admin, sorted(topics), options), COUNTS)
    if groups:
        names = sorted(groups)[:NAMES_IN_A_REQUEST]
        on_groups = _allowed(admin, about_groups(lambda: described(admin, names, operations=True)), DESCRIBED)
    return Allowed(
        frozenset(cluster or ()),
        on_topics,
        {name: fault is None or not fault.is_denied for name, fault in faults.items()},
        on_groups,
    )


def _allowed(admin: JavaAdmin, settled: Settled[str], left_out: LeftOut) -> dict[str, frozenset[str] | str]:
    """Returns the operations that are allowed on each topic or group (KIP-430), or the error's name."""
    denied: dict[str, frozenset[str] | str] = {name: fault.code for name, fault in settled.faults.items()}
    found = admin.answers(settled, left_out)
    return denied | {name: frozenset(one["authorizedOperations"] or ()) for name, one in found.items()}
