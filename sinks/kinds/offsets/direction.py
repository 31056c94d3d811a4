"""The direction in which group offsets are translated, and the result for one partition of a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sinks.every_kind.comparison import GroupSummary
from sinks.every_kind.listing import Listed
from sinks.faults import ItemFault
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import GroupReader
from sinks.kinds.offsets.translation import Answer, Unanswered
from sinks.kinds.offsets.verdicts import SYNCED, Judgement, Verdict
from sinks.model.changes import Change, Key, Kind
from streaming.mm2.records import TopicPartition

NO_PARTITION = TopicPartition("", 0)
"""Stands for the partition in the row of a group whose partitions are unknown."""


@dataclass(frozen=True)
class Direction:
    """Translates group offsets from the cluster `here` to the cluster `there`: from the flow's source to its target or,
    with `back`, from its target to its source.

    `source`, `target`: read the groups of both clusters. `listed`: topics of both clusters.
    """

    settings: FlowSettings
    source: GroupReader
    target: GroupReader
    listed: Listed
    back: bool = False
    _across: dict[TopicPartition, TopicPartition] = field(default_factory=dict, repr=False, compare=False)

    @property
    def here(self) -> GroupReader:
        return self.target if self.back else self.source

    @property
    def there(self) -> GroupReader:
        return self.source if self.back else self.target

    @property
    def aliases(self) -> tuple[str, str]:
        """The aliases of the clusters `here` and `there`."""
        source, target = self.settings.flow.source, self.settings.flow.target
        return (target, source) if self.back else (source, target)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Names of replicated topics `there`, by their names `here`."""
        remote = self.listed.desired.remote
        return {copy: topic for topic, copy in remote.items()} if self.back else remote

    @property
    def enabled(self) -> bool:
        """Whether translated offsets are committed: always on the way back, else if sync.group.offsets.enabled is
        true."""
        return self.back or self.settings.enabled[Kind.GROUP_OFFSET]

    def across(self, where: TopicPartition) -> TopicPartition:
        """Returns the partition `there` that belongs to a partition `here`."""
        found = self._across.get(where)
        if found is None:
            found = self._across[where] = TopicPartition(self.names[where.topic], where.partition)
        return found

    def on_both(self, where: TopicPartition) -> tuple[TopicPartition, TopicPartition]:
        """Returns the partition of the flow's source and that of its target, for a partition `here`."""
        return (self.across(where), where) if self.back else (where, self.across(where))


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """One partition of a group, with its verdict."""

    group: str
    where: TopicPartition
    """The partition on which the group would continue."""
    at: int
    """The group's committed offset in the cluster that it comes from."""
    answer: Answer | Unanswered
    """The translation of `at`, or why there is none."""
    judgement: Judgement
    before: int | None = None
    """The group's own offset in the cluster where it would continue; None: it has none."""
    back: bool = False
    """The group goes from the target to the source."""
    sought: bool = False
    """The search for its record still runs."""
    held: bool = False
    """The answer waits while MM2 sends records again."""
    unseen: bool = False
    """The group's offsets on one side could not be read."""

    @property
    def topic(self) -> str:
        return self.where.topic

    @property
    def verdict(self) -> str:
        return self.judgement.verdict.value

    @property
    def goes_on_at(self) -> int | None:
        """The translated offset; None if there is none."""
        if isinstance(self.answer, Unanswered):
            return None
        return self.answer.upstream if self.back else self.answer.downstream

    @property
    def change(self) -> Change | None:
        """The change to write now; None if there is none."""
        if not self.judgement.writes:
            return None
        key = (self.group, self.where.topic, str(self.where.partition))
        return Change(Kind.GROUP_OFFSET, key, self.before, self.goes_on_at)

    @property
    def error_bound(self) -> int | None:
        """Most records that the group reads twice; None: unknown."""
        return None if isinstance(self.answer, Unanswered) else self.answer.error_bound

    @property
    def skipped(self) -> int:
        """About how many unread records the group misses where it continues; see `Answer`."""
        return 0 if isinstance(self.answer, Unanswered) else self.answer.skipped

    @property
    def settled(self) -> bool:
        """Whether the offset is written and exact, so that only a move of the group or topic can change it."""
        return self.judgement.verdict is Verdict.SYNCED and self.error_bound == 0

    def after(self, done: Collection[Key], onto: str) -> GroupOffset:
        """Returns the row as it is once the changes with the keys `done` were written to the cluster `onto`."""
        change = self.change
        if change is None or change.key not in done:
            return self
        synced = Judgement(Verdict.SYNCED, SYNCED.format(onto=onto))
        judgement = replace(self.judgement, writes=False) if self.skipped else synced
        return replace(self, judgement=judgement, before=self.goes_on_at)

    def as_json(self) -> dict[str, Any]:
        """Returns one row of `lockstep offsets`."""
        found = self.answer if isinstance(self.answer, Answer) else None
        at = None if self.answer is Unanswered.UNREAD else self.at
        upstream, downstream = (self.goes_on_at, at) if self.back else (at, self.goes_on_at)
        return {
            "group": self.group,
            "topic": None if at is None else self.where.topic,
            "partition": None if at is None else self.where.partition,
            "upstream_offset": upstream,
            "downstream_offset": downstream,
            "method": found.method.value if found else None,
            "error_bound": self.error_bound,
            "verdict": self.judgement.verdict.value,
            "reason": self.judgement.reason,
        }


def unread(group: str, alias: str, fault: ItemFault, back: bool) -> GroupOffset:
    """Returns a row for a group whose offsets on the cluster `alias` could not be read."""
    why = fault.needing("DESCRIBE", "GROUP", group)
    judgement = Judgement(Verdict.ERROR, f"the group's offsets on {alias} could not be read: {why}")
    return GroupOffset(group, NO_PARTITION, 0, Unanswered.UNREAD, judgement, back=back, unseen=True)


def count_verdicts(rows: Iterable[GroupOffset]) -> dict[Verdict, int]:
    """Returns the number of rows by verdict."""
    counts = Counter(row.judgement.verdict for row in rows)
    return {verdict: counts[verdict] for verdict in Verdict}


def summary_of(rows: Sequence[GroupOffset]) -> GroupSummary:
    """Returns the summary of rows for the status."""
    verdicts = {verdict.value: count for verdict, count in count_verdicts(rows).items()}
    unread = next((row.judgement.reason for row in rows if row.unseen), None)
    return GroupSummary(verdicts, worst_bounds(rows), rows, unread=unread)


def worst_bounds(rows: Iterable[GroupOffset]) -> Mapping[str, int]:
    """Returns the largest error bound of each group's partitions."""
    worst: dict[str, int] = {}
    for row in rows:
        if row.judgement.verdict in (Verdict.SYNCED, Verdict.PENDING) and row.error_bound is not None:
            worst[row.group] = max(worst.get(row.group, 0), row.error_bound)
    return worst
