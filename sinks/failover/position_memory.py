"""Remembers, in a running job, how far each partition was copied, from one reading of the source's ends to the next.

A position holds for the logs it was found in. A source log that became shorter was recreated or truncated. A target log
whose offset-syncs began anew was, too. A topic with another id was recreated. In these cases Lockstep drops the
position and the sync known then, until another sync comes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sinks.ledger.known_positions import FAR, KnownPosition, LatestSync, furthest
from streaming.mm2.records import TopicPartition

Positions = Mapping[TopicPartition, KnownPosition]


@dataclass(frozen=True)
class CopyEvidence:
    """What was known before the source's ends were read, by partition there. `syncs`: of all partitions; None while
    MM2's offset-syncs are not read to their end. `counted`: counts with both clusters since the last reading. `unborn`:
    log starts of partitions whose topic was first seen on the source when the target had no copy yet. `recreated`:
    topics that have another id on the source since the last reading."""

    syncs: Mapping[TopicPartition, LatestSync] | None = None
    counted: Positions = field(default_factory=dict)
    unborn: Mapping[TopicPartition, int] = field(default_factory=dict)
    recreated: Collection[str] = ()


class PositionMemory:
    """Positions of one flow in a running job. Not thread-safe."""

    def __init__(self, positions: Positions, ends: Mapping[TopicPartition, int]) -> None:
        """`positions`: kept by an earlier process. They count as long as a sync of the partition is still known."""
        self._positions, self._ends = dict(positions), dict(ends)
        self._unconfirmed = set(positions)
        self._syncs: Mapping[TopicPartition, LatestSync] = {}
        self._gaps = set[TopicPartition]()
        self.to_count: Positions = {}
        """Positions in logs with gaps for which syncs brought nothing newer, and positions of new topics."""
        self._doubted: dict[TopicPartition, KnownPosition] = {}
        self.others = set[TopicPartition]()
        """Partitions whose logs the last renewal found to be new."""
        self.shrunk = dict[TopicPartition, int]()
        """Of `others`, partitions whose source log was longer before, with its end at the last renewal."""

    @property
    def positions(self) -> Positions:
        """The current positions."""
        return self._positions

    def moved(self, before: Positions) -> dict[TopicPartition, KnownPosition]:
        """Returns positions of `before` that the last renewal replaced by later ones of the same logs."""
        return {
            where: position
            for where, position in before.items()
            if where not in self.others and self._positions.get(where) != position
        }

    def hold(self, positions: Positions) -> None:
        """Sets these positions, whatever was found since."""
        self._positions.update(positions)

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forgets the positions of these partitions."""
        for where in partitions:
            self._positions.pop(where, None)

    def renew(self, ends: Mapping[TopicPartition, int], evidence: CopyEvidence) -> dict[TopicPartition, KnownPosition]:
        """Returns all known positions. `ends`: of the source, read after the evidence. Partitions without an end keep
        their position."""
        to_count: dict[TopicPartition, KnownPosition] = {}
        self.others.clear()
        self.shrunk.clear()
        self._gaps |= {where for where, sync in (evidence.syncs or {}).items() if sync.gap}
        for where, end in ends.items():
            before, found = self._positions.get(where), self._found(where, end, evidence)
            if found is not None and found.source < end and self._may_have_gaps(where, before, found):
                to_count[where] = found
            if found is None:
                self._positions.pop(where, None)
            else:
                self._positions[where] = found
            self._ends[where] = end
        self.to_count = to_count
        if evidence.syncs is not None:
            self._syncs = evidence.syncs
            self._unconfirmed.clear()
        return self._positions

    def note_counted_ahead(self, positions: Positions) -> None:
        """Replaces those `to_count` by positions that include records counted one by one."""
        self._positions.update(positions)

    def _may_have_gaps(self, where: TopicPartition, before: KnownPosition | None, found: KnownPosition) -> bool:
        nothing_copied = found.target == found.missing == 0
        return nothing_copied or (found == before and where in self._gaps)

    def forget(self, topics: Collection[str]) -> None:
        """Forgets topics that were deleted."""
        for known in (self._positions, self._ends, self._doubted):
            for where in [where for where in known if where.topic in topics]:
                del known[where]
        self._gaps = {where for where in self._gaps if where.topic not in topics}

    def _found(self, where: TopicPartition, end: int, evidence: CopyEvidence) -> KnownPosition | None:
        known, sync = self._positions.get(where), (evidence.syncs or {}).get(where)
        shrunk = end < self._ends.get(where, 0)
        if shrunk:
            self.shrunk[where] = end
        is_other = shrunk or where.topic in evidence.recreated
        if is_other and (stale := sync or self._syncs.get(where)) is not None:
            self._doubted[where] = stale.position
        if is_other or (evidence.syncs is not None and self._is_over(where, sync)):
            known = None
            self.others.add(where)
        found = list[KnownPosition]()
        if sync is not None and sync.position != self._doubted.get(where):
            self._doubted.pop(where, None)
            if known is None or not sync.resending or sync.position.target - known.target > FAR:
                found.append(sync.position)
        elif known is None and where in evidence.unborn:
            # MM2 never had to copy what retention deleted before the flow first saw the topic.
            known = KnownPosition(evidence.unborn[where], 0)
        if not is_other and where in evidence.counted:
            found.append(evidence.counted[where])
        # A record behind the source's end belongs to another log.
        return furthest(known, [one for one in found if one.source <= end])

    def _is_over(self, where: TopicPartition, sync: LatestSync | None) -> bool:
        """Whether the offset-syncs say that the logs are new ones."""
        before = self._syncs.get(where)
        if sync is None:
            return before is not None or where in self._unconfirmed
        return before is not None and sync.downstream < before.downstream
