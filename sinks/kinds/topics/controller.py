"""Topics and their configs: whose turn it is, what differs, what is backed off."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sinks.engine.backoff import Backoff
from sinks.engine.model import Key, Kind, Outcome
from sinks.engine.plan import Plan, Refusal
from sinks.engine.recent_creations import RecentCreations
from sinks.engine.recorder import TopicIds
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader
from sinks.kafka.ports.watches import Watch
from sinks.kinds.assembly import Assembled, Assembly, CompareProgress, no_progress
from sinks.kinds.controller import Comparison, ControllerStatus, PassContext, Sighting, Wanted
from sinks.kinds.topics.adoptable import adoptable_topics
from sinks.kinds.topics.config_writer import ConfigWriter
from sinks.kinds.topics.deletions import look_up_topics, surplus_topics
from sinks.kinds.topics.dirty_topics import can_be_compared, lacking, upstream_of
from sinks.kinds.topics.effective import TopicDrifts
from sinks.kinds.topics.owned_ids import OwnedIds
from sinks.kinds.topics.poll_schedule import TURN, PollSchedule
from sinks.kinds.topics.rules import is_still_wanted
from sinks.kinds.topics.second_comparison import SecondComparison, is_to_compare_again
from sinks.kinds.topics.survey import Survey, survey
from sinks.kinds.topics.unobserved_topics import UnobservedTopics
from sinks.kinds.topics.writer import TopicWriter


class TopicController:
    """The kinds `topic` and `topic-config` of one flow."""

    kinds = frozenset({Kind.TOPIC, Kind.TOPIC_CONFIG})

    def __init__(
        self,
        settings: FlowSettings,
        source: Reader,
        target: Reader,
        watches: tuple[Watch, Watch],
        progress: CompareProgress = no_progress,
        *,
        topic_ids: TopicIds,
        writing_note: Callable[[], str | None] = lambda: None,
        once: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`watches`: on the source and on the target. `topic_ids`: of many topics on the target. `writing_note`: what
        plans that change configs say of the way they are written. `once`: for a single pass, of a command. `clock`:
        measures polls."""
        self._settings, self._source, self._target, self._progress = settings, source, target, progress
        self._source_watch, self._target_watch = watches
        self._once, self._clock, self._writing_note = once, clock, writing_note
        self._schedule = PollSchedule(settings.pace)
        self._backoff = Backoff()
        self._dirty: set[str] = set()
        self._fresh: set[str] = set()
        self._lacks, self._lists_again = set[str](), False
        self._written: set[str] = set()
        self._unobserved, self._surplus = UnobservedTopics(), frozenset[str]()
        self._refused: dict[str, Sequence[Refusal]] = {}
        self._drifts = TopicDrifts()
        self._first, self._second, self._created = True, SecondComparison(), RecentCreations(Kind.TOPIC)
        self._polled, self.explained, self._ids = 0, 0, OwnedIds(topic_ids)

    def poll(self, context: PassContext) -> bool:
        """Adds what differs from the last poll to what must be compared."""
        self._schedule.members(context.listed.desired.remote)
        self._polled = self.explained = 0
        self._ids.note(context)
        # Whether or not configs are polled now, so that a time that has come does not stay.
        again = self._unobserved.turn(context.listed.desired.remote, context.now)
        self._backoff.keep(
            partial(is_still_wanted, frozenset(context.listed.desired.remote.values()), context.listed.target)
        )
        self._schedule.follow(context.signal_works)
        active, self._lacks = self._active(context), lacking(context.listed, self._awaited(context))
        # A listing may be of a broker that is behind the log: where no poll comes back to it, one more pass does.
        self._lists_again = bool(context.signalled) and active == {Kind.TOPIC}
        if Kind.TOPIC_CONFIG in active:
            self._poll_configs(context, again)
        elif not self._settings.enabled[Kind.TOPIC_CONFIG]:
            # A topic that is there has nothing else that could be compared.
            self._dirty = {topic for topic in self._dirty if context.listed.desired.remote.get(topic) in self._lacks}
        elif context.signalled:
            # A signal comes once; the kind looks for it when its interval is over.
            self._schedule.owe(context.signalled)
        gone = frozenset(surplus_topics(self._settings, context)) if Kind.TOPIC in active else self._surplus
        differ = gone != self._surplus or Kind.TOPIC in context.confirming or (Kind.TOPIC in active and self._lacks)
        return bool(differ or self._once or (Kind.TOPIC_CONFIG in active and self._dirty))

    def _poll_configs(self, context: PassContext, again: Collection[str]) -> None:
        remote = context.listed.desired.remote
        self._source_watch.forget(self._second.without(remote))
        self._dirty |= self._second.turn(self._dirty, everything=context.everything)
        differing = self._differing(context)
        self._dirty |= self._fresh
        # Compared now and in the next pass, too: the broker that was watched may be ahead of the one that is read.
        self._fresh = differing
        if context.everything:
            there = upstream_of(remote, self._changed_on_target(context))
            self._dirty |= there
            self._fresh |= there
            if self._first:
                self._second.owe(self._fresh)
                self._first, self._fresh = False, set()
            else:
                self._second.owe_some(remote)
        retried = upstream_of(remote, self._backoff.due(context.now))
        dirty = self._dirty.union(retried, again, context.requested)
        # Back in a later listing, it is compared like a new one: what differs now was not settled.
        self._source_watch.forget(dirty - remote.keys())
        self._dirty = dirty & remote.keys()

    def _differing(self, context: PassContext) -> set[str]:
        turn = self._schedule.turn(context.now, signalled=context.signalled)
        groups = [self._schedule.all_shards()] if context.everything else turn
        differing: set[str] = set()
        for group in groups:
            start = self._clock()
            found = self._source_watch.changed(group)
            # Noted before anything else can fail: a watch reports a difference once.
            self._dirty |= found
            # Those that were forgotten after a write explain no signal, nor do those that cannot be seen at all.
            moved = found.difference(self._written, self._unobserved.names())
            self.explained += len(moved)
            if context.everything:
                self._schedule.polled_all(max(0, context.signalled - len(moved)))
            else:
                self._schedule.polled(group, self._clock() - start, len(moved))
                self._schedule.changed(moved, context.now)
            self._written.difference_update(*group)
            differing |= found
            self._polled += sum(len(shard) for shard in group)
        return differing

    def _changed_on_target(self, context: PassContext) -> set[str]:
        remote, there = context.listed.desired.remote, context.listed.target
        shards = [[remote[topic] for topic in shard if remote[topic] in there] for shard in self._schedule.all_shards()]
        return self._target_watch.changed(shards)

    def _active(self, context: PassContext) -> frozenset[Kind]:
        return (self.kinds & self._settings.synced) - context.idle

    def _awaited(self, context: PassContext) -> Collection[Key]:
        return self._created.awaited(lambda key: key[0] in context.listed.target, context.now)

    def compare(self, context: PassContext) -> Comparison:
        """The plan for what differs, without the changes that are backed off."""
        active = Kind.TOPIC in self._active(context)
        surplus = self._surplus = frozenset(surplus_topics(self._settings, context)) if active else frozenset()
        seen = survey(
            self._settings,
            self._source,
            self._target,
            context.listed,
            only=self._dirty,
            owned=context.ledger.owned(Kind.TOPIC),
            deletions=surplus,
            created=self._awaited(context),
            paused=context.idle,
            progress=self._progress,
        )
        self._backoff.settled(self._remote_names(seen.covered), seen.plan.changes)
        todo, waiting = self._backoff.split(seen.plan.changes, context.now)
        plan = replace(seen.plan, changes=tuple(todo), refused=(*seen.plan.refused, *waiting))
        if any(change.kind is Kind.TOPIC_CONFIG for change in todo) and (note := self._writing_note()):
            plan = plan.noting((), [note])
        return Comparison(
            plan,
            lambda outcomes: self._settle(context, seen, outcomes),
            lambda: self._forget_written(seen, plan),
            {Kind.TOPIC: self._ids.present(context, self._remote_names(seen.covered))},
            lambda: {Kind.TOPIC: adoptable_topics(self._settings, context.listed, self._target.topic_ids)},
            Wanted(
                Kind.TOPIC, [(name,) for name in context.listed.desired.partitions], len(context.listed.source), "topic"
            ),
        )

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """What both clusters say of these topics now."""
        return look_up_topics(self._settings, self._source, self._target, context, keys)

    def _forget_written(self, seen: Survey, plan: Plan) -> None:
        """Forgets what is written, on both sides: going back to what a watch saw last would not look like a change.

        On the target that was before our write. On the source it may be older than what was compared: a change that
        came in between is written now, and taken back it would look as if nothing had happened.
        """
        remote, upstream = {change.key[0] for change in plan.changes}, self._upstream(seen.covered)
        self._target_watch.forget(remote)
        self._written |= {upstream[name] for name in remote if name in upstream}
        self._source_watch.forget(self._written)

    def _settle(self, context: PassContext, seen: Survey, outcomes: Sequence[Outcome]) -> None:
        """What was refused is backed off; what passes by itself is compared again."""
        # What of a kind that is not synced was refused on creation is in the audit, and never tried again.
        synced = [outcome for outcome in outcomes if self._settings.enabled[outcome.change.kind]]
        self._backoff.learn(synced, context.now)
        self._created.note(outcomes, context.now)
        unsettled = {outcome.change.key[0] for outcome in outcomes if is_to_compare_again(outcome)}
        # What was not compared, because its kind is paused, stays dirty: the watch will not report it again.
        self._dirty -= seen.covered
        self._dirty |= seen.again | upstream_of(context.listed.desired.remote, unsettled)
        self._unobserved.settle(seen.covered, seen.unobserved, context.now)
        self._refused = {topic: why for topic, why in self._refused.items() if topic not in seen.covered}
        if self._settings.enabled[Kind.TOPIC_CONFIG]:
            self._refused |= seen.refused
        self._drifts.replace(seen.covered, seen.drifts)

    def _remote_names(self, topics: Iterable[str]) -> list[str]:
        return [self._settings.policy.format_remote_topic(self._settings.flow.source, topic) for topic in topics]

    def _upstream(self, topics: Collection[str]) -> dict[str, str]:
        return dict(zip(self._remote_names(topics), topics, strict=True))

    def status(self, context: PassContext) -> ControllerStatus:
        """What is refused or backed off, what could not be read, what differs in effect, and when a pass is due."""
        wanted, names = context.listed.desired.remote.keys(), frozenset(context.listed.desired.remote.values())
        untaken = [one for topic, rows in self._refused.items() if topic in wanted for one in rows]
        refused = (*context.listed.desired.refused, *untaken, *self._backoff.waiting(context.now))
        self._drifts.keep(wanted)
        late = self._created.unobserved(lambda key: key[0] in names, self._target.alias)
        active = self._active(context)
        due = self._schedule.due(context.now, polls=Kind.TOPIC_CONFIG in active)
        due = min(due, context.now + TURN) if self._lists_again else due
        owed = Kind.TOPIC_CONFIG in active and (self._fresh or self._second.is_owed)
        if owed or can_be_compared(self._dirty, context.listed, self._lacks, active):
            due = context.now
        return ControllerStatus(
            refused,
            (*self._unobserved.reasons(wanted), *late),
            effective=self._drifts.groups(),
            polled=self._polled,
            due=min(due, self._backoff.next_at(), self._unobserved.next_at()),
        )

    def close(self) -> None:
        """The clusters themselves are the pass's."""
        self._source_watch.close()
        self._target_watch.close()


def assemble(assembly: Assembly) -> Assembled:
    """The kinds `topic` and `topic-config` of one flow."""
    source, target = assembly.source, assembly.target
    configs = ConfigWriter(target.cluster, assembly.settings.incremental)
    controller = TopicController(
        assembly.settings,
        source.cluster,
        target.cluster,
        (source.config_watch(), target.config_watch()),
        assembly.progress,
        topic_ids=target.cluster.topic_ids,
        writing_note=lambda: configs.note,
        once=assembly.once,
    )
    return Assembled([controller], {Kind.TOPIC: TopicWriter(target.cluster, configs), Kind.TOPIC_CONFIG: configs})
