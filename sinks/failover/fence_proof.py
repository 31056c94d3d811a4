"""Proves that a fence holds: the ends of the topics on the source stand still."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sinks.failover.fence_rules import shown, topics_of
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader, Span, Why
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

PROOF_POLL_INTERVAL = 1.0
"""Seconds between two readings of the end offsets."""

FENCE_READ_WITHIN = 30.0
"""Seconds to read what came behind an end."""


class FenceBroken(LockstepError):
    """Somebody goes on writing in spite of the fence."""

    code = "FENCE_BROKEN"


@dataclass(frozen=True)
class Waiting:
    """How time passes: a monotonic clock, and how to wait, in seconds."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Proof:
    """Ends must stand still for `still` seconds; what comes in the first `grace` seconds was under way already."""

    still: float = 10.0
    grace: float = 5.0


def prove_still(
    records: RecordReader, partitions: Collection[TopicPartition], proof: Proof, waiting: Waiting
) -> Mapping[TopicPartition, int]:
    """Returns the partitions' ends once nobody has written for so long; raises FenceBroken with the topics that move.

    A transaction's markers may still come, for its coordinator writes them: they are no records.
    """
    began = since = waiting.clock()
    ends = _ends(records, partitions)
    while True:
        waiting.sleep(PROOF_POLL_INTERVAL)
        after = _ends(records, partitions)
        written = _written(records, ends, after)
        now = waiting.clock()
        if written and now - began > proof.grace:
            raise FenceBroken(
                f"somebody goes on writing to {shown(topics_of(written))}: a super user, whom no ACL stops, or through "
                "a broker that does not know the fence yet. Stop that producer"
            )
        ends = after
        if written:
            since = now
        elif now - since >= proof.still:
            return {where: log.end for where, log in ends.items()}


def _ends(records: RecordReader, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange]:
    seen = records.ends(partitions)
    if seen.errors:
        where, fault = next(iter(seen.errors.items()))
        raise LockstepError(f"the end of {where} on {records.alias} cannot be read, so nothing is proven: {fault}")
    return seen.items


def _written(
    records: RecordReader, before: Mapping[TopicPartition, LogRange], after: Mapping[TopicPartition, LogRange]
) -> list[TopicPartition]:
    """Partitions that got records, markers not counted."""
    spans = [
        Span(where, before[where].end, log.end, 1, lambda record: True)
        for where, log in after.items()
        if log.end > before[where].end
    ]
    endings = records.scan(spans, FENCE_READ_WITHIN) if spans else {}
    # What could not be read counts as a record.
    return [span.where for span, ending in endings.items() if ending.why in (Why.TAKEN, Why.TIME, Why.FAULT)]
