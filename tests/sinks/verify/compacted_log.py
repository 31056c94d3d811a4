"""A compacted partition and its copy, some records lost on their way, both sides cleaned as cleaners may."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import Pair
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.windows import cut
from streaming.mm2.records import TopicPartition
from tests.sinks.verify.mirrored_log import Record

COUNT = 40


@dataclass
class CompactedLog:
    """`lost`: source offsets of what never arrived; the record at the end always does. `since`: what is compared."""

    number: int
    since: int
    source: list[Record]
    target: list[Record]
    lost: set[int]
    sync: Pair

    @property
    def differs(self) -> bool:
        """Whether a key whose last record is compared has come to another value, or to none, on the target."""
        return any(
            one.offset >= self.since and one.offset in self.lost and value_of(self.target, one.key) != one.value
            for one in lasts(self.source).values()
        )

    def plan(self) -> PartitionPlan:
        ours, theirs = LogRange(0, COUNT), LogRange(0, COUNT - len(self.lost))
        topic = f"c{self.number}"
        return PartitionPlan(
            TopicPartition(topic, 0),
            TopicPartition(f"a.{topic}", 0),
            *(ours, theirs, cut([self.sync], (), ours, theirs, self.since, 1), self.since),
        )


def compacted_log(number: int, dice: random.Random) -> CompactedLog:
    source = [
        Record(at, b"k%d" % dice.randrange(6), None if dice.random() < 0.4 else b"v%d" % at, None, 1000 + at)
        for at in range(COUNT)
    ]
    source[-1] = replace(source[-1], key=b"last", value=b"last")
    since = dice.choice((0, 10, 25))
    lost = {at for at in range(since + 1, COUNT - 1) if dice.random() < dice.choice((0.0, 0.1))}
    target = [replace(one, offset=place) for place, one in enumerate(one for one in source if one.offset not in lost)]
    sync = Pair(since, since)
    return CompactedLog(number, since, cleaned(source, dice, 0.0), cleaned(target, dice, 0.5), lost, sync)


def lasts(records: list[Record]) -> dict[bytes | None, Record]:
    return {one.key: one for one in records}


def value_of(records: list[Record], key: bytes | None) -> bytes | None:
    found = lasts(records).get(key)
    return found.value if found else None


def cleaned(records: list[Record], dice: random.Random, tombstones: float) -> list[Record]:
    """Without some of the older values, and some of the tombstones that are last, and all before those."""
    last = lasts(records)
    gone = {key for key, one in last.items() if one.value is None and dice.random() < tombstones}
    return [one for one in records if one.key not in gone and (one is last[one.key] or dice.random() < 0.5)]
