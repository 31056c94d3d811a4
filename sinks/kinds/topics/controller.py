"""Topics and their configs: whose turn it is, what differs, what is backed off."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader
from sinks.kafka.ports.watches import Watch
from sinks.kinds.assembly import Assembled, Assembly, CompareProgress, no_progress
from sinks.kinds.topics.config_writer import ConfigWriter
from sinks.kinds.topics.effective import TopicDrifts
from sinks.kinds.topics.poll_schedule import TURN, PollSchedule
from sinks.kinds.topics.rules import OWN, is_still_wanted
from sinks.kinds.topics.second_comparison import SecondComparison, is_to_compare_again
from sinks.kinds.topics.survey import TOPICS_IN_A_REQUEST, Survey, survey
from sinks.kinds.topics.writer import TopicWriter
from sinks.ledger.adoption import Alike
from sinks.model.changes import Key, Kind, Outcome
from sinks.model.plan import Plan, Refusal, Unobserved
from sinks.protocol.agenda import RetrySchedule
from sinks.protocol.controller import Comparison, ControllerStatus, PassContext, Sighting, Wanted
from sinks.protocol.listing import Listed
from streaming.mm2.replication_policy import is_written_by_mm2_alone


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
        configs: ConfigWriter | None = None,
        once: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`watches`: on the source and on the target. `configs`: what writes configs; None: they are not written.
        `once`: for a single pass, of a command. `clock`: measures polls."""
        self._settings, self._source, self._target, self._progress = settings, source, target, progress
        self._source_watch, self._target_watch = watches
        self._once, self._clock, self._configs = once, clock, configs
        self._schedule = PollSchedule(settings.pace)
        self._dirty: set[str] = set()
        self._fresh: set[str] = set()
        self._lacks, self._lists_again = set[str](), False
        self._written: set[str] = set()
        self._unobserved, self._surplus = UnobservedTopics(), dict[str, str]()
        self._refused: dict[str, Sequence[Refusal]] = {}
        self._drifts = TopicDrifts()
        self._first, self._second = True, SecondComparison()
        self._polled, self.explained, self._ids = 0, 0, OwnedIds(target)
        self._seen: Survey | None = None

    def poll(self, context: PassContext) -> bool:
        """Adds what differs from the last poll to what must be compared."""
        self._schedule.members(context.listed.desired.remote)
        self._polled = self.explained = 0
        self._ids.note(context)
        # Whether or not configs are polled now, so that a time that has come does not stay.
        again = self._unobserved.turn(context.listed.desired.remote, context.now)
        context.agenda.of[self.kinds].backed_off.keep(
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
        gone = surplus_topics(self._settings, context) if Kind.TOPIC in active else self._surplus
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
        retried = upstream_of(remote, context.agenda.of[self.kinds].backed_off.due(context.now))
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
        created = context.agenda.of[self.kinds].created
        return created.awaited(lambda key: key[0] in context.listed.target, context.now)

    def compare(self, context: PassContext) -> Comparison:
        """The plan for what differs."""
        active = Kind.TOPIC in self._active(context)
        surplus = self._surplus = surplus_topics(self._settings, context) if active else {}
        seen = self._seen = survey(
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
        plan, compared = seen.plan, self._remote_names(seen.covered)
        changes_configs = any(change.kind is Kind.TOPIC_CONFIG for change in plan.changes)
        if changes_configs and self._configs is not None and (note := self._configs.note):
            plan = plan.noting((), [note])
        wanted = [(name,) for name in context.listed.desired.partitions]
        return Comparison(
            plan,
            {Kind.TOPIC: self._ids.present(context, compared)},
            Wanted(Kind.TOPIC, wanted, len(context.listed.source), "topic"),
            compared,
        )

    def alike(self, context: PassContext) -> Mapping[Kind, Alike]:
        """The copies that MM2 made."""
        return {Kind.TOPIC: adoptable_topics(self._settings, context.listed, self._target.topic_ids)}

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """What both clusters say of these topics now."""
        return look_up_topics(self._settings, self._source, self._target, context, keys)

    def before_writing(self, plan: Plan) -> None:
        """Forgets what is written, on both sides: going back to what a watch saw last would not look like a change.

        On the target that was before our write. On the source it may be older than what was compared: a change that
        came in between is written now, and taken back it would look as if nothing had happened.
        """
        covered = self._seen.covered if self._seen is not None else ()
        remote = {change.key[0] for change in plan.changes}
        self._target_watch.forget(remote)
        names = zip(covered, self._remote_names(covered), strict=True)
        self._written |= {topic for topic, name in names if name in remote}
        self._source_watch.forget(self._written)

    def settle(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was compared differs no more, but for what could not be seen, and what passes by itself."""
        seen, self._seen = self._seen, None
        if seen is None:
            return
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

    def status(self, context: PassContext) -> ControllerStatus:
        """What is refused or backed off, what could not be read, what differs in effect, and when a pass is due."""
        wanted, names = context.listed.desired.remote.keys(), frozenset(context.listed.desired.remote.values())
        untaken = [one for topic, rows in self._refused.items() if topic in wanted for one in rows]
        mine = context.agenda.of[self.kinds]
        refused = (*context.listed.desired.refused, *untaken, *mine.backed_off.waiting(context.now))
        self._drifts.keep(wanted)
        late = mine.created.unobserved(Kind.TOPIC, lambda key: key[0] in names, self._target.alias)
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
            due=min(due, mine.backed_off.next_at(), self._unobserved.next_at()),
        )

    def close(self) -> None:
        """Nothing is open."""


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
        configs=configs,
        once=assembly.once,
    )
    return Assembled([controller], {Kind.TOPIC: TopicWriter(target.cluster, configs), Kind.TOPIC_CONFIG: configs})


# What of the topics that are to be compared can be compared now. Pure.


def lacking(listed: Listed, awaited: Collection[Key]) -> set[str]:
    """Remote topics that are not there, or with too few partitions, and that nobody waits for to be shown."""
    wanted, there = listed.desired.partitions.items(), listed.target
    return {name for name, count in wanted if there.get(name, 0) < count and (name,) not in awaited}


def upstream_of(remote: Mapping[str, str], names: Collection[str]) -> set[str]:
    """The upstream topics of these remote ones, of which most passes have none. `remote`: by upstream topic."""
    return {topic for topic, name in remote.items() if name in names} if names else set()


def can_be_compared(dirty: Collection[str], listed: Listed, lacks: Collection[str], active: Collection[Kind]) -> bool:
    """Whether a pass could do something about one of these upstream topics. `lacks`: remote topics that lack something;
    `active`: kinds that are synced, and neither paused nor at rest."""
    if {Kind.TOPIC, Kind.TOPIC_CONFIG} <= {*active}:
        return bool(dirty)
    if Kind.TOPIC_CONFIG in active:
        ready: Collection[str] = listed.target
    else:
        ready = lacks if Kind.TOPIC in active else ()
    return any(listed.desired.remote.get(topic) in ready for topic in dirty)


class OwnedIds:
    """Of one flow. Asks for all of them once for each full comparison, else for few."""

    def __init__(self, target: Reader) -> None:
        self._target, self._owes_all = target, True

    def note(self, context: PassContext) -> None:
        """A pass begins."""
        self._owes_all |= context.everything

    def present(self, context: PassContext, compared: Collection[str]) -> dict[Key, str]:
        """The ids of what the target has of the topics that are ours, or may be: of all once for each full comparison,
        else of those that were compared or whose id is not known yet. Who deletes asks for itself.

        `compared`: names on the target.
        """
        owned, unsettled = context.ledger.owned(Kind.TOPIC), context.ledger.unsettled(Kind.TOPIC)
        ours = {key[0] for key in owned | unsettled}
        if not self._owes_all:
            ours &= {key[0] for key in unsettled}.union(compared)
        there = ours & context.listed.target.keys()
        ids = self._target.topic_ids(there) if there else {}
        self._owes_all = False
        return {(name,): found for name, found in ids.items()}


# Which topics of ours the source lacks, and what both clusters say of them by name. Data is gone with a topic.
#
# - `lockstep.sync.topic.deletes.enabled` asks for it;
# - Lockstep created the topic, and it is still the same one, by its id;
# - its name says that it is a copy of the source's topic, so that no other source feeds it;
# - a broker of the source, asked for it by name, says UNKNOWN_TOPIC_OR_PARTITION. It is asked for every name that
#   another separator would read from the copy's: the separator may be another one than when the copy was made.
#
# What else must be true: `sinks.engine.deletions`.


def surplus_topics(settings: FlowSettings, context: PassContext) -> dict[str, str]:
    """Those of ours that the source's listing lacks, whether they are replicated or not: names on the target, ids."""
    if not settings.topic_deletes:
        return {}
    listed, policy, alias = context.listed, settings.policy, settings.flow.source
    found: dict[str, str] = {}
    for name, known in context.ledger.owned_ids(Kind.TOPIC).items():
        upstream = policy.upstream_topic(name)
        if upstream is None or not known or name not in listed.target or name in listed.desired.upstream:
            continue
        if policy.format_remote_topic(alias, upstream) != name or not is_written_by_mm2_alone(policy, alias, upstream):
            continue
        # A policy before this one may have kept names as they are.
        if listed.source.keys().isdisjoint({name, *_upstream_by_any_separator(alias, name)}):
            found[name] = known
    return found


SEPARATING = "._-"
"""What may separate an alias from a topic's name, one of them or several."""


def _upstream_by_any_separator(alias: str, name: str) -> set[str]:
    """What a copy of this name may be called on the source, whichever separator it was named with."""
    if not name.startswith(alias):
        return set()
    rest = name.removeprefix(alias)
    separators = len(rest) - len(rest.lstrip(SEPARATING))
    # Without a separator at all only where the name has none: a right on `x` covers no question for `.x`.
    return {rest[at:] for at in range(min(1, separators), separators + 1)} - {"", ".", ".."}


def look_up_topics(
    settings: FlowSettings, source: Reader, target: Reader, context: PassContext, keys: Collection[Key]
) -> dict[Key, Sighting]:
    """Those that are gone on the source, and still the same on the target. Raises ClusterUnreachable, RightsMissing."""
    policy, alias = settings.policy, settings.flow.source
    asked = {
        name: {topic, *_upstream_by_any_separator(alias, name)}
        for (name,) in keys
        if (topic := policy.upstream_topic(name)) is not None
    }
    absent = source.confirmed_absent({topic for topics in asked.values() for topic in topics})
    gone = {name for name, topics in asked.items() if topics <= absent}
    known, ids = context.ledger.owned_ids(Kind.TOPIC), target.topic_ids(gone) if gone else {}
    return {(name,): Sighting.GONE for name in gone if known.get(name) and ids.get(name) == known[name]}


# Which remote topics that MM2 made may become Lockstep's own. Pure, but for asking the topics' ids.
#
# One that is adopted may be deleted with its records, so nothing less than all of this must hold:
#
# - the source's topic is replicated, and the copy has as many partitions;
# - the copy's name says that nobody but MM2 writes it: never under the identity policy;
# - it is none of MM2's own topics, nor one of Lockstep's;
# - the target tells its id, by which it is known from then on.


OTHERS_WRITE = "its name does not say that only MM2 writes it: another source, or a program, may feed the same topic"
INTERNAL = "is a topic of MM2's own"
NO_ID = "the target tells no id of it, by which it would be known again"


def adoptable_topics(
    settings: FlowSettings, listed: Listed, ids_of: Callable[[Collection[str]], Mapping[str, str]]
) -> Alike:
    """`ids_of`: of topics on the target, by name. Raises what that raises."""
    same = {
        topic: name
        for topic, name in listed.desired.remote.items()
        if listed.source.get(topic) and listed.target.get(name) == listed.source[topic] and not name.startswith(OWN)
    }
    refused: dict[Key, str] = {}
    for topic, name in same.items():
        if reason := _why_not(settings, topic):
            refused[name,] = reason
    names = [name for name in same.values() if (name,) not in refused]
    ids = ids_of(names) if names else {}
    refused |= {(name,): NO_ID for name in names if not ids.get(name)}
    return Alike({(name,): ids[name] for name in names if ids.get(name)}, refused)


def _why_not(settings: FlowSettings, topic: str) -> str | None:
    policy = settings.policy
    if policy.is_heartbeats_topic(topic) or policy.is_internal_topic(topic):
        return INTERNAL
    return None if is_written_by_mm2_alone(policy, settings.flow.source, topic) else OTHERS_WRITE


# Topics that could not be compared, and when that is tried again. Pure: times are monotonic seconds.
#
# A right that is granted on the target changes nothing on the source, so no signal follows from it.


class UnobservedTopics:
    """Of one flow, by their names on the source. They are tried again after 1, 2, 4 ... 30 s, a request's worth at a
    time."""

    def __init__(self) -> None:
        self._why: dict[str, Unobserved] = {}
        self._retries = RetrySchedule()

    def names(self) -> Collection[str]:
        """All of them."""
        return self._why.keys()

    def reasons(self, topics: Collection[str]) -> tuple[Unobserved, ...]:
        """Why those of `topics` could not be compared."""
        return tuple(why for topic, why in self._why.items() if topic in topics)

    def turn(self, topics: Collection[str], now: float) -> set[str]:
        """Those of `topics` that are to be compared again now, if it is time; others are forgotten."""
        if not self._why or not self._retries.is_due(now):
            return set()
        self._why = {topic: why for topic, why in self._why.items() if topic in topics}
        self._retries.failed(now)
        return set(islice(self._why, TOPICS_IN_A_REQUEST))

    def settle(self, covered: Collection[str], found: Mapping[str, Unobserved], now: float) -> None:
        """`covered` were compared, but for those that were `found` to be unobserved: new ones are tried again soon."""
        is_new = not found.keys() <= self._why.keys()
        # Those of this turn go to the end, so that all have theirs.
        self._why = {topic: why for topic, why in self._why.items() if topic not in covered} | dict(found)
        if is_new:
            self._retries.succeeded()
            self._retries.failed(now)

    def next_at(self) -> float:
        """When the next are to be compared again; infinite without any."""
        return self._retries.not_before if self._why else float("inf")
