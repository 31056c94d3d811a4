"""What the client of a cluster may do there, as the cluster itself says (KIP-430: authorized operations)."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka.admin import NewTopic

from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.error_codes import item_fault
from sinks.kafka.librdkafka.group_process import GroupProcess
from sinks.kafka.ports.acls import Allowed

NAMES_IN_A_REQUEST = 500
"""Topics or groups in one request."""

DENIED_CODES = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})


def ask_allowed(
    admin: Admin, topics: Collection[str], creatable: Collection[str], groups: Collection[str] = ()
) -> Allowed:
    """Asks about the cluster, topics and groups; `creatable` are tried with `validateOnly`, which writes nothing.

    Needs no right of its own. Raises ClusterUnreachable, RightsMissing.
    """
    described = admin.call(
        "DescribeCluster",
        lambda: admin.client.describe_cluster(
            include_authorized_operations=True, request_timeout=admin.timeout
        ).result(),
    )
    seen: dict[str, frozenset[str] | str] = {}
    names = sorted(topics)
    for start in range(0, len(names), NAMES_IN_A_REQUEST):
        seen |= _of_topics(admin, names[start : start + NAMES_IN_A_REQUEST])
    found = _of_groups(admin, sorted(groups)[:NAMES_IN_A_REQUEST])
    return Allowed(_words(described.authorized_operations), seen, _creatable(admin, creatable), found)


def _of_topics(admin: Admin, names: list[str]) -> dict[str, frozenset[str] | str]:
    futures = admin.client.describe_topics(
        TopicCollection(names), include_authorized_operations=True, request_timeout=admin.timeout
    )
    return {
        name: item_fault(error).code if error else _words(topic.authorized_operations)
        for name, (topic, error) in admin.settle("DescribeTopics", futures).items()
    }


def _of_groups(admin: Admin, names: list[str]) -> dict[str, frozenset[str] | str]:
    if not names:
        return {}
    with closing(GroupProcess(admin)) as process:
        found: dict[str, frozenset[str] | str] = process.call("allowed", names)
    return found


def _creatable(admin: Admin, names: Collection[str]) -> dict[str, bool]:
    if not names:
        return {}
    new = [NewTopic(name, 1, 1) for name in sorted(names)]
    futures = admin.client.create_topics(new, validate_only=True, request_timeout=admin.timeout)
    settled = {}
    for name, future in futures.items():
        error = future.exception()
        # Whatever else is wrong with it, a topic that exists, say, was looked at after the right.
        settled[name] = error is None or error.args[0].code() not in DENIED_CODES
    return settled


def _words(operations: Collection[object] | None) -> frozenset[str]:
    return frozenset(getattr(one, "name", str(one)) for one in operations or ())
