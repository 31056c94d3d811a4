"""Decides which deletions Lockstep may write, of every kind, and limits creations.

What must be true before Lockstep deletes an item of a kind that it owns:

| what must be true                                                       | otherwise                                |
|-------------------------------------------------------------------------|------------------------------------------|
| the source shows something of the kind                                  | nothing of the kind is deleted           |
| no other flow into the target wants the item                            | refused                                  |
| the source lacked it in two comparisons, 3 s apart; a topic in three,   | it waits                                 |
| over a minute                                                           |                                          |
| the source, asked for the item by name after that, does not have it     | stale list: it waits; unknown: refused   |
| the broker that was asked knows all that any broker of the source knew, | it waits                                 |
| and its metadata epoch grew since the source first lacked the item      |                                          |
| not only the settings leave it out, while the source still has it       | HELD until `lockstep apply --force`      |
| the plan deletes no more of the kind than the limit allows              | nothing of the kind is written           |
| the ledger, read right before the write, says that Lockstep owns it     | refused                                  |

The second look is the fourth row: Lockstep asks the source for the item by its name.

No kind can bypass these checks: `FlowReconcile` passes every plan through them. A kind only says what it wants
(`Wanted`), and takes the second look (`Controller.second_look`). If a person reviews the plan first, the command takes
the second look at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sinks.engine.report import KindTrouble
from sinks.every_kind.absence import Absence
from sinks.every_kind.comparison import Comparison, Wanted
from sinks.every_kind.controller import Controller, PassContext, Sighting
from sinks.every_kind.followed_log import FollowedLog
from sinks.every_kind.wishes import Wishes
from sinks.flow_settings import FlowSettings, Limits
from sinks.kafka.ports.cluster import TopicSpec
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Change, Key, Kind, Op, Outcome, key_as_text
from sinks.model.plan import CONFIRM, SEE_PLAN, Plan, Refusal, Unobserved
from sinks.model.times import NEVER_AT
from streaming.message_words import first_names, number_of

SECOND_LOOK_AFTER_S = 3.0
"""Seconds from the first comparison that lacks an item to the second look. Brokers follow the controller's log within a
fraction of that."""

HELD_FOR_S = 60.0
"""Seconds until Lockstep asks the source again for an item whose deletion is held."""

BLANK = "{} shows no {}: Lockstep deletes nothing of the kind {}"
WAITS = "{} does not show it. After {:.0f} s Lockstep asks for it by name, and deletes it only if it is gone there"
STALE = "{} did not list {} of the kind {} that it still has. One of its brokers is behind, so nothing was deleted"
BEHIND = (
    "a broker of {} lacks {} of the kind {} and was not seen to follow the controller, so nothing was deleted. If this "
    "stays so, a broker is cut off from the controller, or metadata.max.idle.interval.ms is 0 and nothing changes. If "
    "the cluster's metadata was restored from a backup, restart Lockstep"
)
KIND_UNREAD = "Lockstep could not read what {} has of this kind, so it deletes nothing"
UNKNOWN = "{} does not confirm that it is gone there, so Lockstep does not delete it"
LEFT_OUT = (
    "{} still has it; only the properties file no longer names it. To delete it, run `lockstep apply --force`; to keep "
    "it, name it in the file again"
)
RENAMED = (
    "the replication policy or lockstep.acl.principal.mapping changed after Lockstep created it, so its name does not "
    "tell whether {} still has it. To delete it, run `lockstep apply --force`"
)
STAYS = (
    "{} of the kind {} keep former names on the target: they are protected, or another flow wants them ({}). Until "
    "`lockstep apply --force` confirms that, every deletion of the kind is held"
)

HELD_BY_FILE: Mapping[Sighting | None, str] = {Sighting.LEFT_OUT: LEFT_OUT, Sighting.RENAMED: RENAMED}
"""Answers of the source that hold a deletion until a person confirms it, each with the reason for one item."""

HELD_BECAUSE: Mapping[Sighting, str] = {
    Sighting.LEFT_OUT: "the properties file no longer names them, while {} still has them",
    Sighting.RENAMED: "the replication policy or lockstep.acl.principal.mapping changed, and {} may still have them",
}
HELD = (
    "{}: Lockstep holds the deletion of {} of the kind {}, because {}. If this is meant, run `lockstep apply --force`; "
    "else mend the file"
)
MIXED = "mixed"
"""Stands in the ledger for the naming (replication policy and mapping) if owned items were made under more than one."""

GIVEN_UP = "since the comparison, the ledger released the item or paused the kind. Lockstep compares it again"

SecondLook = Callable[[Controller, Collection[Key]], Mapping[Key, Sighting]]
"""Has a controller ask the source for items by name. Returns nothing for items that it cannot answer for."""

AskSource = Callable[[Collection[Key]], Mapping[Key, Sighting]]
"""Asks the source for items of one controller by name."""


@dataclass
class _Standing:
    """A kind's held and refused deletions, as `status` shows them until the next comparison of the kind."""

    refused: list[Refusal] = field(default_factory=list)
    errors: list[Unobserved] = field(default_factory=list)
    held: str | None = None
    stopped: str | None = None


@dataclass
class _Seen:
    """The state of a kind's deletions from earlier comparisons."""

    absence: Absence[Key]
    """Items whose deletion is planned."""
    unlisted: Absence[Key]
    """Items that this flow wanted and that its source does not list now."""
    epochs: dict[Key, int] = field(default_factory=dict)
    """The highest metadata epoch known when the source first lacked each item. A broker that was cut off earlier has no
    higher one."""
    second_looks: dict[Key, tuple[float, Sighting | None]] = field(default_factory=dict)
    """Held items, with the time and the answer of the source."""
    others: object = None
    """Wishes of other flows at the time when one of them kept an item."""
    postponed: float = 0.0
    """No pass is due before this time."""

    def next_at(self) -> float:
        """Returns when the kind must be compared again for a waiting deletion."""
        held = min((at + HELD_FOR_S for at, _ in self.second_looks.values()), default=NEVER_AT)
        return max(self.postponed, min(self.absence.next_at(), self.unlisted.next_at(), held))


class DeletionChecks:
    """Decides which deletions one flow may write now. Times are monotonic seconds."""

    def __init__(self, settings: FlowSettings, wishes: Wishes, log: FollowedLog, *, reviewed: bool) -> None:
        """`wishes`: of all flows of this process into the same target. `log`: the source's metadata log. `reviewed`: a
        person reviews the plan before it is applied."""
        self.creations = CreationLimit(settings)
        self._flow, self._limits, self._naming = settings.flow, settings.limits, settings.naming
        self._wishes, self._log, self._reviewed = wishes, log, reviewed
        self._standing: dict[Kind, _Standing] = {}
        self._seen = {kind: _Seen(_absence(kind), _absence(kind)) for kind in Kind}
        self._confirmed = False

    def due(self, now: float) -> frozenset[Kind]:
        """Kinds that must be compared now because a deletion waits for it."""
        return frozenset(
            kind
            for kind, seen in self._seen.items()
            # Other flows may want something else than when they kept a deletion from leaving.
            if seen.next_at() <= now
            or (seen.others is not None and seen.others != self._wishes.of_others(self._flow, kind))
        )

    def next_at(self, idle: Collection[Kind]) -> float:
        """Returns when a waiting deletion needs a pass. `idle`: kinds that this pass would not compare."""
        return min((seen.next_at() for kind, seen in self._seen.items() if kind not in idle), default=NEVER_AT)

    @property
    def waits(self) -> bool:
        """Whether another comparison, `SECOND_LOOK_AFTER_S` from now, may delete something."""
        quick = [seen for kind, seen in self._seen.items() if not kind.row.data]
        return any(seen.absence.has_any or seen.unlisted.has_any for seen in quick)

    def publish(self, wanted: Wanted, context: PassContext) -> None:
        """Publish to the other flows what this flow wants of a kind `of_principals`. An empty list of the source
        withdraws no wish, and neither does a single list that lacks an item."""
        ledger, unlisted = context.ledger, self._seen[wanted.kind].unlisted
        if wanted.shown:
            keys = frozenset(wanted.keys)
            lacking = self._wishes.known(self._flow, wanted.kind) - keys
            unlisted.observe(lacking, wanted.shown, context.now)
            kept = lacking - unlisted.lasting()
            self._wishes.publish(self._flow, wanted.kind, keys | kept, wanted.owned)
        elif not ledger.owned(wanted.kind):
            before = ledger.get(Entry.CLAIMED, wanted.kind.value) is not None
            self._wishes.publish_unseen(self._flow, wanted.kind, before, wanted.owned)

    def remember(self, wanted: Wanted, ledger: Ledger) -> None:
        """Write to the ledger that this flow wants items, and under which naming. Flows in other processes read it.

        After a change of the naming, the ledger says `MIXED` until the flow owns no unwanted item, deletable or not,
        shown by the target or not. Items that stay even after a confirmation stop counting once a person confirmed the
        others.
        """
        if not self._wishes.known(self._flow, wanted.kind):
            return
        kind = wanted.kind
        settles = not self._is_renamed(kind, ledger)
        if not settles and wanted.shown:
            left = ledger.owned(kind).difference(wanted.keys)
            settles = not left or (self._confirmed and left <= self._staying(wanted, left))
        ledger.put({(Entry.CLAIMED, (kind.value,)): self._naming if settles else MIXED})

    def _staying(self, wanted: Wanted, left: Collection[Key]) -> frozenset[Key]:
        """Returns the items among `left` that stay even if a person confirms their deletion."""
        others = self._wishes.wanted_by_others(self._flow, wanted.kind)
        return frozenset(key for key in left if key in wanted.kept or key in others)

    def _stays(self, wanted: Wanted, ledger: Ledger) -> list[str]:
        """Returns a note that names the items that keep a former name, and says what ends the hold."""
        if not self._is_renamed(wanted.kind, ledger):
            return []
        staying = sorted(self._staying(wanted, ledger.owned(wanted.kind).difference(wanted.keys)))
        named = first_names([key_as_text(wanted.kind, key) for key in staying], 3)
        return [STAYS.format(number_of(len(staying), "item"), wanted.kind, named)] if staying else []

    def _is_renamed(self, kind: Kind, ledger: Ledger) -> bool:
        """Whether the items on the target were created under another naming than the settings give now."""
        return ledger.get(Entry.CLAIMED, kind.value) not in (None, self._naming)

    def checked(
        self,
        plan: Plan,
        found: Sequence[tuple[Controller, Comparison]],
        context: PassContext,
        trouble: KindTrouble,
        second_look: SecondLook,
        *,
        force: bool,
    ) -> Plan:
        """Returns the plan without the deletions that must wait, and without kinds that exceed a limit.

        `found`: the comparisons that the plan was joined from. `trouble`: learns which kinds wait for a person.
        `force`: a person confirms deletions of items that the file leaves out, and any number of them.
        """
        compared = frozenset[Kind]().union(*(controller.kinds for controller, _ in found))
        for kind in context.confirming:
            # Also where it could not be compared: a deletion that waits never asks for one pass after the other.
            self._seen[kind].postponed = context.now + SECOND_LOOK_AFTER_S
        self._confirmed = force
        self._standing = {kind: one for kind, one in self._standing.items() if kind not in compared}
        deletions = (one for _, comparison in found for one in comparison.plan.changes if _is_checked(one))
        # Once for all kinds: each kind of a command would wait anew until it grows.
        is_new = any(one.key not in self._seen[one.kind].epochs for one in deletions)
        latest = self._log.latest() if is_new else None
        for controller, comparison in found:
            if (wanted := comparison.wanted) is not None and wanted.kind.row.of_principals:
                self.publish(wanted, context)
                plan = plan.noting(self._stays(wanted, context.ledger))
            for kind in sorted(controller.kinds):
                kept = self._not_proven(kind, comparison, context, partial(second_look, controller), latest)
                if kept:
                    plan = replace(plan, changes=tuple(one for one in plan.changes if one not in kept))
        plan = replace(
            plan,
            refused=(*plan.refused, *(refusal for one in self._standing.values() for refusal in one.refused)),
            errors=(*plan.errors, *(error for one in self._standing.values() for error in one.errors)),
        )
        if not force:
            plan = self._limited(plan, context)
        for kind, one in self._standing.items():
            trouble.note_waiting(kind, one.stopped, one.held)
        return plan

    def _not_proven(
        self,
        kind: Kind,
        comparison: Comparison,
        context: PassContext,
        ask: AskSource,
        latest: int | None,
    ) -> set[Change]:
        """Returns the deletions of a kind that must not be written now, and notes the reasons. `latest`: the highest
        metadata epoch now, for items that the source lacks for the first time."""
        deletions = {one.key: one for one in comparison.plan.changes if one.kind is kind and _is_checked(one)}
        seen = self._seen[kind]
        wanted, source = comparison.wanted, self._flow.source
        standing = self._standing[kind] = _Standing()
        seen.absence.observe(deletions, wanted.shown if wanted else 0, context.now)
        before, seen.second_looks, seen.others = seen.second_looks, {}, None
        epochs = {key: seen.epochs.get(key, latest) for key in deletions}
        seen.epochs = {key: epoch for key, epoch in epochs.items() if epoch is not None}
        if wanted is None or not wanted.shown:
            seen.unlisted.observe((), 0, context.now)
        if not deletions:
            return set()
        if wanted is None or wanted.kind is not kind:
            standing.refused = [_refusal(one, KIND_UNREAD.format(source)) for one in deletions.values()]
            return set(deletions.values())
        if not wanted.shown:
            standing.errors = [Unobserved(kind, BLANK.format(source, wanted.items, kind))]
            return set(deletions.values())
        free, standing.refused = self._wishes.hold(self._flow, deletions.values())
        if standing.refused:
            seen.others = self._wishes.of_others(self._flow, kind)
        ready = {one.key for one in free}
        if not self._reviewed:
            ready &= seen.absence.lasting()
        seen.second_looks = {key: said for key, said in before.items() if key in ready}
        sightings = self._second_looks(seen, ready, context, ask)
        if self._is_renamed(kind, context.ledger):
            sightings = {key: Sighting.RENAMED if said is Sighting.GONE else said for key, said in sightings.items()}
        gone = {Sighting.GONE, *HELD_BY_FILE} if self._confirmed else {Sighting.GONE}
        left = {key for key in ready if sightings.get(key) in gone}
        self._explain(standing, kind, [one for one in free if one.key not in left], sightings, seen.absence)
        return {one for key, one in deletions.items() if key not in left}

    def _second_looks(
        self, seen: _Seen, keys: Collection[Key], context: PassContext, ask: AskSource
    ) -> dict[Key, Sighting | None]:
        """Returns the source's answer for each key. For a held item, an answer of the last minute is reused."""
        anew = self._confirmed or context.everything
        known = {
            key: said for key, (at, said) in seen.second_looks.items() if context.now - at < HELD_FOR_S and not anew
        }
        unknown = {key for key in keys if key not in known}
        since = max(seen.epochs[key] for key in unknown) if unknown and unknown <= seen.epochs.keys() else None
        answers = self._ask_source(ask, unknown, since) if unknown else {}
        said = {key: answers[key] if key in answers else known.get(key) for key in keys}
        for key in unknown:
            if said[key] in (Sighting.GONE, Sighting.WANTED, Sighting.BEHIND):
                seen.second_looks.pop(key, None)
            else:
                seen.second_looks[key] = context.now, said[key]
        return said

    def _ask_source(self, ask: AskSource, keys: Collection[Key], since: int | None) -> Mapping[Key, Sighting]:
        """Ask the source by name. GONE counts only from brokers that know all that any broker knew before."""
        # Before and after: a client with several connections may ask two brokers.
        behind = self._log.is_behind(since)
        answers = ask(keys)
        if Sighting.GONE not in answers.values() or not (self._log.is_behind(since) or behind):
            return answers
        return {key: Sighting.BEHIND if said is Sighting.GONE else said for key, said in answers.items()}

    def _explain(
        self,
        standing: _Standing,
        kind: Kind,
        kept: Sequence[Change],
        sightings: Mapping[Key, Sighting | None],
        absence: Absence[Key],
    ) -> None:
        """Note why these deletions are kept. An item that the source still has starts its wait again."""
        source, found = self._flow.source, [sightings.get(one.key) for one in kept]
        for sighting, reason in ((Sighting.WANTED, STALE), (Sighting.BEHIND, BEHIND)):
            stale = {one.key for one in kept if sightings.get(one.key) is sighting}
            absence.forget(stale)
            if stale:
                standing.errors.append(Unobserved(kind, reason.format(source, len(stale), kind)))
        for one, said in zip(kept, found, strict=True):
            if one.key not in sightings:
                standing.refused.append(_refusal(one, WAITS.format(source, absence.seconds), passing=True))
            elif said in HELD_BY_FILE:
                standing.refused.append(_refusal(one, HELD_BY_FILE[said].format(source), remedy=CONFIRM))
            elif said is None:
                standing.refused.append(_refusal(one, UNKNOWN.format(source)))
        if held := [said for said in found if said in HELD_BY_FILE]:
            why = HELD_BECAUSE[Sighting.RENAMED if Sighting.RENAMED in held else Sighting.LEFT_OUT].format(source)
            standing.held = HELD.format(self._flow.name, number_of(len(held), "item"), kind, why)

    def _limited(self, plan: Plan, context: PassContext) -> Plan:
        """Returns the plan without kinds that delete too many items, and without creations beyond their limit."""
        for kind, reason in beyond_limit(plan, self._limits).items():
            plan, standing = plan.refusing_kinds({kind: reason}), self._standing.setdefault(kind, _Standing())
            standing.stopped = reason
            standing.refused = [one for one in plan.refused if one.kind is kind]
        for kind, creations, reason in self.creations.exceeded(plan, context):
            plan, standing = plan.refusing(creations, reason), self._standing.setdefault(kind, _Standing())
            standing.refused += [_refusal(one, reason, remedy=CONFIRM) for one in creations]
            standing.held = reason
        return plan


def _absence(kind: Kind) -> Absence[Key]:
    """Returns the absence rule of a kind. A topic must be missing for a minute, because deleted records cannot be
    restored. Other kinds can be recreated."""
    return Absence() if kind.row.data else Absence(observations=2, seconds=SECOND_LOOK_AFTER_S)


def _refusal(change: Change, reason: str, *, passing: bool = False, remedy: str = SEE_PLAN) -> Refusal:
    return Refusal(change.kind, change.op, change.key, reason, passing, remedy)


def beyond_limit(plan: Plan, limits: Limits) -> dict[Kind, str]:
    """Returns the kinds whose deletions exceed the limit, each with a reason that has the figures and the remedy."""
    found = {}
    for kind, deletes in Counter(change.kind for change in plan.changes if change.op is Op.DELETE).items():
        existing = plan.existing.get(kind, 0)
        if kind.row.limited and deletes > limits.allowed(existing):
            found[kind] = (
                f"{plan.flow.name}: the plan deletes {deletes} of {existing} of the kind {kind}, more than "
                f"lockstep.limits.max.delete.percent={limits.max_delete_percent:g} allows "
                f"({limits.allowed(existing)}); nothing of this kind was written. If this is meant, run "
                "`lockstep apply --force`"
            )
    return found


def only_ours(plan: Plan, ledger: Ledger) -> Plan:
    """Returns the plan with those deletions refused that the ledger, read a moment ago, no longer allows.

    A running job reads the ledger once per full comparison. Meanwhile `lockstep apply` may delete one of Lockstep's
    ACLs and release it, and an operator may add the same ACL by hand.
    """
    kinds = {change.kind for change in plan.changes if _is_checked(change)}
    if not kinds:
        return plan
    paused = ledger.paused()
    owned = {kind: ledger.owned(kind) for kind in kinds - paused}
    lost = [change for change in plan.changes if _is_checked(change) and change.key not in owned.get(change.kind, ())]
    return plan.refusing(lost, GIVEN_UP, remedy=SEE_PLAN)


def _is_checked(change: Change) -> bool:
    return change.op is Op.DELETE and change.kind.row.owned


COUNTED_FOR_S = 3600.0
"""Seconds for which a created item counts towards the limit."""

FLOOD = (
    "{}: the plan creates {} more of the kind {} (topics by their partitions), after {} within an hour, and "
    "lockstep.limits.max.create={} allows no more: they are held. If this is meant, run `lockstep apply --force`"
)


class CreationLimit:
    """Limits the items that one flow creates within an hour, so that a source cannot flood the target. Times are
    monotonic seconds."""

    def __init__(self, settings: FlowSettings) -> None:
        self._flow, self._most = settings.flow, settings.limits.max_create
        self._created: list[tuple[float, Kind, int]] | None = None

    def exceeded(self, plan: Plan, context: PassContext) -> Iterator[tuple[Kind, list[Change], str]]:
        """Yields each kind that would exceed the limit, its creations, and the reason to hold them.

        The first call counts the creations of the last hour from the ledger, so a restart forgets none. An adopted item
        counts, too. Partitions that a topic grew by count as old as the topic.
        """
        if self._created is None:
            self._created, partitions = [], context.listed.target
            for kind in (kind for kind in Kind if kind.row.owned):
                for key, age in context.ledger.owned_within(kind, COUNTED_FOR_S).items():
                    count = partitions.get(key[0], 1) if kind.row.data else 1
                    self._created.append((context.now - age, kind, count))
        self._created = [one for one in self._created if context.now - one[0] < COUNTED_FOR_S]
        for kind in {change.kind for change in plan.changes if change.kind.row.owned}:
            creations = [change for change in plan.changes if change.kind is kind and _adds(change)]
            adds = sum(map(_adds, creations))
            created = sum(count for _, one, count in self._created if one is kind)
            if created + adds > self._most:
                yield kind, creations, FLOOD.format(self._flow.name, adds, kind, created, self._most)

    def note_created(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Note created items. Before the first call of `exceeded` this does nothing, because the ledger has them,
        too."""
        if self._created is not None:
            done = [one.change for one in outcomes if not (one.error or one.already) and one.change.kind.row.owned]
            self._created += [(now, one.kind, count) for one in done if (count := _adds(one))]


def _adds(change: Change) -> int:
    """Returns the number of items that a change creates; for a topic, its partitions."""
    if isinstance(change.after, TopicSpec):
        before = change.before.partitions if isinstance(change.before, TopicSpec) else 0
        return change.after.partitions - before
    return int(change.op is Op.CREATE)
