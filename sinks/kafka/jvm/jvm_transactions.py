"""Open transactions through Java's Admin.

Source: `Admin.describeProducers`, `listTransactions`, `describeTransactions`, `abortTransaction` (KIP-664),
`fenceProducers` (KIP-588's request, KAFKA-12979).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from typing import Any

from sinks.faults import ClusterUnreachable, ItemFault, Observed
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.java_rows import TOPIC_PARTITION
from sinks.kafka.ports.transactions import ActiveProducer, CoordinatedTransaction, CoordinatorsView
from streaming.mm2.records import TopicPartition

DESCRIBE_PRODUCERS, DESCRIBE, LIST = "DescribeProducers", "DescribeTransactions", "ListTransactions"
FENCE, ABORT = "InitProducerId", "WriteTxnMarkers"
PRODUCERS_RESULT = "org.apache.kafka.clients.admin.DescribeProducersResult"
NOT_FOUND = "TRANSACTIONAL_ID_NOT_FOUND"
STATE_TOPIC = "__transaction_state"


class JvmTransactions:
    """`Transactions` of one cluster."""

    def __init__(self, java: JavaAdmin) -> None:
        self._java = java

    def producers(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, tuple[ActiveProducer, ...]]:
        if not partitions:
            return Observed({})
        keys, rows = list(dict.fromkeys(partitions)), self._java.rows
        asked = rows.made(TOPIC_PARTITION, ([one.topic, str(one.partition)] for one in keys))
        settled = self._java.settle(
            DESCRIBE_PRODUCERS,
            keys,
            lambda client: rows.by(
                client.describeProducers(asked), PRODUCERS_RESULT, "partitionResult", asked, TOPIC_PARTITION.type
            ),
        )
        items = {
            where: tuple(_producer(one) for one in settled.answers[at].activeProducers())
            for at, where in enumerate(keys)
            if where not in settled.faults
        }
        return Observed(items, settled.faults)

    def coordinated(self, producers: Collection[int]) -> CoordinatorsView:
        hidden = self._hidden()
        options = self._java.jvm.org.apache.kafka.clients.admin.ListTransactionsOptions()
        options.filterProducerIds(self._longs(producers))
        listed, fault = self._settled(LIST, lambda client: client.listTransactions(options).all())
        if fault is not None:
            raise ClusterUnreachable(f"cluster {self._java.alias}: {LIST}: {fault.code}")
        names = {str(one.transactionalId()): int(one.producerId()) for one in listed}
        if not names:
            return CoordinatorsView(hidden=hidden)
        found = dict[int, CoordinatedTransaction]()
        for name, producer in names.items():
            described, fault = self._described(name)
            if fault is None:
                found[producer] = _transaction(name, producer, described)
            else:
                hidden = hidden or f"transactional id {name} cannot be described: {fault.code}"
        return CoordinatorsView(found, hidden)

    def _hidden(self) -> str:
        """Returns why a coordinator may know more than it lists: it leaves out ids that the client may not DESCRIBE. ""
        if not.

        A random name, which no producer has, shows whether the client may see every id. No other request says it.
        """
        probe = secrets.token_hex(16)
        _, fault = self._described(probe)
        if fault is not None and fault.code != NOT_FOUND:
            return f"DESCRIBE on TRANSACTIONAL_ID * is missing on {self._java.alias} ({fault.code})"
        asked = self._java.rows.texts([STATE_TOPIC])
        topic, fault = self._settled(
            "DescribeTopics", lambda client: client.describeTopics(asked).topicNameValues().get(STATE_TOPIC)
        )
        if fault is not None:
            return f"it is unknown whether all coordinators of {self._java.alias} answer ({STATE_TOPIC}: {fault.code})"
        if any(_has_no_leader(one) for one in topic.partitions()):
            return f"a partition of {STATE_TOPIC} on {self._java.alias} has no leader"
        return ""

    def fence_producers(self, transactional_ids: Collection[str]) -> dict[str, ItemFault | None]:
        if not transactional_ids:
            return {}
        names, rows = list(transactional_ids), self._java.rows
        asked = rows.texts(names)
        settled = self._java.write(
            FENCE, names, lambda client: rows.of_map(client.fenceProducers(asked).fencedProducers(), asked)
        )
        return {name: settled.faults.get(name) for name in names}

    def abort(self, where: TopicPartition, producer: ActiveProducer) -> ItemFault | None:
        # A leader that knows no epoch of a coordinator takes any from 0 on, as Kafka's own tool sends it.
        epoch = max(0, producer.coordinator_epoch)
        kafka = self._java.jvm.org.apache.kafka
        partition = kafka.common.TopicPartition(where.topic, where.partition)
        spec = kafka.clients.admin.AbortTransactionSpec(partition, producer.producer, producer.epoch, epoch)
        return self._settled(ABORT, lambda client: client.abortTransaction(spec).all(), writes=True)[1]

    def _described(self, name: str) -> tuple[Any, ItemFault | None]:
        asked = self._java.rows.texts([name])
        return self._settled(DESCRIBE, lambda client: client.describeTransactions(asked).description(name))

    def _settled(
        self, api: str, request: Callable[[Any], Any], *, writes: bool = False
    ) -> tuple[Any, ItemFault | None]:
        """Returns the result of a request's only future, or the fault of its item under Kafka's name.

        Raises ClusterUnreachable, RightsMissing, NotSupported for what concerns the whole request.
        """

        def futures(client: Any) -> Any:
            only = self._java.jvm.java.util.ArrayList()
            only.add(request(client))
            return only

        settled = (self._java.write if writes else self._java.settle)(api, [api], futures)
        return settled.answers[0], settled.faults.get(api)

    def _longs(self, numbers: Collection[int]) -> Any:
        """Returns a Java list of `Long`; py4j would make an `Integer` of a small number."""
        made = self._java.jvm.java.util.ArrayList()
        for number in numbers:
            made.addAll(self._java.jvm.java.util.stream.LongStream.rangeClosed(number, number).boxed().toList())
        return made


def _producer(state: Any) -> ActiveProducer:
    epoch, began = state.coordinatorEpoch(), state.currentTransactionStartOffset()
    return ActiveProducer(
        int(state.producerId()),
        int(state.producerEpoch()),
        int(state.lastTimestamp()),
        int(epoch.getAsInt()) if epoch.isPresent() else -1,
        int(began.getAsLong()) if began.isPresent() else None,
    )


def _transaction(name: str, producer: int, described: Any) -> CoordinatedTransaction:
    started = described.transactionStartTimeMs()
    partitions = frozenset(
        TopicPartition(str(one.topic()), int(one.partition())) for one in described.topicPartitions()
    )
    started_ms = int(started.getAsLong()) if started.isPresent() else None
    return CoordinatedTransaction(name, producer, str(described.state().toString()), started_ms, partitions)


def _has_no_leader(partition: Any) -> bool:
    leader = partition.leader()
    return leader is None or bool(leader.isEmpty())
