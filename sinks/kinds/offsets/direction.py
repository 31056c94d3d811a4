"""The direction in which consumer groups' offsets are translated, and one row of the outcome."""

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
"""Stands in the row of a group whose partitions are unknown."""


@dataclass(frozen=True)
class Direction:
    """Groups go from the cluster `here` to the cluster `there`: from the flow's source to its target, or `back`, as
    at a failback. `source` and `target` have the groups of both, `listed` the topics."""

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
        """Of the clusters here and there."""
        source, target = self.settings.flow.source, self.settings.flow.target
        return (target, source) if self.back else (source, target)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """A replicated topic's name there, by its name here."""
        remote = self.listed.desired.remote
        return {copy: topic for topic, copy in remote.items()} if self.back else remote

    @property
    def enabled(self) -> bool:
        """Whether what is found is to be written."""
        return self.back or self.settings.enabled[Kind.GROUP_OFFSET]

    def across(self, where: TopicPartition) -> TopicPartition:
        """The same partition there."""
        found = self._across.get(where)
        if found is None:
            found = self._across[where] = TopicPartition(self.names[where.topic], where.partition)
        return found

    def on_both(self, where: TopicPartition) -> tuple[TopicPartition, TopicPartition]:
        """The same partition on the flow's source and on its target."""
        return (self.across(where), where) if self.back else (where, self.across(where))


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """One partition of a group, with its verdict. `where`: the partition it continues on. `at`: its offset now.

    `answer`: the translation of `at`, or why there is none. `before`: the group's own offset where it continues.
    `sought`: the search for its record is not over. `held`: the answer waits while MM2 sends records again.
    `unseen`: the group's offsets on one side could not be read.
    """

    group: str
    where: TopicPartition
    at: int
    answer: Answer | Unanswered
    judgement: Judgement
    before: int | None = None
    back: bool = False
    sought: bool = False
    held: bool = False
    unseen: bool = False

    @property
    def topic(self) -> str:
        return self.where.topic

    @property
    def verdict(self) -> str:
        return self.judgement.verdict.value

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
        """The most records that are read twice; None: unknown."""
        return None if isinstance(self.answer, Unanswered) else self.answer.error_bound

    @property
    def skipped(self) -> int:
        """About how many unread records it does not get where it continues; see `Answer`."""
        return 0 if isinstance(self.answer, Unanswered) else self.answer.skipped

    @property
    def settled(self) -> bool:
        """Whether the offset is written and exact, so that only a move of the group or topic can change it."""
        return self.judgement.verdict is Verdict.SYNCED and self.error_bound == 0

    def after(self, done: Collection[Key], onto: str) -> GroupOffset:
        """The same, once the changes with these keys were written to the cluster `onto`."""
        change = self.change
        if change is None or change.key not in done:
            return self
        synced = Judgement(Verdict.SYNCED, SYNCED.format(onto=onto))
        judgement = replace(self.judgement, writes=False) if self.skipped else synced
        return replace(self, judgement=judgement, before=self.goes_on_at)

    def as_json(self) -> dict[str, Any]:
        """One row of `lockstep offsets`."""
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
    """Stands for the rows of a group whose offsets on the cluster `alias` could not be read."""
    why = fault.needing("DESCRIBE", "GROUP", group)
    judgement = Judgement(Verdict.ERROR, f"the group's offsets on {alias} could not be read: {why}")
    return GroupOffset(group, NO_PARTITION, 0, Unanswered.UNREAD, judgement, back=back, unseen=True)


def count_verdicts(rows: Iterable[GroupOffset]) -> dict[Verdict, int]:
    """How many rows have each verdict."""
    counts = Counter(row.judgement.verdict for row in rows)
    return {verdict: counts[verdict] for verdict in Verdict}


def summary_of(rows: Sequence[GroupOffset]) -> GroupSummary:
    """Sums up rows for the status."""
    verdicts = {verdict.value: count for verdict, count in count_verdicts(rows).items()}
    unread = next((row.judgement.reason for row in rows if row.unseen), None)
    return GroupSummary(verdicts, worst_bounds(rows), rows, unread=unread)


def worst_bounds(rows: Iterable[GroupOffset]) -> Mapping[str, int]:
    """By group, the largest error bound of its partitions."""
    worst: dict[str, int] = {}
    for row in rows:
        if row.judgement.verdict in (Verdict.SYNCED, Verdict.PENDING) and row.error_bound is not None:
            worst[row.group] = max(worst.get(row.group, 0), row.error_bound)
    return worst
