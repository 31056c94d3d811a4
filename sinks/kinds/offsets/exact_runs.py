"""Exact places of records on the target: runs of records that `lockstep verify` compared one by one.

A run comes from a window in which nothing differs, and ends where the source has a gap. Lockstep believes a run until a
later offset-sync contradicts it: MM2 was restarted, or the target's log was truncated.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, TypeVar

import orjson

from sinks.kafka.ports.groups import LogRange
from sinks.ledger.ledger import Entry, Ledger
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

MOST_RUNS = 500
"""Most runs that are kept of a partition, the newest."""


VERIFIED = "verified"
"""The key of verified runs in the ledger."""


class Run(NamedTuple):
    """`length` records at successive offsets: the one at `upstream` + n on the source is the one at `downstream` + n on
    the target."""

    upstream: int
    downstream: int
    length: int

    @property
    def upstream_end(self) -> int:
        """The offset after the last record on the source."""
        return self.upstream + self.length

    @property
    def downstream_end(self) -> int:
        return self.downstream + self.length


T = TypeVar("T")


def neighbours(ones: Sequence[T], offset: int, side: str) -> tuple[T | None, T | None]:
    """Returns the last element at or before an offset, and the next element. `side`: the attribute by which `ones` is
    sorted."""
    at = bisect_right(ones, offset, key=attrgetter(side))
    return ones[at - 1] if at else None, ones[at] if at < len(ones) else None


def joined_runs(runs: Iterable[Run]) -> list[Run]:
    """Returns the runs sorted, with adjacent ones joined. The runs must not overlap."""
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
    """The runs of one partition, in order on both sides."""

    runs: Sequence[Run]
    position: int
    """Offset up to which the offset-syncs topic was read when they were verified."""
    ids: str = ""
    """Ids of the topic on both sides and of the offset-syncs topic. A recreated topic has another id, and the runs do
    not apply to it."""
    verified: Sequence[Stretch] = ()
    """The compared offsets of the source, including its gaps and records that the target has twice."""

    def offset_of(self, upstream: int) -> int | None:
        """Returns where a group at this source offset continues on the target; None: unknown.

        After a run it continues at the next run, if the target has no offset between them.
        """
        run, following = neighbours(self.runs, upstream, "upstream")
        if run is None:
            return None
        if upstream <= run.upstream_end:
            return run.downstream + upstream - run.upstream
        return run.downstream_end if following and following.downstream == run.downstream_end else None

    def fits(self, upstream: int, downstream: int) -> bool:
        """Whether an offset-sync agrees with these runs."""
        before, following = neighbours(self.runs, upstream, "upstream")
        if before and upstream < before.upstream_end:
            return downstream == before.downstream + upstream - before.upstream
        return (not before or downstream >= before.downstream_end) and (
            not following or downstream < following.downstream
        )

    def renewed(self, runs: Iterable[Run], position: int, checked: Iterable[Checked] = ()) -> ExactRuns:
        """Returns the runs with later results added. If both cover a record, the later result wins."""
        newer, verified = joined_runs(runs), with_checked(self.verified, checked)
        if not newer:
            return replace(self, verified=verified)
        up, down = newer[0], newer[-1]
        older = [
            run
            for run in self.runs
            if (run.upstream_end <= up.upstream and run.downstream_end <= up.downstream)
            or (run.upstream >= down.upstream_end and run.downstream >= down.downstream_end)
        ]
        return ExactRuns(joined_runs([*older, *newer])[-MOST_RUNS:], position, self.ids, verified)

    def as_text(self) -> str:
        """Returns the text for the ledger."""
        verified = [{VERIFIED: list(map(list, self.verified))}] if self.verified else []
        return orjson.dumps([self.position, self.ids, *map(list, self.runs), *verified]).decode()

    @classmethod
    def parse(cls, text: str) -> ExactRuns:
        """Returns the runs in a text of `as_text`. Raises ValueError, TypeError for any other text."""
        position, ids, *runs = orjson.loads(text)
        verified = runs.pop().get(VERIFIED, ()) if runs and isinstance(runs[-1], dict) else []
        found = [Run(*map(int, run)) for run in runs]
        in_order = all(
            one.upstream_end <= other.upstream and one.downstream_end <= other.downstream
            for one, other in pairwise(found)
        )
        if not isinstance(ids, str):
            raise TypeError("it does not name the ids of its topics")
        if not in_order or any(min(run) < 0 for run in found):
            raise ValueError("its runs are out of order")
        return cls(found, int(position), ids, tuple(joined_stretches(Stretch(*map(int, one)) for one in verified)))


class ExactOffsets:
    """The exact runs of all partitions of a flow, by their names on the source."""

    def __init__(self, ids_of: Callable[[str], str | None]) -> None:
        """`ids_of`: returns the ids of both topics, to which the runs belong; None while an id is not known."""
        self.ids_of = ids_of
        self._known: dict[TopicPartition, ExactRuns] = {}
        self._broken: dict[TopicPartition, int] = {}
        self._untrue: set[TopicPartition] = set()
        self._new_syncs = False

    def of(self, where: TopicPartition) -> ExactRuns | None:
        """Returns the runs that Lockstep believes; None: it knows none."""
        known = self._known.get(where)
        return known if known and known.ids == self.ids_of(where.topic) else None

    def take_in(self, where: TopicPartition, position: int, upstream: int, downstream: int, broken: bool) -> None:
        """Drops the runs that a sync at `position` of the offset-syncs topic contradicts. `broken`: MM2 was restarted,
        or the target's log truncated."""
        known = self._known.get(where)
        if broken or (known and not known.fits(upstream, downstream)):
            self._broken[where] = max(position, self._broken.get(where, position))
            if known and known.position < position:
                del self._known[where]

    def forget(self, where: TopicPartition) -> None:
        """Drops the runs of a partition: the topic was recreated, or its log on the target was truncated."""
        self._known.pop(where, None)
        self._untrue.add(where)

    def forget_all(self) -> None:
        """Drops all runs: the offset-syncs topic was recreated, so their `position` means nothing now."""
        self._known.clear()
        self._broken.clear()
        self._new_syncs = True

    def renew(self, ledger: Ledger) -> None:
        """Reads new runs from the ledger, and deletes runs that no longer hold there. Raises ClusterUnreachable."""
        found: dict[TopicPartition, ExactRuns] = {}
        untrue: list[tuple[str, ...]] = []
        for key, text in ledger.values(Entry.EXACT_OFFSETS).items():
            try:
                where, runs = TopicPartition(key[0], int(key[1])), ExactRuns.parse(text)
            except (ValueError, TypeError, IndexError) as error:
                log.warning("Lockstep ignores the exact offsets of %s in the ledger: %s", key, error)
                continue
            if self._is_untrue(where, runs):
                untrue.append(key)
            else:
                found[where] = runs
        if untrue:
            ledger.put({(Entry.EXACT_OFFSETS, key): None for key in untrue})
        self._known, self._new_syncs = found, False
        self._untrue.clear()

    def _is_untrue(self, where: TopicPartition, runs: ExactRuns) -> bool:
        # Other ids alone are no reason to forget them: `verify` may have seen a recreated topic before this process.
        if runs.ids != self.ids_of(where.topic):
            return self._new_syncs or where in self._untrue
        return where in self._untrue or runs.position < self._broken.get(where, runs.position)


def remember(
    ledger: Ledger,
    verified: Iterable[tuple[TopicPartition, Sequence[Run]]],
    known: ExactOffsets,
    to: int,
    checked: Mapping[TopicPartition, Sequence[Checked]] | None = None,
) -> None:
    """Adds verified runs to the ledger. `known`: runs known before. `to`: offset up to which the offset-syncs topic was
    read before. `checked`: compared stretches by partition.

    Raises ClusterUnreachable, RightsMissing.
    """
    runs, compared = dict(verified), checked or {}
    ledger.put(
        {
            (Entry.EXACT_OFFSETS, (where.topic, str(where.partition))): (
                (known.of(where) or ExactRuns((), to, ids))
                .renewed(runs.get(where, ()), to, compared.get(where, ()))
                .as_text()
            )
            for where in {**runs, **compared}
            if (runs.get(where) or compared.get(where)) and (ids := known.ids_of(where.topic)) is not None
        }
    )


# Which records of a partition were compared and found on the target: stretches of offsets of the source. Pure.
#
# A stretch holds until a record of it is found missing, changed, out of order, or preceded by a foreign one. Records
# that are there twice do not end it, for MM2 copies at least once.


MOST_STRETCHES = 100
"""Most stretches that are kept of a partition: the oldest and the newest. Others are compared again."""


class Stretch(NamedTuple):
    """Offsets of the source from `start` up to, not including, `end`."""

    start: int
    end: int


class Checked(NamedTuple):
    """A stretch that was compared. `whole`: whether all of its records are on the target, in order, unchanged."""

    stretch: Stretch
    whole: bool


def joined_stretches(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Returns the stretches sorted, without empty ones, with overlapping and adjacent ones joined."""
    found: list[Stretch] = []
    for one in sorted(one for one in stretches if one.start < one.end):
        if found and one.start <= found[-1].end:
            found[-1] = Stretch(found[-1].start, max(found[-1].end, one.end))
        else:
            found.append(one)
    return found


def without(stretches: Iterable[Stretch], gone: Stretch) -> list[Stretch]:
    """Returns the stretches without the offsets in `gone`."""
    left = [
        piece
        for one in stretches
        for piece in (Stretch(one.start, min(one.end, gone.start)), Stretch(max(one.start, gone.end), one.end))
    ]
    return joined_stretches(left)


def with_checked(known: Sequence[Stretch], checked: Iterable[Checked]) -> Sequence[Stretch]:
    """Returns the verified stretches after these comparisons, which count in their order."""
    found = list(known)
    for stretch, whole in checked:
        found = joined_stretches([*found, stretch]) if whole else without(found, stretch)
    return (*found[:1], *found[1:][-MOST_STRETCHES + 1 :])


def unverified_from(log: LogRange, known: Sequence[Stretch], last: int, *, whole: bool = False) -> int:
    """Returns the first offset to compare, so that everything is verified from the first known stretch on.

    The `last` offsets are compared in any case. Offsets before the first known stretch and before the `last` ones were
    never asked for. `whole`: everything was asked for, as by the job. Then an offset without a stretch may be a found
    difference.
    """
    first = log.start if whole and known else min([log.end - last, *(one.start for one in known[:1])])
    at = max(log.start, first)
    for one in known:
        if one.start <= at:
            at = max(at, one.end)
    return min(at, log.end)
