"""Topics and their configs as a part of the walk: whose turn it is, what differs, what is set aside."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sinks.cluster.base import Cluster, Reader, Watch
from sinks.model import Kind, Op, Outcome
from sinks.parts.base import Moment, Standing
from sinks.parts.drifts import TopicDrifts
from sinks.plan import Blind, Plan
from sinks.resources.topics import plan_topic_deletions
from sinks.rounds import Rounds
from sinks.setaside import SetAside
from sinks.settings import FlowSettings
from sinks.survey import Survey, survey


class TopicPart:
    """The kinds `topic` and `topic-config` of one flow."""

    def __init__(
        self, settings: FlowSettings, source: Reader, target: Cluster, source_watch: Watch, target_watch: Watch
    ) -> None:
        self._settings, self._source, self._target = settings, source, target
        self._source_watch, self._target_watch = source_watch, target_watch
        self._rounds = Rounds(settings.pace)
        self._set_aside = SetAside()
        self._dirty: set[str] = set()
        self._fresh: set[str] = set()
        self._written: set[str] = set()
        self._blind: dict[str, Blind] = {}
        self._drifts = TopicDrifts()
        self._first = True
        self._seen = Survey(Plan(settings.flow))
        self.looked_at = 0

    def look(self, moment: Moment) -> bool:
        """Adds what differs from the last look to what must be compared."""
        self._rounds.members(moment.listed.desired.remote)
        self.looked_at = 0
        if Kind.TOPIC_CONFIG not in moment.idle:
            self._look_at_configs(moment)
        return bool(self._dirty) or (Kind.TOPIC not in moment.idle and self._topics_differ(moment))

    def _look_at_configs(self, moment: Moment) -> None:
        remote = moment.listed.desired.remote
        differing = self._differing(moment)
        self._dirty |= self._fresh
        # Compared now and in the next walk, too: the broker that was watched may be ahead of the one that is read.
        self._fresh = set() if self._first else differing
        if not moment.everything:
            self._rounds.changed(differing, moment.now)
        upstream = {name: topic for topic, name in remote.items()}
        if moment.everything:
            self._dirty |= {upstream[name] for name in self._changed_on_target(moment)}
            self._first = False
        self._set_aside.keep(upstream.keys(), moment.listed.target)
        retried = {upstream[name] for name in self._set_aside.due(moment.now) if name in upstream}
        self._dirty = (self._dirty | retried | set(moment.requested)) & remote.keys()

    def _differing(self, moment: Moment) -> set[str]:
        turn = self._rounds.turn(moment.now, quiet=moment.quiet, news=moment.news)
        groups = [self._rounds.all_shards()] if moment.everything else turn
        differing: set[str] = set()
        for group in groups:
            found = self._source_watch.changed(group)
            # Noted before anything else can fail: a watch reports a difference once.
            self._dirty |= found
            # Those that were forgotten after a write explain no news.
            self._rounds.found(len(found - self._written))
            self._written.difference_update(*group)
            differing |= found
            self.looked_at += sum(len(shard) for shard in group)
        return differing

    def _changed_on_target(self, moment: Moment) -> set[str]:
        remote, there = moment.listed.desired.remote, moment.listed.target
        shards = [[remote[topic] for topic in shard if remote[topic] in there] for shard in self._rounds.all_shards()]
        return self._target_watch.changed(shards)

    def _topics_differ(self, moment: Moment) -> bool:
        desired, target = moment.listed.desired, moment.listed.target
        if any(target.get(name, 0) < partitions for name, partitions in desired.partitions.items()):
            return True
        mine = {key[0] for key in moment.ledger.owned(Kind.TOPIC)} if self._settings.topic_deletes else set()
        return bool(plan_topic_deletions(desired, moment.listed.source, target, mine))

    def compare(self, moment: Moment) -> Plan:
        """The plan for what differs, without the changes that are set aside for now."""
        self._seen = seen = survey(
            self._settings,
            self._source,
            self._target,
            moment.listed,
            look_at=self._dirty,
            owned=moment.ledger.owned(Kind.TOPIC),
            paused=moment.idle,
        )
        self._set_aside.settled(self._remote_names(seen.looked_at), seen.plan.changes)
        todo, waiting = self._set_aside.split(seen.plan.changes, moment.now)
        return replace(seen.plan, changes=tuple(todo), refused=(*seen.plan.refused, *waiting))

    def before_writing(self, plan: Plan) -> None:
        """Forgets what is written, on both sides: going back to what a watch saw last would not look like a change.

        On the target that was before our write. On the source it may be older than what was compared: a change that
        came in between is written now, and taken back it would look as if nothing had happened.
        """
        remote = {change.key[0] for change in plan.changes if change.kind in KINDS}
        upstream = dict(zip(self._remote_names(self._seen.looked_at), self._seen.looked_at, strict=True))
        self._target_watch.forget(remote)
        self._written |= {upstream[name] for name in remote if name in upstream}
        self._source_watch.forget(self._written)

    def learn(self, moment: Moment, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was refused is set aside; what passes by itself is compared again."""
        seen, mine = self._seen, [outcome for outcome in outcomes if outcome.change.kind in KINDS]
        self._set_aside.learn(mine, moment.now)
        unsettled = {outcome.change.key[0] for outcome in mine if _to_compare_again(outcome)}
        upstream = dict(zip(self._remote_names(seen.looked_at), seen.looked_at, strict=True))
        # What was not looked at, because its kind is paused, stays dirty: the watch will not report it again.
        self._dirty -= seen.looked_at
        self._dirty |= seen.again | {upstream[name] for name in unsettled if name in upstream}
        self._blind = {topic: blind for topic, blind in self._blind.items() if topic not in seen.looked_at}
        self._blind |= seen.blind
        self._drifts.replace(seen.looked_at, seen.drifts)

    def _remote_names(self, topics: Iterable[str]) -> list[str]:
        return [self._settings.policy.format_remote_topic(self._settings.flow.source, topic) for topic in topics]

    def standing(self, moment: Moment) -> Standing:
        """Topics whose names are too long, changes that are set aside, topics that could not be read, and what is in
        force with two values."""
        wanted: Collection[str] = moment.listed.desired.remote.keys()
        errors = tuple(blind for topic, blind in self._blind.items() if topic in wanted)
        refused = (*moment.listed.desired.refused, *self._set_aside.waiting(moment.now))
        self._drifts.keep(wanted)
        return Standing(refused, errors, effective=self._drifts.groups())

    def close(self) -> None:
        """The clusters themselves are the walk's."""
        self._source_watch.close()
        self._target_watch.close()


KINDS = frozenset({Kind.TOPIC, Kind.TOPIC_CONFIG})


def _to_compare_again(outcome: Outcome) -> bool:
    """What passes by itself, and topics just created: without a refused config, or by another hand with others."""
    if outcome.error is not None:
        return outcome.error.retriable
    return (outcome.change.kind, outcome.change.op) == (Kind.TOPIC, Op.CREATE)
