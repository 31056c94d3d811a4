"""Whether a cluster's `__consumer_offsets` may be read as a stream, and where that begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.job.cluster_probe import READ
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.librdkafka.rd_rights import ask_allowed
from streaming.commits.commit_query import CommitSource
from streaming.commits.commit_record import COMMITS_TOPIC
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

TRIGGER = 0.25
"""Seconds between two checks of the topic's ends by Spark; without a commit there is no micro-batch."""

CommitProbe = Callable[[str, Mapping[str, str]], CommitSource | str]
"""By a cluster's alias and Java client properties: where its stream begins, or why there is none."""


def probe_commits(alias: str, options: Mapping[str, str]) -> CommitSource | str:
    """Asks the cluster, with the client settings that it would be read with."""
    try:
        cluster = KafkaCluster(alias, options)
        try:
            return _source(cluster, options)
        finally:
            cluster.close()
    except LockstepError as error:
        return str(error)


def _source(cluster: KafkaCluster, options: Mapping[str, str]) -> CommitSource | str:
    allowed = ask_allowed(Admin(cluster.alias, options), [COMMITS_TOPIC], ()).topics.get(COMMITS_TOPIC)
    if allowed == "UNKNOWN_TOPIC_OR_PART":
        return f"{COMMITS_TOPIC} of {cluster.alias} is not there: no group has committed yet, or it may not be seen"
    if not isinstance(allowed, frozenset):
        return f"{COMMITS_TOPIC} of {cluster.alias} cannot be seen ({allowed}): grant READ on it"
    # A cluster without an authorizer names no operations.
    if allowed and READ not in allowed:
        return f"READ is missing on {COMMITS_TOPIC} of {cluster.alias}: grant it"
    partitions = [
        TopicPartition(COMMITS_TOPIC, number) for number in range(cluster.list_topics().get(COMMITS_TOPIC, 0))
    ]
    # Where the first open transaction begins: what it commits comes at its end.
    ends = cluster.groups.ends(partitions, committed=True)
    if ends.errors or not partitions:
        reasons = ", ".join(sorted({str(fault) for fault in ends.errors.values()})) or "it has no partitions"
        return f"the ends of {COMMITS_TOPIC} of {cluster.alias} are not known: {reasons}"
    starts = {where.partition: log.end for where, log in ends.items.items()}
    return CommitSource(cluster.alias, options, starts, TRIGGER)
