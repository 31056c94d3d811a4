"""Consumer groups' offsets as a part of the walk: which groups are looked at when, what is known of each, and the
histories that the answers come from, which are kept whether groups are synced or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sinks.engine.backoff import Backoff
from sinks.engine.ledger import Ledger
from sinks.engine.model import Kind, Outcome
from sinks.engine.plan import Plan, make_plan
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.group_watch import GroupWatch
from sinks.kinds.controller import ControllerStatus, GroupSummary, PassContext
from sinks.kinds.offsets.direction import ClusterGroups, GroupOffset, count_verdicts, forward
from sinks.kinds.offsets.match_cache import MatchCache
from sinks.kinds.offsets.memory import MirrorTopics, OffsetMemory
from sinks.kinds.offsets.survey import chosen_groups, replicated_offsets, survey_offsets
from sinks.kinds.offsets.verdicts import Verdict
from sinks.kinds.topics.survey import Listed
from streaming.mm2.records import TopicPartition

GROUPS_IN_A_PASS, AGAIN = 1000, 100
"""Groups that have just committed, and others, that one walk compares; the rest wait for the next one, those that
waited longest first. Few of the others, so that a commit never waits for a long walk to end."""

FIRST = 0.0
"""When a group is due that has just committed: before all others."""

REST, LONGEST_REST = 2.0, 60.0
"""Seconds after which a group is compared again whose offsets could be nearer, or are not written: the first time, and
in the end; twice as long each time until then."""

Emit = Callable[[Collection[GroupOffset]], None]
"""Called with the rows of the groups that were just compared."""


@dataclass(frozen=True)
class OffsetClusters:
    """What a flow's groups are looked at with. `watch` is on the source."""

    source: ClusterGroups
    target: ClusterGroups
    topics: MirrorTopics
    watch: GroupWatch


class OffsetController:
    """The kind `group-offset` of one flow."""

    def __init__(
        self,
        settings: FlowSettings,
        ends: OffsetClusters,
        memory: OffsetMemory,
        matches: MatchCache | None = None,
        emit: Emit | None = None,
    ) -> None:
        """`matches`: None looks for no records; `emit`: None emits no checkpoints."""
        self._settings, self._ends, self._memory, self._matches, self._emit = settings, ends, memory, matches, emit
        self._rows: dict[str, list[GroupOffset]] = {}
        self._compared: list[str] = []
        self._due: dict[str, float] = {}
        self._tries: dict[str, int] = {}
        self._chosen: frozenset[str] = frozenset()
        self._backoff = Backoff()
        self._ledger: Ledger | None = None
        self._missing: frozenset[str] = frozenset()
        self._summary: GroupSummary | None = None

    def look(self, context: PassContext) -> bool:
        """Takes in what the stream brought; whether a group committed, or is to be compared again."""
        if self._ledger is None:
            self._memory.load(context.ledger, self._ends.topics)
        self._ledger = context.ledger
        heard = self._memory.drain()
        if context.everything:
            self._keep(context)
        if not self._active or Kind.GROUP_OFFSET in context.idle:
            return False
        groups = chosen_groups(self._settings, self._ends.source.groups.names())
        self._forget(self._chosen - frozenset(groups))
        self._chosen = frozenset(groups)
        if context.everything:
            self._due = dict.fromkeys(groups, context.now) | self._due
        told = (heard.groups | self._on(heard.restarted, context.listed)) & self._chosen
        self._due |= dict.fromkeys(told, context.now)
        changed = self._ends.watch.changed(groups)
        self._due |= dict.fromkeys(changed, FIRST)
        for group in told | changed:
            self._tries.pop(group, None)
        return any(due <= context.now for due in self._due.values())

    def _on(self, restarted: Collection[TopicPartition], listed: Listed) -> set[str]:
        """Groups with offsets on these partitions of the source: what MM2 sent again can bring them nearer."""
        remote = listed.desired.remote
        there = {TopicPartition(remote[where.topic], where.partition) for where in restarted if where.topic in remote}
        if not there:
            return set()
        return {group for group, rows in self._rows.items() if any(row.where in there for row in rows)}

    @property
    def _active(self) -> bool:
        return self._settings.enabled[Kind.GROUP_OFFSET] or self._emit is not None

    def _keep(self, context: PassContext) -> None:
        """At each full comparison: what was missed is read, what changed is written down, topics are recognized."""
        self._memory.catch_up(self._ends.topics)
        self._recognize(context.listed, context.listed.desired.remote)
        missing = self._memory.topics() - context.listed.source.keys() if context.listed.source else frozenset()
        # Metadata may lag behind, so that a topic counts as gone when it is missing twice.
        self._memory.gone(missing & self._missing)
        self._missing = frozenset(missing)
        self._memory.save(context.ledger)

    def _recognize(self, listed: Listed, topics: Iterable[str]) -> set[str]:
        remote = {
            topic: name
            for topic in topics
            if (name := listed.desired.remote[topic]) in listed.target and topic in self._memory.topics()
        }
        if not remote:
            return set()
        source, target = self._ends.source.groups.topic_ids(remote), self._ends.target.groups.topic_ids(remote.values())
        again = self._memory.recognize(remote, source, target)
        if self._matches is not None:
            self._matches.forget((), again)
        return again

    def _forget(self, groups: Collection[str]) -> None:
        if not groups:
            return
        self._memory.forget_groups(groups)
        if self._matches is not None:
            self._matches.forget(groups)
        for group in groups:
            self._due.pop(group, None)
            self._tries.pop(group, None)
            self._rows.pop(group, None)
            self._summary = None

    def compare(self, context: PassContext) -> Plan:
        """The offsets to write, of the groups whose turn it is."""
        self._compared = groups = self._whose_turn(context.now)
        rows = self._survey(context.listed, groups)
        if self._recognize(context.listed, self._upstream(context.listed, rows)):
            rows = self._survey(context.listed, groups)
        for group in groups:
            self._rows.pop(group, None)
        for row in rows:
            self._rows.setdefault(row.group, []).append(row)
        self._summary = None
        changes = [change for row in rows if (change := row.change)]
        self._backoff.settled(groups, changes)
        todo, waiting = self._backoff.split(changes, context.now)
        return make_plan(self._settings.flow, todo, refused=waiting)

    def _whose_turn(self, now: float) -> list[str]:
        due = sorted((due, group) for group, due in self._due.items() if due <= now)
        just = [group for at, group in due if at == FIRST]
        return just[:GROUPS_IN_A_PASS] + [group for at, group in due if at != FIRST][:AGAIN]

    def _survey(self, listed: Listed, groups: Collection[str]) -> list[GroupOffset]:
        direction = forward(self._settings, self._ends.source, self._ends.target, listed)
        return survey_offsets(
            self._settings, direction, replicated_offsets(direction, groups), self._memory, self._matches
        )

    @staticmethod
    def _upstream(listed: Listed, rows: Iterable[GroupOffset]) -> set[str]:
        """The topics, by their names on the source, that something is about to be written of."""
        written_to = {row.where.topic for row in rows if row.judgement.writes}
        return {topic for topic, remote in listed.desired.remote.items() if remote in written_to}

    def _plan_next(self, group: str, now: float) -> None:
        self._due.pop(group, None)
        rows = self._rows.get(group, ())
        if any(row.sought for row in rows):
            self._due[group] = now
        elif any(row.held for row in rows):
            self._due[group] = now + REST
        elif any(not row.settled for row in rows):
            tries = self._tries.get(group, 0)
            self._due[group] = now + min(REST * 2 ** min(tries, 10), LONGEST_REST)
            self._tries[group] = tries + 1
        else:
            self._tries.pop(group, None)

    def before_writing(self, plan: Plan) -> None:
        """Nothing is kept that a write could make untrue."""

    def learn(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was written is where it should be; what was refused is set aside; checkpoints are emitted."""
        mine = [outcome for outcome in outcomes if outcome.change.kind is Kind.GROUP_OFFSET]
        self._backoff.learn(mine, context.now)
        done = {outcome.change.key for outcome in mine if outcome.error is None}
        touched = {outcome.change.key[0] for outcome in mine}
        for group in touched:
            self._rows[group] = [row.after(done, self._settings.flow.target) for row in self._rows.get(group, ())]
        for group in self._compared:
            self._plan_next(group, context.now)
        if self._emit is not None:
            self._emit([row for group in self._compared for row in self._rows.get(group, ())])

    def status(self, context: PassContext) -> ControllerStatus:
        """How many partitions have each verdict, and offsets that the target refused."""
        if self._summary is None and self._active:
            rows = [row for rows in self._rows.values() for row in rows]
            self._summary = GroupSummary(count_verdicts(rows), _worst(rows))
        return ControllerStatus(refused=self._backoff.waiting(context.now), groups=self._summary)

    def close(self) -> None:
        """Writes down what came since the last full comparison."""
        self._ends.watch.close()
        if self._matches is not None:
            self._matches.close()
        if self._ledger is not None:
            self._memory.drain()
            self._memory.save(self._ledger)


def _worst(rows: Iterable[GroupOffset]) -> Mapping[str, int]:
    """By group, the most records that one of its partitions reads twice."""
    worst: dict[str, int] = {}
    for row in rows:
        if row.judgement.verdict in (Verdict.SYNCED, Verdict.PENDING) and row.error_bound is not None:
            worst[row.group] = max(worst.get(row.group, 0), row.error_bound)
    return worst
