"""Where consumer groups go on in the other cluster, for each of their partitions. Reads both, writes nothing.

The same survey serves `lockstep offsets`, the job, and the way back: a `Direction` says which way it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from sinks.faults import ItemFault, Observed
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import LogRange, Offsets
from sinks.kinds.offsets.direction import Direction, GroupOffset
from sinks.kinds.offsets.history import History
from sinks.kinds.offsets.memory import OffsetMemory, Place
from sinks.kinds.offsets.record_search import Found, Question
from sinks.kinds.offsets.search_window import search_window, search_window_back
from sinks.kinds.offsets.translation import Answer, Evidence, LogEnds, Unanswered, translate, translate_back
from sinks.kinds.offsets.verdicts import Facts, judge
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import is_written_by_mm2_alone

Find = Callable[[Mapping[Place, Question]], Mapping[Place, Found]]
"""Looks for records, as many as its budget lets it; what is not answered now may be later."""


@dataclass(frozen=True)
class _Seen:
    """What was read, partitions by their names on their own cluster."""

    committed: Observed[str, Offsets]
    members: Observed[str, int]
    there: Observed[TopicPartition, LogRange]
    here: Observed[TopicPartition, LogRange]


def chosen_groups(settings: FlowSettings, names: Iterable[str]) -> list[str]:
    """Groups that the filter lets through, sorted."""
    return sorted(group for group in names if settings.group_filter.should_replicate_group(group))


def replicated_offsets(direction: Direction, groups: Collection[str]) -> dict[str, Offsets]:
    """Committed offsets of these groups where they come from, on replicated topics; groups without any left out."""
    found = {
        group: {where: offset for where, offset in offsets.items() if where.topic in direction.names}
        for group, offsets in direction.here.groups.committed(groups).items.items()
    }
    return {group: offsets for group, offsets in sorted(found.items()) if offsets}


def survey_offsets(
    settings: FlowSettings,
    direction: Direction,
    committed: Mapping[str, Offsets],
    memory: OffsetMemory,
    find: Find | None = None,
) -> list[GroupOffset]:
    """A row for each group and partition, sorted. `committed` must have been read just before.

    `find`: looks for records; None translates without. Answers are remembered, so that the next one lies no further
    back. Raises ClusterUnreachable, RightsMissing.
    """
    seen = _look(direction, committed)
    stands = [
        _stand(settings, direction, seen, memory, group, where, offset)
        for group, offsets in committed.items()
        for where, offset in sorted(offsets.items())
    ]
    questions = _questions(direction, seen, stands) if find else {}
    found = find(questions) if find and questions else {}
    rows = []
    for stand in stands:
        place = (stand.group, stand.where)
        row = _row(direction, seen, memory, stand, found.get(place))
        rows.append(replace(row, sought=place in questions and place not in found, held=_is_held(direction, stand)))
    return rows


def _look(direction: Direction, committed: Mapping[str, Offsets]) -> _Seen:
    here = {where for offsets in committed.values() for where in offsets}
    groups = direction.there.groups
    # The ends there before those here: a group at the end here has then read all that lies below the end there.
    return _Seen(
        committed=groups.committed(committed),
        members=groups.members(committed),
        there=groups.ends({direction.across(where) for where in here}),
        here=direction.here.groups.ends(here),
    )


@dataclass(frozen=True, slots=True)
class _Stand:
    """Where a group stands in one partition; `ends` None: the partition does not exist there."""

    group: str
    where: TopicPartition
    offset: int
    ends: LogEnds | None
    history: History | None


def _stand(
    settings: FlowSettings,
    direction: Direction,
    seen: _Seen,
    memory: OffsetMemory,
    group: str,
    where: TopicPartition,
    offset: int,
) -> _Stand:
    across = direction.across(where)
    log, origin = seen.there.items.get(across), seen.here.items.get(where)
    history = memory.histories.of(across if direction.back else where)
    if log is None:
        return _Stand(group, where, offset, None, history)
    if direction.back:
        return _Stand(group, where, offset, LogEnds(log, origin or LogRange(0, 0)), history)
    alone = is_written_by_mm2_alone(settings.policy, settings.flow.source, where.topic)
    return _Stand(group, where, offset, LogEnds(origin, log, replication_alone=alone), history)


def _questions(direction: Direction, seen: _Seen, stands: Iterable[_Stand]) -> dict[Place, Question]:
    """What is to be found, by group and partition. A group that has members there needs no answer."""
    questions: dict[Place, Question] = {}
    for stand in stands:
        if stand.ends is None or seen.members.items.get(stand.group):
            continue
        if direction.back:
            place = search_window_back(stand.offset, stand.history)
        else:
            place = search_window(stand.offset, stand.ends, stand.history)
        if place is not None:
            across = direction.across(stand.where)
            asked = Question(stand.where, stand.offset, across, *place, back=direction.back)
            questions[stand.group, stand.where] = asked
    return questions


def _row(direction: Direction, seen: _Seen, memory: OffsetMemory, stand: _Stand, found: Found | None) -> GroupOffset:
    group, across = stand.group, direction.across(stand.where)
    origin = seen.here.items.get(stand.where)
    answer = _translated(direction, memory, stand, found)
    before = seen.committed.items.get(group, {}).get(across)
    facts = Facts(
        onto=direction.there.reader.alias,
        answer=answer if isinstance(answer, Unanswered) else _goes_on_at(direction, answer),
        log=seen.there.items.get(across),
        committed=before,
        members=seen.members.items.get(group, 0),
        enabled=direction.enabled,
        source_empty=origin is not None and origin.start == origin.end,
        beyond_end=origin is not None and stand.offset > origin.end,
        error=_unseen(seen, group, across),
    )
    return GroupOffset(group, across, stand.offset, answer, judge(facts), before, direction.back)


def _is_held(direction: Direction, stand: _Stand) -> bool:
    if direction.back or stand.ends is None or stand.history is None:
        return False
    return stand.history.resending_since(stand.ends.target.end) is not None


def _goes_on_at(direction: Direction, answer: Answer) -> int:
    return answer.upstream if direction.back else answer.downstream


def _translated(direction: Direction, memory: OffsetMemory, stand: _Stand, found: Found | None) -> Answer | Unanswered:
    if stand.ends is None:
        return Unanswered.NO_OFFSET_SYNC
    ends, on_target = stand.ends, stand.where if direction.back else direction.across(stand.where)
    if found is not None and ends.source is not None and not direction.back:
        ends = replace(ends, markers_only=found.nothing_before(ends.source.end))
    evidence = Evidence(
        stand.history,
        matched=found.offset if found else None,
        exact=found.exact if found else True,
        checkpoint=memory.checkpoints.get((stand.group, on_target)),
        previous=memory.answers.get((stand.group, stand.where)),
    )
    answer = (translate_back if direction.back else translate)(stand.offset, ends, evidence)
    if isinstance(answer, Answer):
        memory.answers[stand.group, stand.where] = answer
    return answer


def _unseen(seen: _Seen, group: str, across: TopicPartition) -> str | None:
    """Why the group or its log there could not be read; a log that does not exist is no such fault."""
    faults: list[ItemFault | None] = [
        seen.committed.errors.get(group),
        seen.members.errors.get(group),
        seen.there.errors.get(across),
    ]
    return next((str(fault) for fault in faults if fault and fault.code != "UNKNOWN_TOPIC_OR_PART"), None)
