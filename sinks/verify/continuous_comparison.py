"""Compares the records of a flow in rounds while the job runs: new records first, within a budget of bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from sinks.every_kind.listing import Listed
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import Checked, ExactOffsets, ExactRuns, remember
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.shared_listings import list_both
from sinks.ledger.ledger import Ledger
from sinks.verify.flow_progress import FlowProgress, PartitionPair
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_progress import PartitionProgress, Piece
from sinks.verify.partition_verdicts import PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.record_checks import compare_records
from sinks.verify.record_jobs import ByteBudget, MeteredJobs, RecordJobs
from sinks.verify.what_to_compare import (
    NO_IDS,
    SurveyedSide,
    changed_meanwhile,
    compacted_topics,
    ids_on_both,
    known_pairs,
    surplus_partitions,
)
from sinks.verify.windows import LEAST_WINDOW, cut
from streaming.mm2.records import TopicPartition

WRITE_EVERY = 300.0
"""Seconds between two times at which exact offsets are written down."""

POLICY_FOR = 300.0
"""Seconds for which the `cleanup.policy` of a topic is cached."""

SelectedPiece = tuple[PartitionProgress, Piece]
"""A piece of a partition that is compared now."""


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
        """Compare for one round. `now`: monotonic seconds. `seen_at`: seconds since the epoch. `goes_on`: asked between
        two steps."""
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
        chosen = self._chosen(turn, of_tail, compacted, now)
        if not chosen:
            return
        position = self._memory.histories.position
        plans = {one.where: _plan(one, piece, compacted) for one, piece in chosen}
        reports = self._reports(chosen, plans)
        moved = changed_meanwhile(plans.values(), self._both.source, self._both.target, self._ids)
        for one, piece in chosen:
            report = reports[one.where]
            if one.where not in moved and one.take(piece, report, of_tail=of_tail, now=now, seen_at=seen_at):
                self._progress.records += report.records
                self._newly.keep(report, self._memory.histories.exact.of(one.where), position)

    def _chosen(
        self, turn: Sequence[PartitionProgress], of_tail: bool, compacted: Collection[str], now: float
    ) -> list[SelectedPiece]:
        """Returns the next piece of each partition, in their order, until the budget of bytes is used up."""
        left = self._budget.level(now)
        found: list[SelectedPiece] = []
        for one in turn:
            if left <= 0:
                break
            topic = one.where.topic
            most, largest = self._budget.offsets(topic, left), self._budget.largest(topic)
            pairs, restarts = known_pairs(self._flow, self._memory.histories.of(one.where), one.log, one.copy)
            one.begin(pairs[-1] if pairs else None)
            track = one.track(of_tail)
            known = sorted({*pairs, *([track.at] if track.at is not None else [])})
            windows = cut(known, restarts, one.log, one.copy, one.start_of(track), self._least)
            if topic in compacted:
                piece = one.next_compacted(windows, largest, of_tail=of_tail)
            else:
                piece = one.next_piece(windows, most, largest, of_tail=of_tail)
            if piece is not None:
                found.append((one, piece))
                left -= self._budget.size(topic, piece.offsets)
        return found

    def _reports(
        self, chosen: Sequence[SelectedPiece], plans: Mapping[TopicPartition, PartitionPlan]
    ) -> dict[TopicPartition, PartitionReport]:
        jobs = MeteredJobs(self._open_jobs(), self._budget)
        found = compare_records(list(plans.values()), VerifyLevel.DIGESTS, lambda: jobs)
        reports = {report.where: report for report in found}
        again = [
            plan
            for (_, piece), plan in zip(chosen, plans.values(), strict=True)
            if reports[plan.where].verdict is PartitionVerdict.DIFFERENT and not piece.is_slice and not plan.compacted
        ]
        closer = compare_records(again, VerifyLevel.RECORDS, lambda: jobs) if again else []
        return reports | {report.where: report for report in closer}

    def _compacted(self, remote: Mapping[str, str], now: float) -> set[str]:
        """Returns the compacted topics by their names on the source. `remote`: name on the target by name on the
        source."""
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


def _plan(one: PartitionProgress, piece: Piece, compacted: Collection[str]) -> PartitionPlan:
    where, log, keyed = one.where, one.log, one.where.topic in compacted
    return PartitionPlan(where, one.remote, log, one.copy, piece.windows, log.start, compacted=keyed)


class NewlyExact:
    """Results of comparisons that are not in the ledger yet. `position`: how far the offset-syncs were read for the
    first report that is kept."""

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
        """Moves the results into the flow's ledger, if there is one. Raises NotLeading, ClusterUnreachable."""
        runs, checked = self._runs, self._checked
        self._runs, self._checked = {}, {}
        if not ledger.exists:
            return
        # First what another process found meanwhile, say `lockstep verify`: a difference must not be overwritten.
        exact.renew(ledger)
        if runs or checked:
            remember(ledger, [(where, one.runs) for where, one in runs.items()], exact, self._position, checked)
            exact.renew(ledger)
