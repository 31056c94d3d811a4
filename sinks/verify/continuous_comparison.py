"""Compares the records of a flow in rounds while the job runs: what is new first, as much as the budget allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sinks.every_kind.listing import Listed
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import Checked, ExactOffsets, ExactRuns, remember
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.offsets.sync_history import Pair, Restart
from sinks.kinds.shared_listings import list_both
from sinks.ledger.ledger import Ledger
from sinks.verify.byte_budget import ByteBudget
from sinks.verify.flow_progress import FlowProgress, PartitionPair
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_progress import Cut, PartitionProgress, Piece
from sinks.verify.partition_verdicts import PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.record_checks import compare_records
from sinks.verify.record_jobs import MeteredJobs, RecordJobs
from sinks.verify.what_to_compare import (
    NO_IDS,
    SurveyedSide,
    changed_meanwhile,
    compacted_topics,
    ids_on_both,
    known_pairs,
    surplus_partitions,
)
from sinks.verify.windows import LEAST_WINDOW, Window, cut
from streaming.mm2.records import TopicPartition

WRITE_EVERY = 300.0
"""Seconds between two times at which exact offsets are written down."""

POLICY_FOR = 300.0
"""Seconds for which `cleanup.policy` of a topic is believed."""


@dataclass(frozen=True)
class ComparedFlow:
    """Both sides of a flow, its ledger, and where MM2 writes its offset-syncs."""

    source: SurveyedSide
    target: SurveyedSide
    ledger: Ledger
    topics: MirrorTopics | None


class ContinuousComparison:
    """The comparison of one flow, on open clusters. Raises what reading them raises."""

    def __init__(
        self,
        flow: FlowSettings,
        both: ComparedFlow,
        open_jobs: Callable[[], RecordJobs],
        progress: FlowProgress,
        budget: ByteBudget,
        now: float,
        *,
        least: int = LEAST_WINDOW,
    ) -> None:
        """`least`: least offsets of a window between offset-syncs."""
        self._least = least
        self._flow, self._both, self._open_jobs = flow, both, open_jobs
        self._progress, self._budget = progress, budget
        self._memory = OffsetMemory()
        self._reading = MirrorReading(self._memory, both.topics)
        self._reading.load(both.ledger)
        self._ids = NO_IDS
        self._policies: dict[str, tuple[float, bool]] = {}
        self._newly, self._written_at = NewlyExact(self._memory.histories.position), now

    def run(self, now: float, seen_at: float, goes_on: Callable[[], bool] = lambda: True) -> None:
        """One round. `seen_at`: seconds since the epoch. `goes_on`: asked between two steps."""
        self._reading.catch_up()
        self._see(list_both(self._flow, self._both.source.reader, self._both.target.reader), now, seen_at)
        for of_tail in (True, False):
            if goes_on():
                turn = self._progress.tails() if of_tail else self._progress.histories(now)
                self._compare(turn, of_tail, now, seen_at)
        if now - self._written_at >= WRITE_EVERY:
            self.write_down(now)

    def _see(self, listed: Listed, now: float, seen_at: float) -> None:
        source, target = self._both.source, self._both.target
        remote = {topic: name for topic, name in listed.desired.remote.items() if name in listed.target}
        pairs = [
            (TopicPartition(topic, number), TopicPartition(name, number))
            for topic, name in remote.items()
            for number in range(min(listed.source[topic], listed.target[name]))
        ]
        unmirrored = len(listed.desired.remote) - len(remote) + len(listed.desired.shared)
        unmirrored += len(surplus_partitions(target.records, listed, remote))
        unmirrored += sum(max(0, listed.source[topic] - listed.target[name]) for topic, name in remote.items())
        self._recognize(remote)
        # The target's ends first: what it has by then, the source has when its ends are read.
        theirs = target.records.readable([across for _, across in pairs]).items
        ours = source.records.readable([where for where, _ in pairs]).items
        seen: dict[PartitionPair, tuple[LogRange, LogRange]] = {}
        for where, across in pairs:
            if where in ours and across in theirs:
                self._memory.note_target_end(where, across, theirs[across].end)
                seen[where, across] = (ours[where], theirs[across])
        lost = self._progress.see(seen, pairs, unmirrored, now, seen_at)
        for where, one in self._progress.partitions.items():
            if one.left_out and (known := self._memory.histories.exact.of(where)):
                one.take_verified(known.verified)
        self._newly.forget(lost)

    def _recognize(self, remote: Mapping[str, str]) -> None:
        here, there = self._ids = ids_on_both(self._both.source.reader, self._both.target.reader, remote)
        self._memory.recognize(remote, here, there)
        recreated = self._progress.recognize(
            {topic: (here.get(topic, ""), there.get(name, "")) for topic, name in remote.items()}
        )
        self._newly.forget(topics=recreated)

    def _compare(self, turn: Sequence[PartitionProgress], of_tail: bool, now: float, seen_at: float) -> None:
        compacted = self._compacted({one.where.topic: one.remote.topic for one in turn}, now)
        chosen = select_pieces(turn, of_tail, self._cut, self._newest, compacted, self._budget, now)
        if not chosen:
            return
        position = self._memory.histories.position
        plans = {one.progress.where: _plan(one, compacted) for one in chosen}
        reports = self._reports(chosen, plans)
        moved = changed_meanwhile(plans.values(), self._both.source, self._both.target, self._ids)
        for one in chosen:
            where = one.progress.where
            report = reports[where]
            if where not in moved and one.progress.take(one.piece, report, of_tail=of_tail, now=now, seen_at=seen_at):
                self._progress.records += report.records
                self._newly.keep(report, self._memory.histories.exact.of(where), position)

    def _reports(
        self, chosen: Sequence[SelectedPiece], plans: Mapping[TopicPartition, PartitionPlan]
    ) -> dict[TopicPartition, PartitionReport]:
        jobs = MeteredJobs(self._open_jobs(), self._budget)
        found = compare_records(list(plans.values()), VerifyLevel.DIGESTS, lambda: jobs)
        reports = {report.where: report for report in found}
        again = [
            plan
            for one, plan in zip(chosen, plans.values(), strict=True)
            if reports[plan.where].verdict is PartitionVerdict.DIFFERENT
            and not one.piece.is_slice
            and not plan.compacted
        ]
        closer = compare_records(again, VerifyLevel.RECORDS, lambda: jobs) if again else []
        return reports | {report.where: report for report in closer}

    def _cut(self, one: PartitionProgress) -> Cut:
        pairs, restarts = self._pairs(one)
        return partial(_windows, pairs, restarts, self._least, one)

    def _pairs(self, one: PartitionProgress) -> tuple[Sequence[Pair], Sequence[Restart]]:
        return known_pairs(self._flow, self._memory.histories.of(one.where), one.log, one.copy)

    def _newest(self, one: PartitionProgress) -> Pair | None:
        """The newest pair of offsets that are known to belong together."""
        return next(reversed(self._pairs(one)[0]), None)

    def _compacted(self, remote: Mapping[str, str], now: float) -> set[str]:
        """The compacted ones among these topics, by their names on the source."""
        unknown = {
            topic: name
            for topic, name in remote.items()
            if topic not in self._policies or now - self._policies[topic][0] >= POLICY_FOR
        }
        if unknown:
            found = compacted_topics(self._both.source, self._both.target, unknown)
            self._policies |= {topic: (now, topic in found) for topic in unknown}
        return {topic for topic in remote if self._policies[topic][1]}

    def write_down(self, now: float) -> None:
        """Writes what was compared into the flow's ledger. Raises NotLeading, ClusterUnreachable."""
        self._written_at = now
        self._newly.write(self._both.ledger, self._memory.histories.exact)


def _plan(one: SelectedPiece, compacted: Collection[str]) -> PartitionPlan:
    progress, windows = one.progress, one.piece.windows
    where, log = progress.where, progress.log
    keyed = where.topic in compacted
    return PartitionPlan(where, progress.remote, log, progress.copy, windows, log.start, compacted=keyed)


def _windows(
    pairs: Sequence[Pair],
    restarts: Sequence[Restart],
    least: int,
    one: PartitionProgress,
    since: int,
    common: Pair | None,
) -> Sequence[Window]:
    """`common`: a place that both sides have in common, because all before it was compared."""
    known = sorted({*pairs, *([common] if common is not None else [])})
    return cut(known, restarts, one.log, one.copy, since, least)


class NewlyExact:
    """What was compared and is not in the ledger yet. `position`: how far the offset-syncs were read for the first
    report that is kept."""

    def __init__(self, position: int) -> None:
        self._position = position
        self._runs: dict[TopicPartition, ExactRuns] = {}
        self._checked: dict[TopicPartition, list[Checked]] = {}

    def keep(self, report: PartitionReport, known: ExactRuns | None, position: int) -> None:
        """Keeps the exact runs and the checks of a report until `write`. `known`: the runs that the ledger has of the
        partition. `position`: how far the offset-syncs were read for it."""
        if not self._runs and not self._checked:
            self._position = position
        where = report.where
        if report.runs:
            before = self._runs.get(where) or ExactRuns(known.runs if known else (), position)
            self._runs[where] = before.renewed(report.runs, position)
        if report.checked is not None:
            self._checked.setdefault(where, []).append(report.checked)

    def forget(self, gone: Collection[TopicPartition] = (), topics: Collection[str] = ()) -> None:
        """Forgets partitions that lost records, and topics that were recreated."""
        for where in [one for one in {**self._runs, **self._checked} if one in gone or one.topic in topics]:
            self._runs.pop(where, None)
            self._checked.pop(where, None)

    def write(self, ledger: Ledger, exact: ExactOffsets) -> None:
        """Moves it into the flow's ledger, if there is one. Raises NotLeading, ClusterUnreachable."""
        runs, checked = self._runs, self._checked
        self._runs, self._checked = {}, {}
        if not ledger.exists:
            return
        # First what another process found meanwhile, say `lockstep verify`: a difference must not be overwritten.
        exact.renew(ledger)
        if runs or checked:
            remember(ledger, [(where, one.runs) for where, one in runs.items()], exact, self._position, checked)
            exact.renew(ledger)


# Which pieces of partitions the running job compares in a round, within its budget of bytes.


class SelectedPiece(NamedTuple):
    """A piece of a partition that is compared now."""

    progress: PartitionProgress
    piece: Piece


def select_pieces(
    partitions: Sequence[PartitionProgress],
    of_tail: bool,
    cut: Callable[[PartitionProgress], Cut],
    newest: Callable[[PartitionProgress], Pair | None],
    compacted: Collection[str],
    budget: ByteBudget,
    now: float,
) -> list[SelectedPiece]:
    """Returns the next piece of each partition, in their order, until the budget of bytes is used up.

    `of_tail`: pieces of the tail, which came since the comparison began; else of the history before it. `cut`: gives a
    partition's windows. `newest`: the newest offset-sync of a partition, where its tail begins. `compacted`: topics
    whose piece goes to the end in one, because log cleaners delete older records.
    """
    left = budget.level(now)
    found: list[SelectedPiece] = []
    for one in partitions:
        if left <= 0:
            break
        topic = one.where.topic
        most, largest = budget.offsets(topic, left), budget.largest(topic)
        windows = cut(one)
        if topic in compacted:
            piece = _compacted(one, of_tail, windows, newest(one), largest)
        elif of_tail:
            piece = one.next_of_tail(windows, newest(one), most, largest)
        else:
            piece = one.next_of_history(windows, most, largest)
        if piece is not None:
            found.append(SelectedPiece(one, piece))
            left -= budget.size(topic, piece.offsets)
    return found


def _compacted(one: PartitionProgress, of_tail: bool, cut: Cut, newest: Pair | None, largest: int) -> Piece | None:
    if one.history_end is None:
        one.begin(newest)
    track = one.tail if of_tail else one.history
    start = one.start_of(track)
    windows = tuple(cut(start, track.at))
    if not windows:
        return None
    piece = Piece(windows)
    if piece.offsets <= largest:
        return piece
    one.leave_out(windows[0].upstream, windows[-1].upstream_end)
    if not of_tail and one.tail.at is not None:
        track.at = one.tail.at
    return None
