"""Polls and compares consumer groups, and keeps the histories of offset-syncs that translate their offsets.

It keeps the histories even if no group is synced, because a failover and `lockstep verify` need them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from sinks.every_kind.comparison import Comparison, ControllerStatus, GroupSummary, Polled
from sinks.every_kind.controller import Controller, PassContext, Sighting
from sinks.every_kind.kinds_agenda import KindsAgenda
from sinks.every_kind.listing import Listed
from sinks.faults import ItemFault, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Cluster
from sinks.kafka.ports.groups import GroupReader, Groups
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.offsets.direction import Direction, GroupOffset, summary_of
from sinks.kinds.offsets.memory import OffsetMemory, TakenIn
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import mirror_topics
from sinks.kinds.offsets.polled_groups import COMMITS_TOPIC, GroupSchedule, PolledGroups
from sinks.kinds.offsets.record_finder import MatchCache, open_matches
from sinks.kinds.offsets.same_offsets import SameRecords, check_leads_back, same_records
from sinks.kinds.offsets.survey import read_states, survey_offsets
from sinks.kinds.offsets.sync_history import Pair
from sinks.kinds.offsets.translation import Unanswered
from sinks.kinds.offsets.verdicts import Facts, Verdict, verdict_on
from sinks.ledger.adoption import Alike
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import Unobserved, make_plan
from sinks.model.times import NEVER_AT
from streaming.errors import LockstepError
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint, TopicPartition

log = logging.getLogger(__name__)

READS_FOR = 1.0
"""Seconds for which a pass of the job reads MM2's topics. A change of another kind waits no longer than that."""


class OffsetController:
    """The kind `group-offset` of one flow."""

    kinds = frozenset({Kind.GROUP_OFFSET})

    def __init__(self, assembly: Assembly) -> None:
        settings, source, target = assembly.settings, assembly.source, assembly.target
        self._settings, self.memory = settings, OffsetMemory()
        self._source, self._target = source, target
        # Groups are polled where they come from. For the way back that is the target.
        here, groups = target if assembly.scope.back else source, assembly.scope.groups
        self._polled = PolledGroups(settings, here.groups, here.group_watch(), time.monotonic, groups)
        self._scope = assembly.scope if assembly.once else None
        self._shown = self._scope is not None and self._scope.shown
        self._emitter: CheckpointEmitter | None = None
        if settings.emit_checkpoints and not assembly.once:
            self._emitter = CheckpointEmitter(settings, target.cluster, self.memory)
        self._matches: MatchCache | None = None
        self._same: SameRecords | None = None
        if settings.keeps_offsets:
            self._same = same_records(source, target)
        elif settings.matching:
            self._matches = open_matches(settings, source, target, at_leisure=assembly.once, beside=assembly.beside)
        self._active = settings.enabled[Kind.GROUP_OFFSET] or self._emitter is not None or self._shown
        self._rows: dict[str, list[GroupOffset]] = {}
        self._schedule, self._turn, self._began = GroupSchedule(), list[str](), 0.0
        self._ledger: Ledger | None = None
        topics = mirror_topics(settings, source.cluster, target.cluster)
        reads_for = READS_FOR if assembly.comes_again else float("inf")
        self._reading = MirrorReading(self.memory, topics, reads_for)
        self._owes_all = False
        self._listed: Mapping[str, int] = {}
        self._summary: GroupSummary | None = None
        self._waiting: set[str] = set()
        self._stream: StreamWatch | None = None
        if topics is not None:
            on = target if topics.syncs_on.alias == target.alias else source
            self._stream = StreamWatch(on.groups, topics.syncs)

    def poll(self, context: PassContext, agenda: KindsAgenda) -> Polled:
        """Takes in the records that the stream delivered. Returns whether any group is due for a comparison."""
        self.memory.histories.are_whole, self._owes_all = False, self._owes_all | context.everything
        if not self._reading.read_on(context.ledger, to_the_end=self._owes_all and self._scope is None):
            return Polled(differs=False)
        self._ledger = context.ledger
        if (taken_in := self.memory.take_in_queued()) is None:
            return Polled(differs=False)
        everything, self._owes_all = self._owes_all, False
        if everything and self._scope is None:
            self._keep(context)
        self.memory.histories.are_whole = True
        if not self._active or (Kind.GROUP_OFFSET in context.idle and not self._shown):
            return Polled(differs=False)
        partitions = context.listed.source.get(COMMITS_TOPIC, 0) if self._scope is None else 0
        moved = self._polled.poll(context.now, everything, partitions)
        if moved.gone:
            self._forget(moved.gone, agenda)
        if moved.committed:
            self._schedule.committed(moved.committed)
        chosen = self._polled.chosen
        if everything:
            self._schedule.compare_all(sorted(chosen), context.now)
        if self._scope is None and (everything or moved.gone):
            self._forget_untrue(chosen)
        if taken_in.groups or taken_in.restarted:
            self._schedule.checkpointed(self._brought_nearer(taken_in, context.listed) & chosen, context.now)
        return Polled(differs=self._schedule.next_at() <= context.now)

    def _brought_nearer(self, taken_in: TakenIn, listed: Listed) -> set[str]:
        """Returns groups whose offset on the target may now come closer, because MM2 wrote something. A settled group
        changes only when it commits, or when MM2 sends its partition again."""
        remote = listed.desired.remote
        copies = {
            TopicPartition(remote[where.topic], where.partition)
            for where in taken_in.restarted
            if where.topic in remote
        }
        resent = {group for group, rows in self._rows.items() if copies and any(row.where in copies for row in rows)}
        known = {group: self._rows.get(group) for group in taken_in.groups}
        return resent | {group for group, rows in known.items() if not rows or not all(row.settled for row in rows)}

    @property
    def rows(self) -> list[GroupOffset]:
        """The last result for each group and partition, sorted by group."""
        return [row for _, rows in sorted(self._rows.items()) for row in rows]

    def take_in(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        self.memory.queue.put(syncs, checkpoints)

    def _keep(self, context: PassContext) -> None:
        """Recognizes recreated topics and writes changes to the ledger, at each full comparison."""
        self._recognize(context.listed, context.listed.desired.remote)
        self._listed = context.listed.source
        self.memory.forget_unlisted(self._listed, context.now, self._source.cluster.confirmed_absent)
        self.memory.checkpoints.forget_unlisted(context.listed, self._polled.chosen, context.now)
        self.memory.save(context.ledger, self._listed)

    def _recognize(self, listed: Listed, topics: Iterable[str]) -> set[str]:
        known = self.memory.topics()
        remote = {
            topic: name
            for topic in topics
            if topic in known and (name := listed.desired.remote[topic]) in listed.target
        }
        if not remote:
            return set()
        ids = self._source.groups.topic_ids(remote), self._target.groups.topic_ids(remote.values())
        again = self.memory.recognize(remote, *ids)
        if self._matches is not None:
            self._matches.forget((), again)
        return again

    def _forget(self, groups: Collection[str], agenda: KindsAgenda) -> None:
        self.memory.forget_groups(groups)
        if self._matches is not None:
            self._matches.forget(groups)
        self._schedule.forget(groups)
        agenda.backed_off.keep(lambda change: change.key[0] not in groups)
        for group in groups:
            self._rows.pop(group, None)
        self._summary = None

    def _forget_untrue(self, chosen: Collection[str]) -> None:
        """Forgets untrue offsets of groups that no longer have offsets. Asks the cluster for each by name, because a
        listing may lack a group."""
        for side, logs in ((self._source, self.memory.source_logs), (self._target, self.memory.target_logs)):
            if unlisted := logs.groups().difference(chosen):
                said = side.groups.committed(sorted(unlisted)).items
                logs.forget_groups({group for group, offsets in said.items() if not offsets})

    def survey(self, context: PassContext, agenda: KindsAgenda) -> list[GroupOffset]:
        """Reads the offsets of the groups whose turn it is, and finds where each could continue."""
        self._began, groups = time.monotonic(), self._schedule.turn(context.now, everyone=self._scope is not None)
        self._turn = groups
        self.memory.note_drained(context.ledger)
        rows = self._survey(context.listed, groups)
        to_write = {row.where.topic for row in rows if row.judgement.writes}
        remote = context.listed.desired.remote
        if self._recognize(context.listed, {topic for topic, copy in remote.items() if copy in to_write}):
            rows = self._survey(context.listed, groups)
        if self._scope is None:
            self.memory.save_truncations(context.ledger, context.listed.source)
        return rows

    def difference(self, context: PassContext, seen: list[GroupOffset]) -> Comparison:
        for group in self._turn:
            self._rows.pop(group, None)
        for row in seen:
            self._rows.setdefault(row.group, []).append(row)
        self._summary = None
        changes = [change for row in seen if (change := row.change)]
        return Comparison(make_plan(self._settings.flow, changes), covered={group: group for group in self._turn})

    def _survey(self, listed: Listed, groups: Collection[str]) -> list[GroupOffset]:
        back = self._scope is not None and self._scope.back
        direction = Direction(self._settings, self._source.groups, self._target.groups, listed, back)
        # While groups wait for their turn, a safe offset for all of them comes before a nearer one for some.
        matches = None if self._schedule.behind else self._matches
        return survey_offsets(direction, groups, self.memory, matches, self._same)

    def written(self, context: PassContext, outcomes: Sequence[Outcome]) -> None:
        """Notes the outcomes, schedules each group again, and emits checkpoints."""
        groups, self._turn = self._turn, []
        done = {outcome.change.key for outcome in outcomes if outcome.error is None}
        onto = self._settings.flow.source if self._scope and self._scope.back else self._settings.flow.target
        for group in {outcome.change.key[0] for outcome in outcomes}:
            self._rows[group] = [row.after(done, onto) for row in self._rows.get(group, ())]
        self._waiting = {group for group in self._waiting | set(groups) if waits_for_syncs(self._rows.get(group, ()))}
        for group in groups:
            self._schedule.compared(group, self._rows.get(group, ()), context.now)
        self._schedule.took(len(groups), time.monotonic() - self._began)
        if self._emitter is not None:
            self._emitter.emit([row for group in groups for row in self._rows.get(group, ())])

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Returns nothing: Lockstep never deletes a group's offsets."""
        return {}

    def alike(self, context: PassContext, compared: Comparison) -> Alike:
        """Returns nothing: Lockstep never adopts groups."""
        return Alike()

    def status(self, context: PassContext, agenda: KindsAgenda) -> ControllerStatus:
        """Returns the number of partitions by verdict, and the offsets that the target refused."""
        refused, warnings = agenda.backed_off.waiting(context.now), self._polled.unmatched
        if (reason := self._reading.reason) is not None:
            errors = (Unobserved(Kind.GROUP_OFFSET, reason),) if self._active else ()
            return ControllerStatus(refused, errors, groups=self._summary, due=context.now, warnings=warnings)
        if self._summary is None and self._active:
            self._summary = summary_of([row for rows in self._rows.values() for row in rows])
        if self._summary is not None and self._summary.refused != self.memory.refused:
            self._summary = replace(self._summary, refused=dict(self.memory.refused))
        due = min(self._polled.due, self._schedule.next_at()) if self._active else NEVER_AT
        stream = self._stream if self._waiting else None
        moved = stream is not None and stream.moved(context.now, self.memory.histories.position)
        return ControllerStatus(refused, groups=self._summary, due=due, stream_moved=moved, warnings=warnings)

    def close(self) -> None:
        """Writes to the ledger what was learned since the last full comparison. A command leaves that to the job."""
        self._reading.close()
        for reader in (self._matches, self._same):
            if reader is not None:
                reader.close()
        if self._ledger is not None and self._scope is None:
            if not self._reading.breaks_off:
                self.memory.take_in_queued()
            try:
                self.memory.save(self._ledger, self._listed)
            except LockstepError as error:
                log.warning(
                    "Lockstep could not save MM2's latest offset-syncs, and reads them again at its next start: %s",
                    error,
                )


def assemble(assembly: Assembly) -> Assembled:
    """Builds the controller of the kind `group-offset`. A job keeps the histories even if it writes no offset."""
    if assembly.once and not (Kind.GROUP_OFFSET in assembly.settings.synced or assembly.scope.shown):
        return Assembled()
    if assembly.scope.back:
        check_leads_back(assembly.settings)
    onto = assembly.source if assembly.scope.back else assembly.target
    return Assembled([OffsetController(assembly)], {Kind.GROUP_OFFSET: GroupWriter(onto.alias, onto.groups).write})


def offset_memory(controllers: Iterable[Controller]) -> OffsetMemory:
    """Returns the memory of the controller of groups; an empty one if a flow has none."""
    return next((one.memory for one in controllers if isinstance(one, OffsetController)), OffsetMemory())


END_POLL_INTERVAL = 1.0
"""Least seconds between two polls of the topic's end."""


class StreamWatch:
    """Watches the end of one flow's offset-syncs topic, on the cluster of `groups`."""

    def __init__(self, groups: GroupReader, topic: str) -> None:
        self._groups, self._where = groups, TopicPartition(topic, 0)
        self._polled_at = float("-inf")
        self._signalled_end = 0

    def moved(self, now: float, position: int) -> bool:
        """Whether the topic has records after `position`, the last known one. Returns True once per end.

        Raises ClusterUnreachable. Returns False if the topic may not be read.
        """
        if now - self._polled_at < END_POLL_INTERVAL:
            return False
        self._polled_at = now
        try:
            log = self._groups.ends([self._where]).items.get(self._where)
        except RightsMissing:
            return False
        if log is None or log.end <= max(position + 1, self._signalled_end):
            return False
        self._signalled_end = log.end
        return True


def waits_for_syncs(rows: Collection[GroupOffset]) -> bool:
    """Whether more records of MM2 could improve one of these rows: it has no offset, or MM2 sends records again."""
    return any(isinstance(row.answer, Unanswered) or row.held for row in rows)


CHECKPOINTS_TOPIC_CONFIGS: Mapping[str, str] = {"cleanup.policy": "compact"}
"""Configs of the checkpoints topic, as in `MirrorUtils.createCompactedTopic`."""


class CheckpointEmitter:
    """Writes the checkpoints topic of one flow, which is created at the first checkpoint."""

    def __init__(self, settings: FlowSettings, target: Cluster, memory: OffsetMemory) -> None:
        self._topic, self._factor = settings.internal.checkpoints, settings.replication_factor
        self._target, self._memory = target, memory
        self._created = False

    def emit(self, rows: Iterable[GroupOffset]) -> None:
        """Writes a checkpoint for each row whose newest checkpoint differs. Leaves out rows with the verdict ERROR.
        Raises ClusterUnreachable."""
        known = self._memory.checkpoints.newest
        changed = {
            (row.group, row.where): Pair(row.at, offset)
            for row in rows
            if row.judgement.verdict is not Verdict.ERROR
            and (offset := row.goes_on_at) is not None
            and known.get((row.group, row.where)) != (row.at, offset)
        }
        if not changed:
            return
        if not self._created:
            self._target.create_log(self._topic, self._factor, CHECKPOINTS_TOPIC_CONFIGS)
            self._created = True
        records = [encode_record(Checkpoint(group, where, *pair, "")) for (group, where), pair in changed.items()]
        self._target.append_log(self._topic, records)
        known |= changed


class GroupWriter:
    """Writes changes of the kind `group-offset` to a cluster: only forward, within the log, for groups without members.
    Checks that again right before the write, because a group may have woken up since the plan."""

    def __init__(self, alias: str, groups: Groups) -> None:
        self._alias, self._groups = alias, groups

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """Returns an outcome for each change. Raises ClusterUnreachable, RightsMissing."""
        settled = self._settled(changes)
        todo: dict[str, dict[TopicPartition, int]] = {}
        for change in changes:
            if change not in settled and isinstance(change.after, int):
                todo.setdefault(change.key[0], {})[where_of(change)] = change.after
        faults = self._groups.commit(todo)
        return [settled.get(change) or Outcome(change, faults[change.key[0]][where_of(change)]) for change in changes]

    def _settled(self, changes: Sequence[Change]) -> dict[Change, Outcome]:
        """Returns the outcomes of changes that must not, or need not, be written any more."""
        groups = {change.key[0] for change in changes}
        committed, members = read_states(self._groups, groups)
        ends = self._groups.ends(set(map(where_of, changes)))
        settled: dict[Change, Outcome] = {}
        for change in changes:
            group, where = change.key[0], where_of(change)
            error = committed.errors.get(group) or members.errors.get(group)
            facts = Facts(
                onto=self._alias,
                answer=change.after if isinstance(change.after, int) else 0,
                log=ends.items.get(where),
                committed=committed.items.get(group, {}).get(where),
                members=members.items.get(group, 0),
                error=str(error) if error else None,
            )
            judgement = verdict_on(facts)
            if judgement.verdict is Verdict.SYNCED:
                settled[change] = Outcome(change, already=True)
            elif not judgement.writes:
                fault = ItemFault(judgement.verdict.value, judgement.reason, retriable=True)
                settled[change] = Outcome(change, fault)
        return settled


def where_of(change: Change) -> TopicPartition:
    """Returns the partition of a change of this kind."""
    _, topic, partition = change.key
    return _partition(topic, partition)


@lru_cache(maxsize=100_000)
def _partition(topic: str, partition: str) -> TopicPartition:
    # Thousands of groups share them, and each name is checked where one is made.
    return TopicPartition(topic, int(partition))
