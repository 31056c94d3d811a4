"""Open transactions through Java's Admin: librdkafka asks for none.

Source: `Admin.describeProducers`, `listTransactions`, `describeTransactions`, `abortTransaction` (KIP-664),
`fenceProducers` (KIP-588's request, KAFKA-12979).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import ClusterUnreachable, ItemFault, NotSupported, Observed, RightsMissing
from sinks.kafka.jvm.java_admin import DENIED_CLIENT, cause_of
from sinks.kafka.jvm.java_client import JavaAdmin
from sinks.kafka.ports.transactions import ActiveProducer, CoordinatedTransaction, CoordinatorsView
from streaming.mm2.records import TopicPartition

DESCRIBE_PRODUCERS, DESCRIBE, LIST = "DescribeProducers", "DescribeTransactions", "ListTransactions"
FENCE, ABORT = "InitProducerId", "WriteTxnMarkers"
NO_ANSWER = ("TimeoutException", "DisconnectException", "InterruptException")
NOT_FOUND = "TRANSACTIONAL_ID_NOT_FOUND"
STATE_TOPIC = "__transaction_state"


class JvmTransactions:
    """`Transactions` of one cluster."""

    def __init__(self, java: JavaAdmin) -> None:
        self._java, self._jvm = java, java.jvm

    def producers(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, tuple[ActiveProducer, ...]]:
        asked = {where: self._partition(where) for where in partitions}
        if not asked:
            return Observed({})
        result = self._java.admin.describeProducers(self._list(asked.values()))
        items, errors = dict[TopicPartition, tuple[ActiveProducer, ...]](), dict[TopicPartition, ItemFault]()
        for where, partition in asked.items():
            found, fault = self._settled(DESCRIBE_PRODUCERS, result.partitionResult(partition))
            if fault is None:
                items[where] = tuple(_producer(one) for one in found.activeProducers())
            else:
                errors[where] = fault
        return Observed(items, errors)

    def coordinated(self, producers: Collection[int]) -> CoordinatorsView:
        hidden = self._hidden()
        options = self._jvm.org.apache.kafka.clients.admin.ListTransactionsOptions()
        options.filterProducerIds(self._longs(producers))
        listed, fault = self._settled(LIST, self._java.admin.listTransactions(options).all())
        if fault is not None:
            raise ClusterUnreachable(f"cluster {self._java.alias}: {LIST}: {fault.code}")
        names = {str(one.transactionalId()): int(one.producerId()) for one in listed}
        if not names:
            return CoordinatorsView(hidden=hidden)
        result = self._java.admin.describeTransactions(self._list(names))
        found = dict[int, CoordinatedTransaction]()
        for name, producer in names.items():
            described, fault = self._settled(DESCRIBE, result.description(name))
            if fault is None:
                found[producer] = _transaction(name, producer, described)
            else:
                hidden = hidden or f"transactional id {name} cannot be described: {fault.code}"
        return CoordinatorsView(found, hidden)

    def _hidden(self) -> str:
        """Why a coordinator may know more than it lists: it leaves out ids that the client may not DESCRIBE.

        A name that is nobody's shows whether the client may see every id: no other request says it.
        """
        probe = secrets.token_hex(16)
        _, fault = self._settled(
            DESCRIBE, self._java.admin.describeTransactions(self._list([probe])).description(probe)
        )
        if fault is not None and fault.code != NOT_FOUND:
            return f"DESCRIBE on TRANSACTIONAL_ID * is missing on {self._java.alias} ({fault.code})"
        futures = self._java.admin.describeTopics(self._list([STATE_TOPIC])).topicNameValues()
        topic, fault = self._settled("DescribeTopics", futures.get(STATE_TOPIC))
        if fault is not None:
            return f"whether all coordinators of {self._java.alias} answer is unknown ({STATE_TOPIC}: {fault.code})"
        if any(_has_no_leader(one) for one in topic.partitions()):
            return f"a partition of {STATE_TOPIC} on {self._java.alias} has no leader"
        return ""

    def fence_producers(self, transactional_ids: Collection[str]) -> dict[str, ItemFault | None]:
        if not transactional_ids:
            return {}
        futures = self._java.admin.fenceProducers(self._list(transactional_ids)).fencedProducers()
        return {name: self._settled(FENCE, futures.get(name))[1] for name in transactional_ids}

    def abort(self, where: TopicPartition, producer: ActiveProducer) -> ItemFault | None:
        # A leader that knows no epoch of a coordinator takes any from 0 on, as Kafka's own tool sends it.
        epoch = max(0, producer.coordinator_epoch)
        spec = self._jvm.org.apache.kafka.clients.admin.AbortTransactionSpec(
            self._partition(where), producer.producer, producer.epoch, epoch
        )
        return self._settled(ABORT, self._java.admin.abortTransaction(spec).all())[1]

    def _settled(self, api: str, future: Any) -> tuple[Any, ItemFault | None]:
        """What a future came to, or the fault of its item under Kafka's name.

        Raises ClusterUnreachable, RightsMissing, NotSupported for what concerns the whole request.
        """
        try:
            return self._java.answer(api, future), None
        except Py4JJavaError as error:
            cause, text = cause_of(error), f"cluster {self._java.alias}: {api}: {cause_of(error)}"
            if cause in DENIED_CLIENT:
                raise RightsMissing(text) from error
            if cause == "UnsupportedVersionException":
                raise NotSupported(f"{text}; its brokers are too old for it") from error
            if cause in NO_ANSWER:
                raise ClusterUnreachable(text) from error
            thrown = error.java_exception.getCause() or error.java_exception
            code = self._jvm.org.apache.kafka.common.protocol.Errors.forException(thrown).name()
            return None, ItemFault(str(code), "")

    def _partition(self, where: TopicPartition) -> Any:
        return self._jvm.org.apache.kafka.common.TopicPartition(where.topic, where.partition)

    def _list(self, items: Iterable[Any]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def _longs(self, numbers: Collection[int]) -> Any:
        """A list of `Long`: py4j makes an `Integer` of a small number."""
        made = self._list([])
        for number in numbers:
            made.addAll(self._jvm.java.util.stream.LongStream.rangeClosed(number, number).boxed().toList())
        return made

    def close(self) -> None:
        self._java.close()


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
