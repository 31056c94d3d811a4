"""What a running job knows of how far each partition was copied, from reading to reading of the source's ends.

A position holds for the logs it was found in. A log of the source that became shorter was recreated or truncated, and
so was one on the target whose offset-syncs began anew: then what was known of it counts no more, nor does the sync that
was known then, until another one comes.
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
    MM2's offset-syncs are not read to their end. `counted`: with both clusters, since the last time. `unborn`: log
    starts of partitions whose topic was not on the target yet when it was first seen on the source."""

    syncs: Mapping[TopicPartition, LatestSync] | None = None
    counted: Positions = field(default_factory=dict)
    unborn: Mapping[TopicPartition, int] = field(default_factory=dict)


class PositionMemory:
    """Of one flow in a running job. One thread at a time uses it."""

    def __init__(self, positions: Positions, ends: Mapping[TopicPartition, int]) -> None:
        """As a process before kept them: its positions count as long as a sync of the partition is still known."""
        self._positions, self._ends = dict(positions), dict(ends)
        self._unconfirmed = set(positions)
        self._syncs: Mapping[TopicPartition, LatestSync] = {}
        self._gaps = set[TopicPartition]()
        self.to_count: Positions = {}
        """Positions in logs with gaps, as their syncs tell, that brought nothing newer; also those of new topics."""
        self._doubted: dict[TopicPartition, KnownPosition] = {}
        self.others = set[TopicPartition]()
        """Partitions whose logs are others than before, by the renewal that was last."""
        self.shrunk = dict[TopicPartition, int]()
        """Those of them whose log on the source ended farther on before, with the end of the renewal that was last."""

    @property
    def positions(self) -> Positions:
        """As they are now."""
        return self._positions

    def moved(self, before: Positions) -> dict[TopicPartition, KnownPosition]:
        """Positions of `before` that gave way to later ones of the same logs, in the renewal that was last."""
        return {
            where: position
            for where, position in before.items()
            if where not in self.others and self._positions.get(where) != position
        }

    def hold(self, positions: Positions) -> None:
        """What is known of these is this, whatever was found since."""
        self._positions.update(positions)

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing is known of these any more."""
        for where in partitions:
            self._positions.pop(where, None)

    def renew(self, ends: Mapping[TopicPartition, int], evidence: CopyEvidence) -> dict[TopicPartition, KnownPosition]:
        """The positions of all partitions of which one is known. `ends`: of the source, read after the evidence was
        found; what is not in it was not seen, and stays as it is."""
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
        """Those `to_count`, with what waits counted record by record."""
        self._positions.update(positions)

    def _may_have_gaps(self, where: TopicPartition, before: KnownPosition | None, found: KnownPosition) -> bool:
        nothing_copied = found.target == found.missing == 0
        return nothing_copied or (found == before and where in self._gaps)

    def forget(self, topics: Collection[str]) -> None:
        """Topics that are there no more."""
        for known in (self._positions, self._ends, self._doubted):
            for where in [where for where in known if where.topic in topics]:
                del known[where]
        self._gaps = {where for where in self._gaps if where.topic not in topics}

    def _found(self, where: TopicPartition, end: int, evidence: CopyEvidence) -> KnownPosition | None:
        known, sync = self._positions.get(where), (evidence.syncs or {}).get(where)
        shrunk = end < self._ends.get(where, 0)
        if shrunk:
            self.shrunk[where] = end
        if shrunk and (stale := sync or self._syncs.get(where)) is not None:
            self._doubted[where] = stale.position
        if shrunk or (evidence.syncs is not None and self._is_over(where, sync)):
            known = None
            self.others.add(where)
        found = list[KnownPosition]()
        if sync is not None and sync.position != self._doubted.get(where):
            self._doubted.pop(where, None)
            if known is None or not sync.resending or sync.position.target - known.target > FAR:
                found.append(sync.position)
        elif known is None and where in evidence.unborn:
            # What retention took before the flow first saw the topic was never to be copied.
            known = KnownPosition(evidence.unborn[where], 0)
        if not shrunk and where in evidence.counted:
            found.append(evidence.counted[where])
        # A record that lies behind the source's end is another log's.
        return furthest(known, [one for one in found if one.source <= end])

    def _is_over(self, where: TopicPartition, sync: LatestSync | None) -> bool:
        """Whether the offset-syncs say that the logs are others than before."""
        before = self._syncs.get(where)
        if sync is None:
            return before is not None or where in self._unconfirmed
        return before is not None and sync.downstream < before.downstream
