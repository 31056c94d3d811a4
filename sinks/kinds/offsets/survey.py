"""Finds the offset of each group's partition in the other cluster. Reads both clusters, writes nothing.

The same survey serves `lockstep offsets`, the job, and the way back: a `Direction` says which way it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

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


@dataclass(frozen=True)
class _Observation:
    """What was read. Partitions have the names of their own cluster."""

    committed: Observed[str, Offsets]
    members: Observed[str, int]
    there: Observed[TopicPartition, LogRange]
    here: Observed[TopicPartition, LogRange]


def replicated_offsets(direction: Direction, groups: Collection[str]) -> Observed[str, Offsets]:
    """Committed offsets of these groups on replicated topics, where they come from. Groups without any are left out.

    `errors`: groups whose offsets could not be read, so it is unknown whether they have any.
    """
    seen = direction.here.groups.committed(groups)
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
    there = direction.there.groups.committed(here.items)
    # A missing right comes first: an operator can mend it now.
    for fault in sorted([*here.errors.values(), *there.errors.values()], key=lambda one: not one.is_denied):
        return fault
    return sum(
        direction.across(where) not in there.items.get(group, {})
        for group, offsets in here.items.items()
        for where in offsets
    )


def survey_offsets(
    settings: FlowSettings,
    direction: Direction,
    replicated: Observed[str, Offsets],
    memory: OffsetMemory,
    find: Find | None = None,
    same: SameRecords | None = None,
) -> list[GroupOffset]:
    """A row for each group and partition, sorted. A row for each group that could not be read comes last.

    `replicated` must have been read just before. `find`: searches records; None: translates without. `same`: for a
    copier that preserves offsets, which needs no other evidence. Compares ids of topics first if `memory` has not done
    so. Remembers answers, so that the next one does not lie further back. Raises ClusterUnreachable, RightsMissing.
    """
    committed = replicated.items
    partitions = {where for offsets in committed.values() for where in offsets}
    _recognize(direction, partitions, memory)
    seen = _observe(direction, committed, partitions)
    _note_ends(direction, partitions, seen, memory)
    positions = [
        _position(settings, direction, seen, memory, group, where, offset)
        for group, offsets in committed.items()
        for where, offset in sorted(offsets.items())
    ]
    questions = _questions(direction, seen, positions) if find else {}
    found = find(questions) if find and questions else {}
    proven = _proven(same, direction, seen, positions) if same else {}
    rows = []
    for position in positions:
        key = (position.group, position.where)
        if same is None:
            answer = _translated(direction, memory, position, found.get(key))
        elif position.ends is None:
            answer = Unanswered.NO_OFFSET_SYNC
        else:
            answer = translate_same(position.offset, position.ends, proven.get(position.at))
        row = _row(direction, seen, memory, position, answer)
        rows.append(replace(row, sought=key in questions and key not in found, held=_is_held(direction, position)))
    alias = direction.here.reader.alias
    return rows + [unread(group, alias, fault, direction.back) for group, fault in sorted(replicated.errors.items())]


def _recognize(direction: Direction, partitions: Collection[TopicPartition], memory: OffsetMemory) -> None:
    """Compares ids: the ledger's content may be about topics that were recreated since."""
    pairs = [direction.on_both(where) for where in partitions]
    remote = {upstream.topic: downstream.topic for upstream, downstream in pairs}
    wanted = {topic: remote[topic] for topic in memory.unrecognized(remote)}
    if wanted:
        source, target = direction.source.groups, direction.target.groups
        memory.recognize(wanted, source.topic_ids(wanted), target.topic_ids(wanted.values()))


def _note_ends(
    direction: Direction, partitions: Collection[TopicPartition], seen: _Observation, memory: OffsetMemory
) -> None:
    source, target = (seen.there, seen.here) if direction.back else (seen.here, seen.there)
    for upstream, downstream in map(direction.on_both, partitions):
        if (log := target.items.get(downstream)) is not None:
            memory.note_target_end(upstream, downstream, log.end)
        if (log := source.items.get(upstream)) is not None:
            memory.note_source_end(upstream, log.end)


def _observe(
    direction: Direction, committed: Mapping[str, Offsets], partitions: Collection[TopicPartition]
) -> _Observation:
    groups = direction.there.groups
    states = read_states(groups, committed)
    # The ends there are read first, so a group at the end here has read all that lies below the end there.
    return _Observation(
        committed=states.committed,
        members=states.members,
        there=groups.ends({direction.across(where) for where in partitions}),
        here=direction.here.groups.ends(partitions),
    )


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """A group's offset in one partition, and what is known of both logs. `ends` None: the partition is missing there.

    `generation`: of both logs, see `sinks.kinds.offsets.log_tails`.
    """

    group: str
    where: TopicPartition
    offset: int
    ends: LogEnds | None
    history: History | None
    generation: int

    @property
    def at(self) -> Position:
        """Where the group continues."""
        return Position(self.where, self.offset, self.generation)


def ends_forward(
    settings: FlowSettings, memory: OffsetMemory, where: TopicPartition, here: LogRange | None, there: LogRange
) -> LogEnds:
    """Returns both ends of a partition of the source, and whether the target's end says where its readers continue."""
    alone = is_written_by_mm2_alone(settings.policy, settings.flow.source, where.topic)
    remote = settings.policy.format_remote_topic(settings.flow.source, where.topic)
    taken = memory.takeover_ends.get(TopicPartition(remote, where.partition))
    if settings.keeps_offsets and taken is not None:
        # What moved clients wrote behind it is no copy.
        there = LogRange(min(there.start, taken), min(there.end, taken))
    return LogEnds(here, there, replication_alone=alone and not memory.lost_tail(where), taken_over_at=taken)


def _position(
    settings: FlowSettings,
    direction: Direction,
    seen: _Observation,
    memory: OffsetMemory,
    group: str,
    where: TopicPartition,
    offset: int,
) -> GroupPosition:
    across = direction.across(where)
    there, here = seen.there.items.get(across), seen.here.items.get(where)
    upstream, _ = direction.on_both(where)
    if not direction.back:
        memory.drop_untrue(group, where)
    ends = None
    if there is not None and direction.back:
        # A log with an unknown end shows no truncation.
        ends = LogEnds(there, here or LogRange(0, MAX_INT64))
    elif there is not None:
        ends = ends_forward(settings, memory, upstream, here, there)
    known = memory.histories.of(upstream), memory.generation(upstream)
    return GroupPosition(group, where, offset, ends, *known)


def _questions(
    direction: Direction, seen: _Observation, positions: Iterable[GroupPosition]
) -> dict[GroupPartition, Question]:
    """What to search, by group and partition. A group with members there needs no answer."""
    questions: dict[GroupPartition, Question] = {}
    for at in positions:
        if at.ends is None or seen.members.items.get(at.group):
            continue
        if direction.back:
            window = search_window_back(at.offset, at.history)
        else:
            window = search_window(at.offset, at.ends, at.history)
        if window is not None:
            across, foreign = direction.across(at.where), not at.ends.replication_alone
            questions[at.group, at.where] = Question(
                at.where, at.offset, across, *window, direction.back, at.generation, foreign
            )
    return questions


def _proven(
    same: SameRecords, direction: Direction, seen: _Observation, positions: Iterable[GroupPosition]
) -> Mapping[Position, int]:
    ends = {one.where: one.ends for one in positions if one.ends is not None}
    copies = {where: direction.across(where) for where in ends}
    there = seen.committed.items
    moving = {
        one.at
        for one in positions
        if one.ends is not None
        and there.get(one.group, {}).get(copies[one.where]) != within(one.offset, one.ends.target)
    }
    return same.proven({one.at for one in positions}, copies, ends, moving)


def _row(
    direction: Direction, seen: _Observation, memory: OffsetMemory, at: GroupPosition, answer: Answer | Unanswered
) -> GroupOffset:
    group, across = at.group, direction.across(at.where)
    origin = seen.here.items.get(at.where)
    before = seen.committed.items.get(group, {}).get(across)
    facts = Facts(
        onto=direction.there.reader.alias,
        answer=answer if isinstance(answer, Unanswered) else _offset_there(direction, answer),
        log=seen.there.items.get(across),
        committed=before,
        members=seen.members.items.get(group, 0),
        enabled=direction.enabled,
        skipped=answer.skipped if isinstance(answer, Answer) else 0,
        source_empty=origin is not None and origin.start == origin.end <= at.offset,
        beyond_end=origin is not None and at.offset > origin.end,
        stale=_is_stale(direction, memory, at, origin),
        untrue=not direction.back and memory.target_logs.is_untrue(group, at.where, before),
        own=not direction.back and memory.is_own(across, before),
        error=_unseen(seen, group, across, direction.there.reader.alias),
    )
    unseen = facts.error is not None
    return GroupOffset(group, across, at.offset, answer, verdict_on(facts), before, direction.back, unseen=unseen)


def _is_stale(direction: Direction, memory: OffsetMemory, at: GroupPosition, origin: LogRange | None) -> bool:
    """Whether the log that the offset comes from has lost its tail since."""
    logs, (upstream, _) = memory.target_logs if direction.back else memory.source_logs, direction.on_both(at.where)
    if origin is not None and at.offset > origin.end:
        logs.note_beyond(at.group, upstream, at.offset)
    return logs.is_untrue(at.group, upstream, at.offset)


def _is_held(direction: Direction, at: GroupPosition) -> bool:
    if direction.back or at.ends is None or at.history is None:
        return False
    return at.history.resending_since(at.ends.target.end) is not None


def _offset_there(direction: Direction, answer: Answer) -> int:
    return answer.upstream if direction.back else answer.downstream


def _translated(
    direction: Direction, memory: OffsetMemory, at: GroupPosition, found: SearchResult | None
) -> Answer | Unanswered:
    if at.ends is None:
        return Unanswered.NO_OFFSET_SYNC
    ends, (upstream, remote) = at.ends, direction.on_both(at.where)
    if found is not None and ends.source is not None and not direction.back:
        ends = replace(ends, markers_only=found.nothing_before(ends.source.end))
    evidence = Evidence(
        at.history,
        matched=found.offset if found else None,
        exact=found.exact if found else True,
        checkpoint=memory.checkpoint(at.group, upstream, remote),
        previous=memory.answers.get((at.group, at.where)),
        truncated=not direction.back and memory.histories.is_truncated(upstream),
        verified=None if direction.back else memory.histories.exact_offset(upstream, at.offset),
    )
    answer = (translate_back if direction.back else translate)(at.offset, ends, evidence)
    if isinstance(answer, Answer):
        memory.answers[at.group, at.where] = answer
    return answer


def _unseen(seen: _Observation, group: str, across: TopicPartition, alias: str) -> str | None:
    """Why the group or its log there could not be read. A log that does not exist is no fault."""
    of_group = seen.committed.errors.get(group) or seen.members.errors.get(group)
    if of_group:
        return f"the group on {alias} could not be read: {of_group.needing('DESCRIBE', 'GROUP', group)}"
    of_log = seen.there.errors.get(across)
    if of_log and of_log.code != "UNKNOWN_TOPIC_OR_PART":
        return f"{across} on {alias} could not be read: {of_log.needing('DESCRIBE', 'TOPIC', across.topic)}"
    return None


MANY = 200
"""From so many groups on, a second thread for the second request saves time."""


class GroupStates(NamedTuple):
    """By group: committed offsets, and how many members it has."""

    committed: Observed[str, Offsets]
    members: Observed[str, int]


def read_states(groups: GroupReader, names: Collection[str]) -> GroupStates:
    """Raises ClusterUnreachable, RightsMissing, CoordinatorUnavailable."""
    if len(names) < MANY:
        return GroupStates(groups.committed(names), groups.members(names))
    members = begun(lambda: groups.members(names), "group-members")
    return GroupStates(groups.committed(names), awaited(members))
