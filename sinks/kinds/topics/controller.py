"""Controls topics and their configs: chooses which to poll, and reads from both clusters those that differ."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from sinks.every_kind.comparison import Comparison, Polled
from sinks.every_kind.controller import PassContext, Sighting
from sinks.every_kind.kinds_agenda import KindsAgenda
from sinks.every_kind.listing import Listed
from sinks.flow_settings import FlowSettings
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.desired_topics import is_replicated
from sinks.kinds.topics.poll_schedule import PollSchedule
from sinks.kinds.topics.rules import is_still_wanted, to_create, upstream_of
from sinks.kinds.topics.survey import SeenTopics, adoptable_topics, compare_topics, survey
from sinks.kinds.topics.writer import ConfigWriter, TopicWriter
from sinks.ledger.adoption import Alike
from sinks.ledger.kept_end_offsets import kept_end_offsets
from sinks.model.changes import Key, Kind
from sinks.model.plan import Unobserved
from streaming.errors import LockstepError
from streaming.message_words import first_names
from streaming.mm2.replication_policy import is_written_by_mm2_alone


class TopicController:
    """Keeps the kinds `topic` and `topic-config` of one flow in step."""

    kinds = frozenset({Kind.TOPIC, Kind.TOPIC_CONFIG})

    def __init__(self, assembly: Assembly, configs: ConfigWriter) -> None:
        self._settings, self._once, self._progress = assembly.settings, assembly.once, assembly.progress
        self._source, self._target, self._configs = assembly.source.cluster, assembly.target.cluster, configs
        self._source_watch, self._target_watch = assembly.source.config_watch(), assembly.target.config_watch()
        self._schedule = PollSchedule(self._settings.pace)
        self._owes_ids = True
        self._gone, self._unobserved = set[str](), list[Unobserved]()
        # Topics that may be deleted, as the last poll found them.
        self._surplus: Mapping[str, str] = {}

    def poll(self, context: PassContext, agenda: KindsAgenda) -> Polled:
        """Make dirty what differs from the last poll."""
        listed, now, remote = context.listed, context.now, context.listed.desired.kept
        if context.everything:
            self._begin_anew(context)
        self._schedule.begin(remote, context.signal_works)
        agenda.backed_off.keep(partial(is_still_wanted, listed.desired.copies, listed.target))
        # Whether or not configs are polled now, so that a time that has come does not stay.
        retried = agenda.keys.retried(remote, now)
        awaited = agenda.created.awaited(lambda key: key[0] in listed.target, now)
        active, lacks = (self.kinds & self._settings.synced) - context.idle, to_create_or_enlarge(listed, awaited)
        polls_configs, polled, explained = Kind.TOPIC_CONFIG in active, 0, 0
        if polls_configs:
            polled, explained = self._poll_configs(context, agenda, retried)
        else:
            self._leave_configs(agenda, remote, lacks)

        differs = self._once or Kind.TOPIC in context.confirming
        self._surplus = surplus_topics(self._settings, context) if Kind.TOPIC in active else {}
        if Kind.TOPIC in active:
            # A full comparison settles the intents of a process that died, while they are fresh.
            owes_settling = context.everything and bool(context.ledger.unsettled(Kind.TOPIC))
            differs = differs or self._surplus != (agenda.inputs or {}) or bool(lacks) or owes_settling
        names = {(name,) for name in listed.desired.copies} if awaited else ()
        late = agenda.created.unobserved(Kind.TOPIC, names, self._target.alias) if names else []
        return Polled(
            differs=differs or (polls_configs and bool(agenda.keys.dirty)),
            due=self._schedule.due(now, polls=polls_configs, relists=agenda.signalled > 0 and active == {Kind.TOPIC}),
            inputs=self._surplus,
            keys=remote,
            comparable=comparable(listed, lacks, active),
            compares_twice=polls_configs,
            polled=polled,
            explained=explained,
            refused=listed.desired.refused,
            errors=(*late, *self._unobserved),
        )

    def _begin_anew(self, context: PassContext) -> None:
        """Note topics that the principal may not see. Such a topic looks deleted, because no listing has it, but the
        target or the ledger knows it."""
        self._owes_ids = True
        try:
            seen = set(kept_end_offsets(context.ledger))
        except LockstepError:
            # The job replaces unreadable entries after the pass, and a failover refuses them.
            seen = set()
        orphans = orphaned(self._settings, context.listed, context.ledger.owned(Kind.TOPIC), seen)
        self._gone &= orphans
        if asked := orphans - self._gone:
            self._gone |= self._source.confirmed_absent(asked)
        hidden = sorted(orphans - self._gone)
        reason = TOPICS_HIDDEN_BY_SOURCE.format(self._source.alias, first_names(hidden, 3), self._target.alias)
        kinds = [kind for kind in sorted(self.kinds) if hidden and self._settings.enabled[kind]]
        self._unobserved = [Unobserved(kind, reason) for kind in kinds]

    def _leave_configs(self, agenda: KindsAgenda, remote: Mapping[str, str], lacks: Collection[str]) -> None:
        """Note that this pass polls no configs. Drops config work if the kind is disabled. Keeps a signal for later if
        the kind rests."""
        if not self._settings.enabled[Kind.TOPIC_CONFIG]:
            # A topic that is there has nothing else that could be compared.
            agenda.keys.dirty = {topic for topic in agenda.keys.dirty if remote.get(topic) in lacks}
            agenda.written, agenda.own_writes = set(), set()
        elif agenda.signalled:
            # A signal comes once; the kind looks for it when its interval is over.
            self._schedule.owe(agenda.signalled)

    def _poll_configs(self, context: PassContext, agenda: KindsAgenda, retried: Collection[str]) -> tuple[int, int]:
        """Returns the number of polled topics, and the number of signalled changes that their differences explain."""
        remote, there = context.listed.desired.kept, context.listed.target
        due = upstream_of(remote, agenda.backed_off.due(context.now))
        gone = agenda.keys.begin(remote, {*retried, *due, *context.requested}, everything=context.everything)
        self._source_watch.forget(gone | agenda.own_writes)
        if agenda.written:
            self._target_watch.forget(agenda.written)
            agenda.written = set()
        polled = explained = 0
        turn = self._schedule.turn(context.now, signalled=agenda.signalled)
        for group in [self._schedule.all_shards()] if context.everything else turn:
            start = time.perf_counter()
            found = self._source_watch.changed(group)
            # Noted before anything else can fail: a watch reports a difference once.
            agenda.keys.differs(found)
            # Those that were forgotten after a write explain no signal, nor do those that cannot be seen at all.
            moved = found.difference(agenda.own_writes, agenda.keys.unobserved)
            explained += len(moved)
            if context.everything:
                self._schedule.polled_all(max(0, agenda.signalled - len(moved)))
            else:
                self._schedule.note_polled(group, time.perf_counter() - start, moved, context.now)
            agenda.own_writes.difference_update(*group)
            polled += sum(map(len, group))
        if context.everything:
            shards = [
                [remote[topic] for topic in shard if remote[topic] in there] for shard in self._schedule.all_shards()
            ]
            agenda.keys.differs(upstream_of(remote, self._target_watch.changed(shards)))
            agenda.keys.all_polled(remote)
        return polled, explained

    def survey(self, context: PassContext, agenda: KindsAgenda) -> SeenTopics:
        """Read the configs of dirty topics on both sides, and of topics that the target lacks. Reads also the ids of
        Lockstep's own topics that were compared or whose id is unknown. Deletions read ids by themselves."""
        seen = survey(
            self._settings,
            self._source,
            self._target,
            context.listed,
            only=agenda.keys.dirty,
            created=agenda.created.missed,
            paused=context.idle,
            progress=self._progress,
        )
        owned, unsettled = context.ledger.owned(Kind.TOPIC), context.ledger.unsettled(Kind.TOPIC)
        ours = {name for (name,) in owned | unsettled} & context.listed.target.keys()
        if not self._owes_ids:
            ours &= {name for (name,) in unsettled}.union(seen.covered.values())
        seen.ids = self._target.topic_ids(ours) if ours else {}
        seen.surplus, self._owes_ids = self._surplus, False
        return seen

    def difference(self, context: PassContext, seen: SeenTopics) -> Comparison:
        compared = compare_topics(self._settings, context.listed, seen, owned=context.ledger.owned(Kind.TOPIC))
        if self._once:
            # A command shows the plan alone. A job's report has what the poll found, after what comparisons found.
            errors = (*compared.plan.errors, *self._unobserved)
            compared = replace(compared, plan=replace(compared.plan, errors=errors))
        changes_configs = any(change.kind is Kind.TOPIC_CONFIG for change in compared.plan.changes)
        if changes_configs and (warning := self._configs.warning):
            return replace(compared, plan=compared.plan.noting([warning]))
        return compared

    def alike(self, context: PassContext, compared: Comparison) -> Alike:
        """Returns the copies that MM2 made."""
        return adoptable_topics(self._settings, context.listed, self._target.topic_ids)

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Returns GONE for each topic that the source lost and whose copy on the target still has the same id."""
        policy, alias = self._settings.policy, self._settings.flow.source
        asked = {
            name: {topic, *_upstream_by_any_separator(alias, name)}
            for (name,) in keys
            if (topic := policy.upstream_topic(name)) is not None
        }
        absent = self._source.confirmed_absent({topic for topics in asked.values() for topic in topics})
        gone = {name for name, topics in asked.items() if topics <= absent}
        known, ids = context.ledger.owned_ids(Kind.TOPIC), self._target.topic_ids(gone) if gone else {}
        return {(name,): Sighting.GONE for name in gone if known.get(name) and ids.get(name) == known[name]}


def assemble(assembly: Assembly) -> Assembled:
    """Build the controller and the writers of the kinds `topic` and `topic-config`."""
    target = assembly.target.cluster
    configs = ConfigWriter(target, assembly.settings.incremental)
    controller, topics = TopicController(assembly, configs), TopicWriter(target, configs)
    return Assembled([controller], {Kind.TOPIC: topics.write, Kind.TOPIC_CONFIG: configs.write})


# What of the topics that are to be compared can be compared now. Pure.


def to_create_or_enlarge(listed: Listed, awaited: Collection[Key]) -> set[str]:
    """Returns the remote topics that Lockstep has to create or enlarge now, without those the target will show soon."""
    partitions, there = listed.desired.partitions, listed.target
    small = {name for name, count in partitions.items() if there.get(name, count) < count and (name,) not in awaited}
    return small | (to_create(listed, awaited) & partitions.keys())


def comparable(listed: Listed, lacks: Collection[str], active: Collection[Kind]) -> Collection[str] | None:
    """Returns the upstream topics that this pass could compare; None: all.

    `lacks`: remote topics that are missing or too small. `active`: kinds that are synced and neither paused nor
    resting.
    """
    if {Kind.TOPIC, Kind.TOPIC_CONFIG} <= {*active}:
        return None
    if Kind.TOPIC_CONFIG in active:
        return upstream_of(listed.desired.kept, listed.target.keys())
    return upstream_of(listed.desired.kept, lacks if Kind.TOPIC in active else ())


TOPICS_HIDDEN_BY_SOURCE = (
    "{0} does not list {1}, and does not say either that they are gone, while {2} has copies of them or Lockstep saw "
    "their records. Grant the principal DESCRIBE and DESCRIBE_CONFIGS on these topics. If it has these rights, see "
    "that no broker of {0} is cut off from the controller"
)


def orphaned(settings: FlowSettings, listed: Listed, owned: Collection[Key], seen: Collection[str]) -> set[str]:
    """Returns topics that the file names and the source does not list, although the target has their copies or a job
    saw them.

    A copy belongs to a topic by its name, or because Lockstep created it. `owned`: keys of copies that Lockstep
    created. `seen`: topics of the source whose ends the ledger keeps.
    """
    policy, alias = settings.policy, settings.flow.source
    found = {topic for topic in seen if topic not in listed.source and is_replicated(settings, topic)}
    for name in listed.target.keys() - listed.desired.upstream:
        topic = policy.upstream_topic(name)
        if topic is None or topic in listed.source or policy.format_remote_topic(alias, topic) != name:
            continue
        if ((name,) in owned or is_written_by_mm2_alone(policy, alias, topic)) and is_replicated(settings, topic):
            found.add(topic)
    return found


# Which topics of ours the source lacks, and what both clusters say of them by name. Data is gone with a topic.
#
# - `lockstep.sync.topic.deletes.enabled` asks for it;
# - Lockstep created the topic, and it is still the same one, by its id;
# - its name says that it is a copy of the source's topic, so that no other source feeds it;
# - a broker of the source, asked for it by name, says UNKNOWN_TOPIC_OR_PARTITION. It is asked for every name that
#   another separator would read from the copy's: the separator may be another one than when the copy was made.
#
# What else must be true: `sinks.engine.deletion_checks`.


def surplus_topics(settings: FlowSettings, context: PassContext) -> dict[str, str]:
    """Returns ids by name of Lockstep's own topics on the target that the source does not list, replicated or not."""
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
"""Characters, one or several, that may separate an alias from a topic's name."""


def _upstream_by_any_separator(alias: str, name: str) -> set[str]:
    """Returns the names that the source's topic may have, for any separator in the copy's name."""
    if not name.startswith(alias):
        return set()
    rest = name.removeprefix(alias)
    separators = len(rest) - len(rest.lstrip(SEPARATING))
    # Without a separator at all only where the name has none: a right on `x` covers no question for `.x`.
    return {rest[at:] for at in range(min(1, separators), separators + 1)} - {"", ".", ".."}
