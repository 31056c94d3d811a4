"""Checks one partition: which cells are read, what their digests prove, which windows are read again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import xor

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import Run
from sinks.verify.matching import Edges, Matched
from sinks.verify.windows import CELL, Window, cells
from streaming.mm2.records import TopicPartition
from streaming.verify.rows import Digest, Fields, PairSums, PartitionRead


@dataclass(frozen=True)
class PartitionPlan:
    """A partition on both clusters: the readable part of its logs, and its windows (`windows.cut`).

    `since`: earlier source offsets do not count, unless a window has to begin before. `resending`: MM2 sends records
    again, and is not yet as far as it was. `compacted`: on either side, so that the last record of each key counts.
    `notes`: for the report. `cell`: offsets of a cell.
    """

    where: TopicPartition
    remote: TopicPartition
    source: LogRange
    target: LogRange
    windows: Sequence[Window]
    since: int = 0
    resending: bool = False
    compacted: bool = False
    notes: tuple[str, ...] = ()
    cell: int = CELL

    def reads(self, number: int, up: Sequence[int], down: Sequence[int]) -> tuple[PartitionRead, PartitionRead]:
        """Returns how source and target are read. `up`, `down`: the bounds of their cells."""
        return (
            PartitionRead(number, self.where.topic, self.where.partition, up),
            PartitionRead(number, self.remote.topic, self.remote.partition, down),
        )

    @property
    def may_have_expired(self) -> bool:
        """Whether records that the target lacks may be deleted there rather than not yet copied. It deleted some, and
        no sync says which. Only records that both sides still have prove something then."""
        return self.target.start > 0 and any(window.begins_open and window.ends_open for window in self.windows)


@dataclass(frozen=True, slots=True)
class Reread:
    """A window to match record by record. `number`: its index in the plan. `times`: timestamps are compared, too.
    `differs`: False if the digests agree."""

    number: int
    window: Window
    edges: Edges
    times: bool
    differs: bool = True


@dataclass
class WindowResult:
    """What is known of a window: equal records as runs, and what was matched if digests differ."""

    records: int = 0
    first: int | None = None
    through: int | None = None
    last_ms: int | None = None
    appended: int = 0
    runs: list[Run] = field(default_factory=list)
    matched: Matched | None = None
    differs: bool = False
    expired: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of a window with one digest of each side. `number`: of the window. `pending`: only the source has it."""

    number: int
    window: Window
    pending: bool = False


class PartitionCheck:
    """The check of a partition. `take_digests` fills it, then `take_match` for each window that is read again."""

    def __init__(self, plan: PartitionPlan) -> None:
        self.plan = plan
        self.results = [WindowResult() for _ in plan.windows]
        self.pending = 0
        self.pending_ms: int | None = None
        self.copies: dict[Fields, int] = {}
        """Records that only the target has in a window, with the offset at which the source has them elsewhere."""
        self._at_once: list[int] = []
        self._pending_from: dict[int, int] = {}
        self.cells = self._cut_into_cells()

    def _cut_into_cells(self) -> list[Cell]:
        found: list[Cell] = []
        for number, window in enumerate(self.plan.windows):
            core = window if window.closed else window.even_core(self.plan.since)
            if not self._is_guess(window, core):
                self._at_once.append(number)
                continue
            found += [Cell(number, cell) for cell in cells(core, self.plan.cell) if not cell.is_empty]
            self.results[number].expired = self._before(window, core)
            if window.ends_open and window.upstream_end > core.upstream_end:
                rest = Window(core.upstream_end, window.upstream_end, window.downstream_end, window.downstream_end)
                found.append(Cell(number, rest, pending=True))
        return found

    def _is_guess(self, window: Window, core: Window) -> bool:
        """Whether a digest by distance is worth a try: records may lie at one distance in `core`, with only old ones
        before it."""
        if window.closed:
            return True
        if window.ends_open and (window.begins_open or core.downstream_end < window.downstream_end):
            return False
        old_source = core.upstream - max(window.upstream, min(self.plan.since, core.upstream))
        old_target = core.downstream - window.downstream
        return (not old_source or self.plan.target.start > 0) and (
            not old_target or self.plan.source.start > 0 or self.plan.since > window.upstream
        )

    def _before(self, window: Window, core: Window) -> int:
        """Returns how many offsets before the core only one side still has."""
        if not window.begins_open or self.plan.since > window.upstream:
            return 0
        return max(core.upstream - window.upstream, core.downstream - window.downstream)

    def bounds(self) -> tuple[list[int], list[int]]:
        """Bounds of the cells on source and target."""
        if not self.cells:
            return [0, 0], [0, 0]
        last = self.cells[-1].window
        return (
            [*(cell.window.upstream for cell in self.cells), last.upstream_end],
            [*(cell.window.downstream for cell in self.cells), last.downstream_end],
        )

    def take_digests(self, digests: Mapping[int, Sequence[Digest]]) -> list[Reread]:
        """Returns what to match record by record. `digests`: of source and target, by the number of the cell."""
        again = [self._whole(number, times=True) for number in self._at_once]
        by_window: dict[int, list[tuple[Cell, Digest, Digest]]] = {}
        for at, cell in enumerate(self.cells):
            source, target = digests.get(at, (NONE, NONE))
            if cell.pending:
                self.pending, self.pending_ms = source.records, source.first_ms
                pending_end = cell.window.upstream if source.records else cell.window.upstream_end
                self._pending_from[cell.number] = pending_end
            else:
                by_window.setdefault(cell.number, []).append((cell, source, target))
        for number, end in self._pending_from.items():
            if number not in by_window:
                self.results[number].through = end
        for number, found in by_window.items():
            if (reread := self._take_window(number, found)) is not None:
                again.append(reread)
        return again

    def _take_window(self, number: int, found: Sequence[tuple[Cell, Digest, Digest]]) -> Reread | None:
        result, window = self.results[number], self.plan.windows[number]
        ours, theirs = total(one for _, one, _ in found), total(other for _, _, other in found)
        result.appended = theirs.appended
        result.last_ms, result.records = ours.last_ms, ours.records
        result.first = found[0][0].window.upstream
        result.through = self._pending_from.get(number, found[-1][0].window.upstream_end)
        odd = [
            cell for cell, one, other in found if not (same_records(one, other) and one.distances == other.distances)
        ]
        result.runs = [
            Run(cell.window.upstream, cell.window.downstream, cell.window.upstream_end - cell.window.upstream)
            for cell, one, _ in found
            if cell not in odd and one.records
        ]
        if not odd:
            return None
        if window.ends_open and self.pending:
            # Pending records are matched with the rest of the window.
            self.pending, self.pending_ms = 0, None
        differs = not same_records(ours, theirs)
        reread = self._whole(number, times=not theirs.appended, differs=differs)
        first, last = odd[0].window, odd[-1].window
        narrowed = replace(
            reread.window,
            upstream=window.upstream if window.begins_open else first.upstream,
            downstream=window.downstream if window.begins_open else first.downstream,
            upstream_end=window.upstream_end if window.ends_open else last.upstream_end,
            downstream_end=window.downstream_end if window.ends_open else last.downstream_end,
        )
        result.runs = [run for run in result.runs if not narrowed.upstream <= run.upstream < narrowed.upstream_end]
        result.records = sum(one.records for cell, one, _ in found if not _within(cell.window, narrowed))
        result.differs = differs
        return replace(reread, window=narrowed)

    def _whole(self, number: int, times: bool, differs: bool = True) -> Reread:
        window, plan = self.plan.windows[number], self.plan
        opens = window.begins_open
        edges = Edges(window.ends_open, opens and plan.source.start > 0, opens and plan.target.start > 0)
        return Reread(number, window, edges, times, differs)

    def unmatched_on_target(self) -> set[Fields]:
        """Returns the records of the target that no window has on the source."""
        found = [result.matched for result in self.results if result.matched]
        lost = {fields for one in found for fields in one.unmatched_source.values()}
        return {fields for one in found for fields in one.unmatched_target.values()} - lost

    def take_match(self, reread: Reread, matched: Matched, sums: PairSums) -> None:
        """Takes in what was found in a window that was read again."""
        result = self.results[reread.number]
        result.matched = matched
        result.appended = max(result.appended, not reread.times)
        result.differs = bool(matched.findings) or any(matched.uncounted.values())
        result.runs += matched.runs
        result.records += max(sums.records, sum(run.length for run in matched.runs))
        result.last_ms = max((ms for ms in (result.last_ms, sums.last_ms) if ms is not None), default=None)
        result.expired = matched.expired
        if result.first is None or reread.window.upstream < result.first:
            result.first = reread.window.upstream
        if reread.window.ends_open:
            self.pending = len(matched.pending)
            result.through = min(matched.pending, default=reread.window.upstream_end)
        else:
            result.through = max(result.through or 0, reread.window.upstream_end)


def _within(cell: Window, window: Window) -> bool:
    return window.upstream <= cell.upstream < window.upstream_end or (
        cell.upstream == cell.upstream_end and window.downstream <= cell.downstream < window.downstream_end
    )


# Digests of both sides of a window, and what they prove. Pure.


NONE = Digest()


def same_records(source: Digest, target: Digest) -> bool:
    """Whether both have the same records, in any order. Timestamps count unless the target's brokers set them."""
    return source.content == target.content and bool(target.appended or source.times == target.times)


SUMMED = ("records", "content_high", "content_low", "time_high", "time_low", "appended", "size")


def total(digests: Iterable[Digest]) -> Digest:
    """The digest of several cells together, without distances."""
    found = list(digests)
    times = [time for one in found for time in (one.first_ms, one.last_ms) if time is not None]
    return Digest(
        **{name: sum(getattr(one, name) for one in found) for name in SUMMED},
        mixed=reduce(xor, (one.mixed for one in found), 0),
        first_ms=min(times, default=None),
        last_ms=max(times, default=None),
    )
