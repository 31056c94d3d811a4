"""How many items one flow may create within an hour: a source that was made to flood the target is stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sinks.every_kind.controller import PassContext
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import TopicSpec
from sinks.model.changes import Change, Kind, Op, Outcome
from sinks.model.plan import Plan

COUNTED_FOR_S = 3600.0
"""Seconds for which what was created counts towards the limit."""

FLOOD = (
    "{}: the plan creates {} more of the kind {} (topics by their partitions), after {} within an hour, and "
    "lockstep.limits.max.create={} allows no more: they are held. If this is meant, run `lockstep apply --force`"
)


class CreationLimit:
    """Of one flow. Times are monotonic seconds."""

    def __init__(self, settings: FlowSettings) -> None:
        self._flow, self._most = settings.flow, settings.limits.max_create
        self._created: list[tuple[float, Kind, int]] | None = None

    def count_earlier(self, context: PassContext) -> None:
        """Counts what the ledger says was created within an hour, once: a restart forgets none.

        An item that was adopted counts, too. Partitions that a topic grew by count as old as the topic.
        """
        if self._created is not None:
            return
        self._created, partitions = [], context.listed.target
        for kind in (kind for kind in Kind if kind.row.owned):
            for key, age in context.ledger.owned_within(kind, COUNTED_FOR_S).items():
                count = partitions.get(key[0], 1) if kind.row.data else 1
                self._created.append((context.now - age, kind, count))

    def note_created(self, outcomes: Iterable[Outcome], now: float) -> None:
        done = [one.change for one in outcomes if not (one.error or one.already) and one.change.kind.row.owned]
        added = [(now, one.kind, count) for one in done if (count := _adds(one))]
        self._created = [*(self._created or ()), *added]

    def exceeded(self, plan: Plan, now: float) -> Iterator[tuple[Kind, list[Change], str]]:
        """Yields each kind that would exceed the limit, its creations, and the reason to hold them."""
        self._created = [one for one in self._created or () if now - one[0] < COUNTED_FOR_S]
        for kind in {change.kind for change in plan.changes if change.kind.row.owned}:
            creations = [change for change in plan.changes if change.kind is kind and _adds(change)]
            adds = sum(map(_adds, creations))
            created = sum(count for _, one, count in self._created if one is kind)
            if created + adds > self._most:
                yield kind, creations, FLOOD.format(self._flow.name, adds, kind, created, self._most)


def _adds(change: Change) -> int:
    """How many items a change creates; for a topic, its partitions."""
    if isinstance(change.after, TopicSpec):
        before = change.before.partitions if isinstance(change.before, TopicSpec) else 0
        return change.after.partitions - before
    return int(change.op is Op.CREATE)
