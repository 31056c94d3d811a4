"""The differences that the running job knows of a partition: a bounded number by place, the rest by number. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sinks.kafka.ports.groups import LogRange
from sinks.verify.differences import Difference
from sinks.verify.partition_report import NOT_DIFFERENT
from sinks.verify.partition_verdicts import PartitionReport
from sinks.verify.windows import Window

MOST_SPOTS = 1000
"""Of a partition; as many as one report names."""


@dataclass(frozen=True, slots=True)
class Spot:
    """So many records that differ, from these offsets on."""

    difference: Difference
    upstream: int | None
    downstream: int | None
    count: int

    def is_deleted(self, log: LogRange, copy: LogRange) -> bool:
        """Whether neither side has its first record any more."""
        return (self.upstream is None or self.upstream < log.start) and (
            self.downstream is None or self.downstream < copy.start
        )


@dataclass
class KnownDifferences:
    """Of one partition. `spots`: by place. `dropped`: how many more records, in one spot of each kind at the last of
    their places; counted until both sides have deleted that, or everything is compared once more."""

    spots: list[Spot] = field(default_factory=list)
    dropped: dict[Difference, Spot] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.spots or self.dropped)

    @property
    def counts(self) -> Mapping[Difference, int]:
        """How many records differ."""
        counts = Counter[Difference]()
        for one in (*self.spots, *self.dropped.values()):
            counts[one.difference] += one.count
        return counts

    @property
    def dropped_count(self) -> int:
        """How many of them have no place here any more."""
        return sum(one.count for one in self.dropped.values())

    def forget_deleted(self, log: LogRange, copy: LogRange) -> None:
        """What neither side has any more."""
        self.spots = [one for one in self.spots if not one.is_deleted(log, copy)]
        self.dropped = {kind: one for kind, one in self.dropped.items() if not one.is_deleted(log, copy)}

    def clear(self) -> None:
        """Another topic, or one that lost records."""
        self.spots, self.dropped = [], {}

    def restart(self) -> None:
        """Everything is compared once more: what has no place would be counted twice."""
        self.dropped = {}

    def take(self, windows: Sequence[Window], report: PartitionReport) -> None:
        """What was found in these windows, instead of what was known of them."""
        first, last = windows[0], windows[-1]
        self.spots = [one for one in self.spots if not _is_within(one, first, last)]
        found = [
            Spot(one.difference, one.upstream, one.downstream, one.count)
            for one in report.findings
            if one.difference not in NOT_DIFFERENT
        ]
        named = Counter[Difference]()
        for one in found:
            named[one.difference] += one.count
        more = {kind: count - named[kind] for kind, count in report.differences.items() if kind not in NOT_DIFFERENT}
        found += [Spot(kind, first.upstream, None, count) for kind, count in more.items() if count > 0]
        self.spots += found
        for one in self.spots[MOST_SPOTS:]:
            self._drop(one)
        del self.spots[MOST_SPOTS:]

    def _drop(self, spot: Spot) -> None:
        known = self.dropped.get(spot.difference, replace(spot, count=0))
        self.dropped[spot.difference] = Spot(
            spot.difference,
            _later(known.upstream, spot.upstream),
            _later(known.downstream, spot.downstream),
            known.count + spot.count,
        )


def _later(one: int | None, other: int | None) -> int | None:
    return max((at for at in (one, other) if at is not None), default=None)


def _is_within(spot: Spot, first: Window, last: Window) -> bool:
    of_target = spot.difference in (Difference.DUPLICATE, Difference.EXTRA) and spot.downstream is not None
    if spot.upstream is not None and not of_target:
        return first.upstream <= spot.upstream < last.upstream_end
    return spot.downstream is not None and first.downstream <= spot.downstream < last.downstream_end
