"""Transactions that are open in partitions of one cluster (KIP-664): who left them open, and how to end them.

No client is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sinks.faults import ItemFault, Observed
from streaming.mm2.records import TopicPartition

ENDING = frozenset({"PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""States of a transaction that its coordinator has decided, with markers on their way (`TransactionState`)."""


class ActiveProducer(NamedTuple):
    """An idempotent producer, as a partition's leader knows it.

    `began`: offset of the first record of its open transaction; None if it has none. `last_ms`: timestamp of its last
    record, in ms since the epoch, set by the producer unless the topic has `LogAppendTime`. `coordinator_epoch`: -1 if
    the leader knows none.
    """

    producer: int
    epoch: int
    last_ms: int
    coordinator_epoch: int = -1
    began: int | None = None


class CoordinatedTransaction(NamedTuple):
    """A transactional id, as its coordinator knows it. `started_ms`: when its open transaction began, by the broker's
    clock; None if it has none. `partitions`: of the open transaction."""

    transactional_id: str
    producer: int
    state: str
    started_ms: int | None = None
    partitions: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True)
class CoordinatorsView:
    """What coordinators know, by producer id. `hidden`: why they may know more than they showed; "" if a producer that
    is missing in `items` certainly has no coordinator."""

    items: Mapping[int, CoordinatedTransaction] = field(default_factory=dict)
    hidden: str = ""


class TransactionReader(Protocol):
    """Reads transactions of one cluster. Raises ClusterUnreachable, RightsMissing, NotSupported (brokers before
    2.8)."""

    def producers(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, tuple[ActiveProducer, ...]]:
        """Returns the producers that wrote to each partition lately. Producers without an id are left out."""

    def coordinated(self, producers: Collection[int]) -> CoordinatorsView:
        """Returns what coordinators know of these producers. Also raises NotSupported for brokers before 3.0."""


class Transactions(TransactionReader, Protocol):
    """Reads and ends transactions. Each method raises as `TransactionReader`."""

    def fence_producers(self, transactional_ids: Collection[str]) -> dict[str, ItemFault | None]:
        """Have coordinators abort the open transactions of these ids. Their producers learn that they are fenced."""

    def abort(self, where: TopicPartition, producer: ActiveProducer) -> ItemFault | None:
        """Write an abort marker for the open transaction of a producer into one partition.

        Only for a transaction that no coordinator would commit. No coordinator is asked, and no producer learns of it.
        """
