"""Where consumer groups go on in the other cluster, for each of their partitions. Reads both, writes nothing.

The same survey serves `lockstep offsets`, the job, and the way back: a `Crossing` says which way it goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sinks.cluster.base import Reader
from sinks.cluster.groups import GroupReader, Offsets
from sinks.errors import ItemFault
from sinks.model import Change, Key, Kind, Observed
from sinks.offset_memory import OffsetMemory
from sinks.settings import FlowSettings
from sinks.survey import Listed
from streaming.records import TopicPartition
from streaming.translation import Answer, Ends, Evidence, LogRange, Unanswered, translate, translate_back
from streaming.verdicts import Facts, Judgement, Verdict, judge, written


@dataclass(frozen=True)
class End:
    """One side of a flow, as the survey needs it."""

    reader: Reader
    groups: GroupReader


@dataclass(frozen=True)
class Crossing:
    """Groups go from the cluster `here` to the cluster `there`; `names`: a replicated topic's name there, by its name
    here. `back`: from the flow's target to its source. `enabled`: what is found is to be written."""

    here: End
    there: End
    names: Mapping[str, str]
    enabled: bool
    back: bool = False

    def across(self, where: TopicPartition) -> TopicPartition:
        """The same partition there."""
        return TopicPartition(self.names[where.topic], where.partition)


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A group's partition: `where` it goes on, the offset it is at where it comes from, and the verdict.

    `answer`: the translation of `at`, or why there is none. `before`: the group's own offset where it goes on.
    """

    group: str
    where: TopicPartition
    at: int
    answer: Answer | Unanswered
    judgement: Judgement
    before: int | None = None
    back: bool = False

    @property
    def goes_on_at(self) -> int | None:
        """The offset found, if any."""
        if isinstance(self.answer, Unanswered):
            return None
        return self.answer.upstream if self.back else self.answer.downstream

    @property
    def change(self) -> Change | None:
        """What is to be written now, if anything."""
        if not self.judgement.writes:
            return None
        key = (self.group, self.where.topic, str(self.where.partition))
        return Change(Kind.GROUP_OFFSET, key, self.before, self.goes_on_at)

    @property
    def error_bound(self) -> int | None:
        """The most records that are read twice; None where nobody can tell."""
        return None if isinstance(self.answer, Unanswered) else self.answer.error_bound

    @property
    def settled(self) -> bool:
        """Whether nothing can become better before the group or the topic moves."""
        return self.judgement.verdict is Verdict.SYNCED and self.error_bound == 0

    def after(self, done: Collection[Key], onto: str) -> GroupOffset:
        """The same, once the changes with these keys were written to the cluster `onto`."""
        change = self.change
        if change is None or change.key not in done:
            return self
        return replace(self, judgement=written(onto), before=self.goes_on_at)

    def as_json(self) -> dict[str, Any]:
        """One row of `lockstep offsets`."""
        found = self.answer if isinstance(self.answer, Answer) else None
        upstream, downstream = (self.goes_on_at, self.at) if self.back else (self.at, self.goes_on_at)
        return {
            "group": self.group,
            "topic": self.where.topic,
            "partition": self.where.partition,
            "upstream_offset": upstream,
            "downstream_offset": downstream,
            "method": found.method.value if found else None,
            "error_bound": self.error_bound,
            "verdict": self.judgement.verdict.value,
            "reason": self.judgement.reason,
        }


@dataclass(frozen=True)
class _Seen:
    """What was read, partitions by their names on their own cluster."""

    committed: Observed[str, Offsets]
    members: Observed[str, int]
    there: Observed[TopicPartition, LogRange]
    here: Observed[TopicPartition, LogRange]


def forward(settings: FlowSettings, source: End, target: End, listed: Listed) -> Crossing:
    """From the flow's source to its target."""
    return Crossing(source, target, listed.desired.remote, settings.enabled[Kind.GROUP_OFFSET])


def backward(source: End, target: End, listed: Listed) -> Crossing:
    """From the flow's target to its source: failback."""
    return Crossing(target, source, {remote: topic for topic, remote in listed.desired.remote.items()}, True, back=True)


def chosen_groups(settings: FlowSettings, names: Iterable[str]) -> list[str]:
    """Groups that the filter lets through, sorted."""
    return sorted(group for group in names if settings.group_filter.should_replicate_group(group))


def replicated_offsets(crossing: Crossing, groups: Collection[str]) -> dict[str, Offsets]:
    """Committed offsets of these groups where they come from, on replicated topics; groups without any left out."""
    found = {
        group: {where: offset for where, offset in offsets.items() if where.topic in crossing.names}
        for group, offsets in crossing.here.groups.committed(groups).items.items()
    }
    return {group: offsets for group, offsets in sorted(found.items()) if offsets}


def survey_offsets(
    settings: FlowSettings, crossing: Crossing, committed: Mapping[str, Offsets], memory: OffsetMemory
) -> list[GroupOffset]:
    """A row for each group and partition, sorted. `committed` must have been read just before.

    Answers are remembered, so that the next one lies no further back. Raises ClusterUnreachable, RightsMissing.
    """
    seen = _look(crossing, committed)
    return [
        _row(settings, crossing, seen, memory, group, where, offset)
        for group, offsets in committed.items()
        for where, offset in sorted(offsets.items())
    ]


def _look(crossing: Crossing, committed: Mapping[str, Offsets]) -> _Seen:
    here = {where for offsets in committed.values() for where in offsets}
    groups = crossing.there.groups
    # The ends there before those here: a group at the end here has then read all that lies below the end there.
    return _Seen(
        committed=groups.committed(committed),
        members=groups.members(committed),
        there=groups.ends({crossing.across(where) for where in here}),
        here=crossing.here.groups.ends(here),
    )


def _row(
    settings: FlowSettings,
    crossing: Crossing,
    seen: _Seen,
    memory: OffsetMemory,
    group: str,
    where: TopicPartition,
    offset: int,
) -> GroupOffset:
    across = crossing.across(where)
    log, origin = seen.there.items.get(across), seen.here.items.get(where)
    answer: Answer | Unanswered = Unanswered.NO_OFFSET_SYNC
    if log is not None:
        ends = _ends(settings, crossing, where, origin, log)
        answer = _translated(crossing, memory, group, where, offset, ends)
    before = seen.committed.items.get(group, {}).get(across)
    facts = Facts(
        onto=crossing.there.reader.alias,
        answer=answer if isinstance(answer, Unanswered) else _goes_on_at(crossing, answer),
        log=log,
        committed=before,
        members=seen.members.items.get(group, 0),
        enabled=crossing.enabled,
        source_empty=origin is not None and origin.start == origin.end,
        beyond_end=origin is not None and offset > origin.end,
        error=_unseen(seen, group, across),
    )
    return GroupOffset(group, across, offset, answer, judge(facts), before, crossing.back)


def _goes_on_at(crossing: Crossing, answer: Answer) -> int:
    return answer.upstream if crossing.back else answer.downstream


def _ends(
    settings: FlowSettings, crossing: Crossing, where: TopicPartition, origin: LogRange | None, log: LogRange
) -> Ends:
    if crossing.back:
        return Ends(log, origin or LogRange(0, 0))
    # A name that tells where the topic is from is MM2's alone to write; others may be written by anybody.
    alone = settings.policy.topic_source(crossing.across(where).topic) == settings.flow.source
    return Ends(origin, log, replication_alone=alone)


def _translated(
    crossing: Crossing, memory: OffsetMemory, group: str, where: TopicPartition, offset: int, ends: Ends
) -> Answer | Unanswered:
    across, place = crossing.across(where), (group, where)
    on_source, on_target = (across, where) if crossing.back else (where, across)
    evidence = Evidence(
        memory.histories.of(on_source),
        checkpoint=memory.checkpoints.get((group, on_target)),
        previous=memory.answers.get(place),
    )
    answer = (translate_back if crossing.back else translate)(offset, ends, evidence)
    if isinstance(answer, Answer):
        memory.answers[place] = answer
    return answer


def _unseen(seen: _Seen, group: str, across: TopicPartition) -> str | None:
    """Why the group or its log there could not be read; a log that does not exist is no such fault."""
    faults: list[ItemFault | None] = [
        seen.committed.errors.get(group),
        seen.members.errors.get(group),
        seen.there.errors.get(across),
    ]
    return next((str(fault) for fault in faults if fault and fault.code != "UNKNOWN_TOPIC_OR_PART"), None)


def count_verdicts(rows: Iterable[GroupOffset]) -> dict[Verdict, int]:
    """How many rows have each verdict."""
    counts = dict.fromkeys(Verdict, 0)
    for row in rows:
        counts[row.judgement.verdict] += 1
    return counts
