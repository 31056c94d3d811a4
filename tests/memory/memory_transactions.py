"""The transactions of a cluster in memory: its coordinator, and the markers that it writes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sinks.faults import ItemFault, NotSupported, Observed
from sinks.kafka.ports.transactions import ActiveProducer, CoordinatedTransaction, CoordinatorsView
from streaming.mm2.records import TopicPartition
from tests.memory.memory_cluster import GONE, answer
from tests.memory.memory_records import MemoryRecords

ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT = "Ongoing", "CompleteCommit", "CompleteAbort"


class ProducerFenced(Exception):
    """What a producer gets after another client ended its transaction."""


@dataclass
class MemoryTransactions:
    """`supported`: whether brokers know the requests. `hidden`: why not all ids are shown. `denied`: what each
    request is refused with. `fenced`: producer ids that may write no more."""

    records: MemoryRecords
    supported: bool = True
    hidden: str = ""
    denied: ItemFault | None = None
    known: dict[str, CoordinatedTransaction] = field(default_factory=dict)
    fenced: set[int] = field(default_factory=set)

    def write(self, name: str, producer: int, where: TopicPartition, value: bytes, at_ms: int = 0) -> None:
        """A record in the transaction of this id, which begins it where none is open. Raises ProducerFenced."""
        self._check(producer)
        now = self.known.get(name)
        if now is None or now.state != ONGOING:
            now = CoordinatedTransaction(name, producer, ONGOING, at_ms)
        self.known[name] = now._replace(partitions=now.partitions | {where})
        self.records.logs[where].written(ActiveProducer(producer, 0, at_ms, 0), value, value, transactional=True)

    def commit(self, name: str) -> None:
        """Raises ProducerFenced."""
        self._check(self.known[name].producer)
        self._end(name, commit=True)

    def _check(self, producer: int) -> None:
        if producer in self.fenced:
            raise ProducerFenced

    def _end(self, name: str, *, commit: bool) -> None:
        now = self.known[name]
        for where in now.partitions:
            self.records.logs[where].decide(now.producer, commit=commit)
        state = COMPLETE_COMMIT if commit else COMPLETE_ABORT
        self.known[name] = now._replace(state=state, started_ms=None, partitions=frozenset())

    def producers(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, tuple[ActiveProducer, ...]]:
        self._answer("DescribeProducers")
        if self.denied:
            return Observed({}, dict.fromkeys(partitions, self.denied))
        logs = self.records.logs
        return Observed(
            {where: tuple(logs[where].producers.values()) for where in partitions if where in logs},
            {where: GONE for where in partitions if where not in logs},
        )

    def coordinated(self, producers: Collection[int]) -> CoordinatorsView:
        self._answer("ListTransactions")
        if self.hidden:
            return CoordinatorsView(hidden=self.hidden)
        return CoordinatorsView({one.producer: one for one in self.known.values() if one.producer in producers})

    def fence_producers(self, transactional_ids: Collection[str]) -> dict[str, ItemFault | None]:
        self._answer("InitProducerId")
        if self.denied:
            return dict.fromkeys(transactional_ids, self.denied)
        for name in transactional_ids:
            self.fenced.add(self.known[name].producer)
            self._end(name, commit=False)
        return dict.fromkeys(transactional_ids)

    def abort(self, where: TopicPartition, producer: ActiveProducer) -> ItemFault | None:
        self._answer("WriteTxnMarkers")
        if self.denied:
            return self.denied
        self.records.logs[where].decide(producer.producer, commit=False)
        return None

    def _answer(self, api: str) -> None:
        answer(self.records.alias, self.records.reachable)
        if not self.supported:
            raise NotSupported(f"cluster {self.records.alias}: {api}: its brokers are too old for it")
