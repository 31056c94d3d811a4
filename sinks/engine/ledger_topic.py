"""The ledger's topic itself: is it there, and can it keep what is written to it?"""

from __future__ import annotations

from collections.abc import Mapping

from sinks.faults import LedgerUntrusted, RightsMissing
from sinks.kafka.ports.cluster import Reader, TopicConfigs

LEDGER_TOPIC_CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    # The newest segment is never compacted, and who leads writes every few seconds.
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.1",
}
TOPIC_GONE = frozenset({"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PARTITION"})


def is_there(topic: str, reader: Reader) -> bool:
    """Whether the topic exists; a listing and a broker, asked several times, must both say that it does not.

    Raises LedgerUntrusted for a topic that loses records or has no order, RightsMissing, ClusterUnreachable.
    """
    seen = reader.describe_topic_configs([topic])
    fault = seen.errors.get(topic)
    partitions = reader.partition_count(topic) if fault is None else reader.list_topics().get(topic)
    if partitions is None and fault is not None and fault.code in TOPIC_GONE and reader.confirmed_absent([topic]):
        return False
    if fault is not None and fault.code not in TOPIC_GONE:
        said = fault.needing("DESCRIBE_CONFIGS", "TOPIC", topic)
        raise RightsMissing(f"cluster {reader.alias}: the configs of {topic} cannot be read ({said})")
    if partitions is not None and partitions > 1:
        raise LedgerUntrusted(
            f"{topic} on the cluster {reader.alias} has {partitions} partitions, and Lockstep makes it with one: it "
            "was made by something else, perhaps by a producer (auto.create.topics.enable). Nothing is written. Delete "
            "it if it holds nothing that you need"
        )
    if fault is None:
        _check_compacted(topic, reader.alias, seen.items[topic])
    return True


def _check_compacted(topic: str, alias: str, configs: TopicConfigs) -> None:
    entry = configs.get("cleanup.policy")
    policy = "" if entry is None else entry.value or ""
    if [part.strip() for part in policy.split(",")] != ["compact"]:
        raise LedgerUntrusted(
            f"{topic} on the cluster {alias} has cleanup.policy={policy}, under which it forgets what is paused and "
            "what Lockstep created. Nothing is written. If records may be gone already, delete the topic and begin "
            "anew; if not, set cleanup.policy=compact on it"
        )


def gone(topic: str, alias: str, what: str) -> LedgerUntrusted:
    """What to say of a ledger that is not the one it was, or lacks what was in it."""
    return LedgerUntrusted(
        f"{topic} on the cluster {alias} {what}. Nothing is written, since what was paused and what Lockstep created "
        "is not known any more. If that is on purpose, stop the job, say `lockstep ledger reset`, pause again what "
        "must stay paused, and start it"
    )


def id_of(topic: str, reader: Reader, known: str) -> str:
    """The topic's id (KIP-516), "" on brokers without ids. Raises LedgerUntrusted where it was `known` as another."""
    found = reader.topic_ids([topic]).get(topic) or known
    return same_id(topic, reader.alias, known, found)


def same_id(topic: str, alias: str, known: str, found: str) -> str:
    """The id that is `found`, as is a topic's that nobody deleted. Raises LedgerUntrusted for another than `known`."""
    if known and found and found != known:
        raise gone(topic, alias, "was deleted and recreated: it has another topic id than before")
    return found or known
