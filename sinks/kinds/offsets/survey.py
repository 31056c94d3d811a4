"""Finds the offset of each group's partition in the other cluster. Reads both clusters, writes nothing.

The same survey serves `lockstep offsets`, the job, and the way back: a `Direction` says which way it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from sinks.background import awaited, begun
from sinks.faults import ItemFault, Observed
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import GroupPartition, GroupReader, LogRange, Offsets
from sinks.kinds.offsets.direction import Direction, GroupOffset, unread
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.record_search import Question, SearchResult
from sinks.kinds.offsets.same_offsets import Position, SameRecords, translate_same, within
from sinks.kinds.offsets.sync_history import History
from sinks.kinds.offsets.translation import (
    Answer,
    Evidence,
    LogEnds,
    Unanswered,
    search_window,
    search_window_back,
    translate,
    translate_back,
)
from sinks.kinds.offsets.verdicts import Facts, verdict_on
from streaming.mm2.records import MAX_INT64, TopicPartition
from streaming.mm2.replication_policy import is_written_by_mm2_alone

Find = Callable[[Mapping[GroupPartition, Question]], Mapping[GroupPartition, SearchResult]]
"""Searches records within a budget. A question without an answer may have one later."""


def replicated_offsets(direction: Direction, groups: Collection[str]) -> Observed[str, Offsets]:
    """Committed offsets of these groups on replicated topics, where they come from. Groups without any are left out.

    `errors`: groups whose offsets could not be read, so it is unknown whether they have any.
    """
    seen = direction.here.committed(groups)
    found = {
        group: {where: offset for where, offset in offsets.items() if where.topic in direction.names}
        for group, offsets in seen.items.items()
    }
    return Observed({group: offsets for group, offsets in sorted(found.items()) if offsets}, seen.errors)


def without_offset_there(direction: Direction, groups: Collection[str]) -> int | ItemFault:
    """Counts partitions of these groups that have an offset where they come from, and none where they go to.

    Returns the fault instead if a group's offsets could not be read. Raises ClusterUnreachable, RightsMissing.
    """
    here = replicated_offsets(direction, groups)
    there = direction.there.committed(here.items)
    # A missing right comes first: an operator can mend it now.
    for fault in sorted([*here.errors.values(), *there.errors.values()], key=lambda one: not one.is_denied):
        return fault
    return sum(
        direction.across(where) not in there.items.get(group, {})
        for group, offsets in here.items.items()
        for where in offsets
    )


def survey_offsets(
    direction: Direction,
    groups: Collection[str],
    memory: OffsetMemory,
    find: Find | None = None,
    same: SameRecords | None = None,
) -> list[GroupOffset]:
    """A row for each group and partition, sorted. A row for each group that could not be read comes last.

    `find`: searches records; None: translates without. `same`: for a copier that preserves offsets, which needs no
    other evidence. Compares ids of topics first if `memory` has not done so. Remembers answers, so that the next one
    does not lie further back. Raises ClusterUnreachable, RightsMissing.
    """
    replicated = replicated_offsets(direction, groups)
    committed = replicated.items
    partitions = {where for offsets in committed.values() for where in offsets}
    _recognize(direction, partitions, memory)
    states = read_states(direction.there, committed)
    # The ends there are read first, so a group at the end here has read all that lies below the end there.
    there = direction.there.ends({direction.across(where) for where in partitions})
    here = direction.here.ends(partitions)
    seen = _Observation(direction, memory, *states, there, here)
    seen.note_ends(partitions)
    positions = [
        seen.position(group, where, offset)
        for group, offsets in committed.items()
        for where, offset in sorted(offsets.items())
    ]
    questions = {at.key: question for at in positions if (question := seen.question(at))} if find else {}
    found = find(questions) if find and questions else {}
    proven = seen.proven(same, positions) if same else {}
    rows = []
    for at in positions:
        answer: Answer | Unanswered = Unanswered.NO_OFFSET_SYNC
        if at.ends is not None and same is not None:
            answer = translate_same(at.offset, at.ends, proven.get(at.place))
        elif at.ends is not None:
            answer = seen.translated(at, at.ends, found.get(at.key))
        rows.append(seen.row(at, answer, sought=at.key in questions and at.key not in found))
    alias, _ = direction.aliases
    return rows + [unread(group, alias, fault, direction.back) for group, fault in sorted(replicated.errors.items())]


def _recognize(direction: Direction, partitions: Collection[TopicPartition], memory: OffsetMemory) -> None:
    """Compares ids: the ledger's content may be about topics that were recreated since."""
    pairs = [direction.on_both(where) for where in partitions]
    remote = {upstream.topic: downstream.topic for upstream, downstream in pairs}
    wanted = {topic: remote[topic] for topic in memory.unrecognized(remote)}
    if wanted:
        ids = direction.source.topic_ids(wanted), direction.target.topic_ids(wanted.values())
        memory.recognize(wanted, *ids)


def ends_forward(
    settings: FlowSettings, memory: OffsetMemory, where: TopicPartition, here: LogRange | None, there: LogRange
) -> LogEnds:
    """Returns both ends of a partition of the source, and whether the target's end says where its readers continue."""
    alone = is_written_by_mm2_alone(settings.policy, settings.flow.source, where.topic)
    remote = settings.policy.format_remote_topic(settings.flow.source, where.topic)
    taken = memory.takeover_ends.get(TopicPartition(remote, where.partition))
    if settings.keeps_offsets and taken is not None:
        # What moved clients wrote behind it is no copy. Retention may have taken all that is.
        there = LogRange(there.start, max(there.start, min(there.end, taken)))
    return LogEnds(here, there, replication_alone=alone and not memory.lost_tail(where), taken_over_at=taken)


@dataclass(frozen=True, slots=True)
class _GroupPosition:
    """A group's offset in one partition, and what is known of both logs. `ends` None: the partition is missing there.

    `across`, `upstream`: the same partition there, and on the flow's source. `generation`: of both logs, see
    `sinks.kinds.offsets.log_tails`.
    """

    group: str
    where: TopicPartition
    offset: int
    across: TopicPartition
    upstream: TopicPartition
    ends: LogEnds | None
    history: History | None
    generation: int

    @property
    def key(self) -> GroupPartition:
        return self.group, self.where

    @property
    def place(self) -> Position:
        return Position(self.where, self.offset, self.generation)


@dataclass(frozen=True)
class _Observation:
    """What was read, and what it says in one direction. Partitions have the names of their own cluster."""

    direction: Direction
    memory: OffsetMemory
    committed: Observed[str, Offsets]
    members: Observed[str, int]
    there: Observed[TopicPartition, LogRange]
    here: Observed[TopicPartition, LogRange]

    def note_ends(self, partitions: Collection[TopicPartition]) -> None:
        back = self.direction.back
        source, target = (self.there, self.here) if back else (self.here, self.there)
        for upstream, downstream in map(self.direction.on_both, partitions):
            if (log := target.items.get(downstream)) is not None:
                self.memory.note_target_end(upstream, downstream, log.end)
            if (log := source.items.get(upstream)) is not None:
                self.memory.note_source_end(upstream, log.end)

    def position(self, group: str, where: TopicPartition, offset: int) -> _GroupPosition:
        across, (upstream, _) = self.direction.across(where), self.direction.on_both(where)
        there, here = self.there.items.get(across), self.here.items.get(where)
        if not self.direction.back:
            self.memory.drop_untrue(group, where)
        ends = None
        if there is not None and self.direction.back:
            # A log with an unknown end shows no truncation.
            ends = LogEnds(there, here or LogRange(0, MAX_INT64))
        elif there is not None:
            ends = ends_forward(self.direction.settings, self.memory, upstream, here, there)
        known = self.memory.histories.of(upstream), self.memory.generation(upstream)
        return _GroupPosition(group, where, offset, across, upstream, ends, *known)

    def question(self, at: _GroupPosition) -> Question | None:
        """What to search. A group with members there needs no answer."""
        if at.ends is None or self.members.items.get(at.group):
            return None
        back = self.direction.back
        window = search_window_back(at.offset, at.history) if back else search_window(at.offset, at.ends, at.history)
        if window is None:
            return None
        foreign = not at.ends.replication_alone
        return Question(at.where, at.offset, at.across, *window, back, at.generation, foreign)

    def proven(self, same: SameRecords, positions: Iterable[_GroupPosition]) -> Mapping[Position, int]:
        present = [(one, one.ends) for one in positions if one.ends is not None]
        moving = {one.place for one, ends in present if self._before(one) != within(one.offset, ends.target)}
        copies = {one.where: one.across for one, _ in present}
        return same.proven({one.place for one in positions}, copies, {one.where: ends for one, ends in present}, moving)

    def _before(self, at: _GroupPosition) -> int | None:
        """The group's offset there."""
        return self.committed.items.get(at.group, {}).get(at.across)

    def translated(self, at: _GroupPosition, ends: LogEnds, found: SearchResult | None) -> Answer | Unanswered:
        memory, back, (upstream, remote) = self.memory, self.direction.back, self.direction.on_both(at.where)
        if found is not None and ends.source is not None and not back:
            ends = replace(ends, markers_only=found.nothing_before(ends.source.end))
        evidence = Evidence(
            at.history,
            matched=found.offset if found else None,
            exact=found.exact if found else True,
            checkpoint=memory.checkpoint(at.group, upstream, remote),
            previous=memory.answers.get(at.key),
            truncated=not back and memory.histories.is_truncated(upstream),
            verified=None if back else memory.histories.exact_offset(upstream, at.offset),
        )
        answer = (translate_back if back else translate)(at.offset, ends, evidence)
        if isinstance(answer, Answer):
            memory.answers[at.key] = answer
        return answer

    def row(self, at: _GroupPosition, answer: Answer | Unanswered, *, sought: bool) -> GroupOffset:
        forward, memory = not self.direction.back, self.memory
        origin, before = self.here.items.get(at.where), self._before(at)
        resending = at.history.resending_since(at.ends.target.end) if at.ends and at.history else None
        facts = Facts(
            onto=self.direction.aliases[1],
            answer=answer if isinstance(answer, Unanswered) else answer.downstream if forward else answer.upstream,
            log=self.there.items.get(at.across),
            committed=before,
            members=self.members.items.get(at.group, 0),
            enabled=self.direction.enabled,
            skipped=answer.skipped if isinstance(answer, Answer) else 0,
            source_empty=origin is not None and origin.start == origin.end <= at.offset,
            beyond_end=origin is not None and at.offset > origin.end,
            stale=self._is_stale(at, origin),
            untrue=forward and memory.target_logs.is_untrue(at.group, at.where, before),
            own=forward and memory.is_own(at.across, before),
            error=self._unseen(at),
        )
        return GroupOffset(
            at.group,
            at.across,
            at.offset,
            answer,
            verdict_on(facts),
            before,
            self.direction.back,
            sought=sought,
            held=forward and resending is not None,
            unseen=facts.error is not None,
        )

    def _is_stale(self, at: _GroupPosition, origin: LogRange | None) -> bool:
        """Whether the log that the offset comes from has lost its tail since."""
        logs = self.memory.target_logs if self.direction.back else self.memory.source_logs
        if origin is not None and at.offset > origin.end:
            logs.note_beyond(at.group, at.upstream, at.offset)
        return logs.is_untrue(at.group, at.upstream, at.offset)

    def _unseen(self, at: _GroupPosition) -> str | None:
        """Why the group or its log there could not be read. A log that does not exist is no fault."""
        _, alias = self.direction.aliases
        of_group = self.committed.errors.get(at.group) or self.members.errors.get(at.group)
        if of_group:
            return f"the group on {alias} could not be read: {of_group.needing('DESCRIBE', 'GROUP', at.group)}"
        of_log = self.there.errors.get(at.across)
        if of_log and of_log.code != "UNKNOWN_TOPIC_OR_PART":
            return f"{at.across} on {alias} could not be read: {of_log.needing('DESCRIBE', 'TOPIC', at.across.topic)}"
        return None


MANY = 200
"""From so many groups on, a second thread for the second request saves time."""


def read_states(groups: GroupReader, names: Collection[str]) -> tuple[Observed[str, Offsets], Observed[str, int]]:
    """By group: committed offsets, and how many members it has. Raises ClusterUnreachable, RightsMissing,
    CoordinatorUnavailable."""
    if len(names) < MANY:
        return groups.committed(names), groups.members(names)
    members = begun(lambda: groups.members(names), "group-members")
    return groups.committed(names), awaited(members)
