"""Where records are on the target, as far as that is known exactly: runs of records that were compared one by one.

They come from `lockstep verify`, of windows in which nothing differs. A run breaks where the source has a gap. What was
verified is believed until a later offset-sync says otherwise: a restart of MM2 or a truncation of the target's log.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import orjson

from sinks.engine.ledger import Entry, Ledger
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

MOST_RUNS = 500
"""Of a partition, the newest."""


class Run(NamedTuple):
    """`length` records at successive offsets from `upstream` on that are those from `downstream` on, one for one."""

    upstream: int
    downstream: int
    length: int

    @property
    def upstream_end(self) -> int:
        """The offset behind the last one."""
        return self.upstream + self.length

    @property
    def downstream_end(self) -> int:
        """The offset behind the last one."""
        return self.downstream + self.length


def joined_runs(runs: Iterable[Run]) -> list[Run]:
    """Sorted, neighbours in one. The runs do not overlap."""
    found: list[Run] = []
    for run in sorted(runs):
        last = found[-1] if found else None
        if last and (last.upstream_end, last.downstream_end) == (run.upstream, run.downstream):
            found[-1] = Run(last.upstream, last.downstream, last.length + run.length)
        else:
            found.append(run)
    return found


@dataclass(frozen=True)
class ExactRuns:
    """Of one partition: runs in order on both sides, and how far the offset-syncs topic was read when they held."""

    runs: Sequence[Run]
    position: int

    def offset_of(self, upstream: int) -> int | None:
        """Where a group continues that reads on at this offset of the source; None where that is not known.

        Behind a run: where the next one begins, if nothing lies between them on the target.
        """
        at = bisect_right(self.runs, upstream, key=_upstream) - 1
        if at < 0:
            return None
        run = self.runs[at]
        if upstream <= run.upstream_end:
            return run.downstream + upstream - run.upstream
        following = self.runs[at + 1] if at + 1 < len(self.runs) else None
        return run.downstream_end if following and following.downstream == run.downstream_end else None

    def fits(self, upstream: int, downstream: int) -> bool:
        """Whether an offset-sync says nothing else than these runs do."""
        at = bisect_right(self.runs, upstream, key=_upstream) - 1
        before = self.runs[at] if at >= 0 else None
        if before and upstream < before.upstream_end:
            return downstream == before.downstream + upstream - before.upstream
        following = self.runs[at + 1] if at + 1 < len(self.runs) else None
        return (not before or downstream >= before.downstream_end) and (
            not following or downstream < following.downstream
        )

    def renewed(self, runs: Iterable[Run], position: int) -> ExactRuns:
        """With runs that were verified later, which win where both speak of the same records."""
        newer = joined_runs(runs)
        if not newer:
            return self
        up, down = newer[0], newer[-1]
        older = [
            run
            for run in self.runs
            if (run.upstream_end <= up.upstream and run.downstream_end <= up.downstream)
            or (run.upstream >= down.upstream_end and run.downstream >= down.downstream_end)
        ]
        return ExactRuns(joined_runs([*older, *newer])[-MOST_RUNS:], position)

    def as_text(self) -> str:
        """For the ledger."""
        return orjson.dumps([self.position, *map(list, self.runs)]).decode()

    @classmethod
    def parse(cls, text: str) -> ExactRuns:
        """What `as_text` wrote. Raises ValueError, TypeError for anything else."""
        position, *runs = orjson.loads(text)
        found = [Run(*map(int, run)) for run in runs]
        in_order = all(
            one.upstream_end <= other.upstream and one.downstream_end <= other.downstream
            for one, other in pairwise(found)
        )
        if not in_order or any(min(run) < 0 for run in found):
            raise ValueError("its runs are out of order")
        return cls(found, int(position))


def _upstream(run: Run) -> int:
    return run.upstream


class ExactOffsets:
    """Of all partitions of a flow, by their names on the source."""

    def __init__(self) -> None:
        self._known: dict[TopicPartition, ExactRuns] = {}
        self._broken: dict[TopicPartition, int] = {}

    def of(self, where: TopicPartition) -> ExactRuns | None:
        """What is believed of a partition."""
        return self._known.get(where)

    def hear(self, where: TopicPartition, position: int, upstream: int, downstream: int, broken: bool) -> None:
        """A sync at this offset of the offset-syncs topic. `broken`: MM2 was restarted, or the target truncated."""
        known = self._known.get(where)
        if broken or (known and not known.fits(upstream, downstream)):
            self.break_off(where, position)

    def break_off(self, where: TopicPartition, position: int) -> None:
        """What was verified when the offset-syncs topic was not yet read so far holds no more."""
        self._broken[where] = max(position, self._broken.get(where, position))
        if (known := self._known.get(where)) and known.position < position:
            del self._known[where]

    def renew(self, ledger: Ledger) -> None:
        """Reads what was verified meanwhile; forgets in the ledger what holds no more. Raises ClusterUnreachable."""
        found: dict[TopicPartition, ExactRuns] = {}
        untrue: list[tuple[str, ...]] = []
        for key, text in ledger.values(Entry.EXACT_OFFSETS).items():
            try:
                where, runs = TopicPartition(key[0], int(key[1])), ExactRuns.parse(text)
            except (ValueError, TypeError, IndexError) as error:
                log.warning("what is known of exact offsets of %s was left out: %s", key, error)
                continue
            if runs.position < self._broken.get(where, runs.position):
                untrue.append(key)
            else:
                found[where] = runs
        if untrue:
            ledger.put({(Entry.EXACT_OFFSETS, key): None for key in untrue})
        self._known = found


def remember(
    ledger: Ledger, verified: Iterable[tuple[TopicPartition, Sequence[Run]]], known: ExactOffsets, to: int
) -> None:
    """Writes down what was verified, beside what is known. `to`: how far the offset-syncs topic was read before.

    Raises ClusterUnreachable, RightsMissing.
    """
    none = ExactRuns((), to)
    ledger.put(
        {
            (Entry.EXACT_OFFSETS, (where.topic, str(where.partition))): (
                (known.of(where) or none).renewed(runs, to).as_text()
            )
            for where, runs in verified
            if runs
        }
    )
