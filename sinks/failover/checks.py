"""Whether a flow could fail over now: a row for each question, with its figure, its limit and what to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from sinks.failover.lost_before_copying import LostRecords, by_topic
from sinks.failover.open_transactions import Undecided
from sinks.flow_settings import Copier, FailoverRules
from sinks.kafka.ports.brokers import Replicas
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.fence_rules import COPIED_FENCE, shown
from sinks.model.changes import Kind
from sinks.model.times import utc_text
from streaming.mm2.records import TopicPartition
from streaming.number_of import number_of


class CheckResult(str, Enum):
    """OK. WARNING: has a cost, but stops no failover. FAILED: must be mended first. UNKNOWN: could not be found out."""

    OK = "OK"
    WARNING = "WARNING"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Check:
    """The answer to one question; `remedy` is empty where there is nothing to do."""

    name: str
    result: CheckResult
    figure: str
    limit: str = ""
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        """One row of `preflight`."""
        return {
            "name": self.name,
            "result": self.result.value,
            "figure": self.figure,
            "limit": self.limit,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True)
class TopicLoss:
    """What of a topic is not on the target yet: `records`, and the age of the oldest in seconds. Unless `exact`,
    `records` is an upper bound."""

    records: int
    age: float | None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class GroupsUnseen:
    """Why it is not known which groups lack an offset on the target. `denied`: a right is missing."""

    reason: str
    denied: bool = False


@dataclass(frozen=True)
class ReadinessFacts:
    """What was seen of both clusters. Ages in seconds.

    `losses`: by topic of the source, counted at `losses_at_ms` (since the epoch).
    `untold`: partitions whose loss is unknown, with the reason.
    `drift`, `refused`, `faulted`: by kind.
    `partitions`: counts on the source and on the target, by remote topic, where they differ.
    `replicas`: of the target. `wanted_in_sync`: `min.insync.replicas` by remote topic. `undecided`: by alias.
    `missing_rights`: in words. `missing_reads`: in words, the rights that counting missing records needs.
    `by_job`: the job's principal asks; it needs no rights that only an operator's commands need.
    `authorizer`: whether the source has one.
    `unsynced`: partitions of groups without an offset on the target, where Lockstep syncs no offsets, or why that is
    unknown.
    `flags`: what no tool carries over, in words.
    `lost`: what retention deleted before MM2 copied it.
    `unwatched`: partitions without a recorded copy position, where such a loss does not show.
    """

    rules: FailoverRules
    copier: Copier = Copier.MM2
    heartbeat_age: float | None = None
    heartbeat_copied: bool = True
    heartbeat_timeout: float = 30.0
    losses: Mapping[str, TopicLoss] = field(default_factory=dict)
    losses_at_ms: float = 0.0
    untold: Mapping[TopicPartition, str] = field(default_factory=dict)
    drift: Mapping[Kind, int] = field(default_factory=dict)
    refused: Mapping[Kind, int] = field(default_factory=dict)
    faulted: Mapping[Kind, str] = field(default_factory=dict)
    verdicts: Mapping[Verdict, int] = field(default_factory=dict)
    unsynced: int | GroupsUnseen = 0
    read_twice: int = 0
    partitions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    remote: Collection[str] = ()
    replicas: Replicas = field(default_factory=lambda: Replicas(0))
    wanted_in_sync: Mapping[str, int] = field(default_factory=dict)
    undecided: Mapping[str, Undecided] = field(default_factory=dict)
    missing_rights: Collection[str] = ()
    missing_reads: Collection[str] = ()
    by_job: bool = False
    authorizer: bool = True
    flags: Collection[str] = ()
    lost: LostRecords = field(default_factory=dict)
    unwatched: int = 0

    @property
    def countable(self) -> bool:
        """Whether all missing records could be counted."""
        return not self.untold and not self.missing_reads


Question = Callable[[ReadinessFacts], Iterator[Check]]

GOOD_VERDICTS = frozenset({Verdict.SYNCED, Verdict.PENDING, Verdict.SOURCE_EMPTY})
"""Verdicts with which a group continues where it was, or shortly before."""

NO_GROUP = "no group that may skip records"

OWN_OFFSET = Verdict.GROUP_ACTIVE
"""With this verdict a group continues where its members on the target are. All verdicts that are neither this nor good
may skip records: the offset is too far on, or the group starts by its reset policy."""


def readiness(facts: ReadinessFacts, questions: Sequence[Question] | None = None) -> list[Check]:
    """Returns the answers to these questions, in their order. None: to all."""
    return [check for asked in (CHECKS if questions is None else questions) for check in asked(facts)]


def is_ready(checks: Collection[Check]) -> bool:
    """Whether nothing failed and nothing is unknown."""
    return all(check.result in (CheckResult.OK, CheckResult.WARNING) for check in checks)


def _heartbeat(facts: ReadinessFacts) -> Iterator[Check]:
    limit = f"{facts.heartbeat_timeout:g} s"
    if facts.heartbeat_age is None:
        remedy = "see that MM2 runs, and emits and replicates heartbeats"
        if facts.copier is not Copier.MM2:
            remedy = "see that the copier runs, and that its copies reach the ends that the source had"
        yield Check("heartbeat", CheckResult.UNKNOWN, "none was seen", limit, remedy)
        return
    found = f"{facts.heartbeat_age:.1f} s old"
    if facts.heartbeat_age > facts.heartbeat_timeout:
        remedy = f"see why {facts.copier.label} does not copy: its log, its tasks"
        yield Check("heartbeat", CheckResult.FAILED, found, limit, remedy)
    elif facts.heartbeat_copied:
        yield Check("heartbeat", CheckResult.OK, found, limit)
    else:
        found += ", emitted on the target itself: MM2 runs, and this does not show that it copies"
        remedy = "turn emit.heartbeats.enabled on for the other direction, so that there is one to copy"
        yield Check("heartbeat", CheckResult.WARNING, found, limit, remedy)


def _missing_records(facts: ReadinessFacts) -> Iterator[Check]:
    unread = facts.by_job and bool(facts.missing_reads)
    if facts.losses or not facts.missing_reads:
        yield _counted(facts)
    if facts.missing_reads:
        remedy = "`lockstep rights --principal …` prints the commands that grant them"
        figure = f"how many records is unknown: {shown(sorted(facts.missing_reads))}"
        yield Check(
            "rights to count records", CheckResult.WARNING if unread else CheckResult.UNKNOWN, figure, "", remedy
        )
    if facts.untold:
        named = [f"{where}: {why}" for where, why in sorted(facts.untold.items())]
        remedy = "see that the topic is there on both sides, and may be read"
        result = CheckResult.WARNING if unread else CheckResult.UNKNOWN
        yield Check("records that nobody can tell of", result, shown(named, 3), "none", remedy)


COUNTED = "records not copied"


def _counted(facts: ReadinessFacts) -> Check:
    records = sum(loss.records for loss in facts.losses.values())
    ages = [loss.age for loss in facts.losses.values() if loss.records and loss.age is not None]
    most = "" if all(loss.exact for loss in facts.losses.values()) else "at most "
    over = records > facts.rules.max_loss and max(ages, default=0.0) > facts.rules.max_loss_age
    topics = [f"{topic} {loss.records}" for topic, loss in sorted(facts.losses.items()) if loss.records]
    figure = f"{most}{records}" + (f", the oldest {max(ages):.1f} s old: {shown(topics)}" if ages else "")
    limit = f"{facts.rules.max_loss}, or none older than {facts.rules.max_loss_age:g} s"
    label = facts.copier.label
    remedy = f"{label} lags: give it more tasks, or wait; a failover now would lose these" if over else ""
    return Check(COUNTED, CheckResult.FAILED if over else CheckResult.OK, figure, limit, remedy)


def kind_check(kind: Kind, drift: int, refused: int, fault: str | None, rules: FailoverRules) -> Check:
    """Whether a kind is in step enough for a failover. `fault`: why its differences are unknown or were not applied."""
    more = (f", {refused} refused" if refused else "") + (f": {fault}" if fault else "")
    figure = number_of(drift, "difference") + more
    bad = fault is not None or drift > rules.max_drift
    remedy = "`lockstep plan` says what and why; `lockstep apply` writes it" if bad else ""
    result = CheckResult.FAILED if bad else CheckResult.OK
    return Check(f"in step: {kind}", result, figure, str(rules.max_drift), remedy)


def _lost(facts: ReadinessFacts) -> Iterator[Check]:
    topics = by_topic(facts.lost)
    lost = [f"{one.topic} {one.records} (found at {utc_text(one.since)})" for one in topics if one.records]
    unknown = [f"{one.topic}: not known of {number_of(one.unknown, 'partition')}" for one in topics if one.unknown]
    unwatched = f"not known of {number_of(facts.unwatched, 'partition')} that no job has watched so far"
    figure = f"at most {shown(lost)}" if lost else "0"
    figure = "; ".join([figure, *unknown, *([unwatched] if facts.unwatched else [])])
    remedy = (
        "the source's retention took them before they were copied: take them from elsewhere, then `lockstep ledger "
        "acknowledge`"
    )
    result = CheckResult.FAILED if lost else CheckResult.WARNING if unknown else CheckResult.OK
    yield Check("records lost before copying", result, figure, "0", remedy if topics else "")


def _kinds(facts: ReadinessFacts) -> Iterator[Check]:
    for kind, drift in facts.drift.items():
        yield kind_check(kind, drift, facts.refused.get(kind, 0), facts.faulted.get(kind), facts.rules)
    if users := facts.refused.get(Kind.SCRAM_USER, 0):
        remedy = "`lockstep credentials set` for each: `lockstep plan` names them"
        yield Check("users without a credential", CheckResult.FAILED, str(users), "0", remedy)


def group_check(verdicts: Mapping[Verdict, int], rules: FailoverRules, read_twice: int = 0) -> Check:
    """Whether few enough partitions of groups may skip records. `read_twice`: the most that one partition reads
    twice."""
    skipping = sum(count for verdict, count in verdicts.items() if verdict not in (*GOOD_VERDICTS, OWN_OFFSET))
    said = f"{skipping} may skip records: " if skipping else ""
    seen = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count)
    most = number_of(read_twice, "record is", "records are")
    twice = f"; at most {most} read twice in a partition" if read_twice else ""
    bad = skipping or verdicts.get(OWN_OFFSET)
    over = skipping > rules.max_groups_skipping
    result = CheckResult.FAILED if over else CheckResult.WARNING if bad else CheckResult.OK
    remedy = "`lockstep offsets` says for each group why" if bad else ""
    limit = f"{rules.max_groups_skipping} that may skip records"
    return Check("groups", result, said + (seen or NO_GROUP) + twice, limit, remedy)


def _groups(facts: ReadinessFacts) -> Iterator[Check]:
    if Kind.GROUP_OFFSET not in facts.drift:
        return
    found = group_check(facts.verdicts, facts.rules, facts.read_twice)
    fault = facts.faulted.get(Kind.GROUP_OFFSET)
    if fault is not None and not any(facts.verdicts.values()):
        remedy = "`lockstep status` says more"
        found = replace(found, result=CheckResult.UNKNOWN, figure=f"not known: {fault}", remedy=remedy)
    yield found


def _unsynced_groups(facts: ReadinessFacts) -> Iterator[Check]:
    if Kind.GROUP_OFFSET in facts.drift:
        return
    number, most = facts.unsynced, facts.rules.max_groups_skipping
    limit = f"{most} that may skip records"
    if isinstance(number, GroupsUnseen):
        yield _groups_unseen(number, limit, facts.by_job)
        return
    figure = f"{number_of(number, 'partition')} of groups without an offset on the target: offsets are not synced"
    remedy = "set sync.group.offsets.enabled, or leave the groups out with groups.exclude" if number else ""
    result = CheckResult.FAILED if number > most else CheckResult.WARNING if number else CheckResult.OK
    yield Check("groups", result, figure if number else NO_GROUP, limit, remedy)


def _groups_unseen(why: GroupsUnseen, limit: str, by_job: bool) -> Check:
    if why.denied:
        result = CheckResult.WARNING if by_job else CheckResult.UNKNOWN
        remedy = "grant the right to see groups on both clusters: docs/rights.md"
        return Check("groups", result, "not known: the groups may not be read", limit, remedy)
    remedy = (
        "see that all brokers of both clusters are up; if the source is lost, `lockstep failover --accept-loss` with a "
        "number or `unknown` asks no group"
    )
    return Check("groups", CheckResult.UNKNOWN, f"not known: {why.reason}", limit, remedy)


def _target(facts: ReadinessFacts) -> Iterator[Check]:
    wrong = [f"{topic} {here} and {there}" for topic, (here, there) in sorted(facts.partitions.items())]
    remedy = "add partitions on the target; where it has more, keys go elsewhere there" if wrong else ""
    result = CheckResult.FAILED if wrong else CheckResult.OK
    yield Check("partition counts", result, shown(wrong) or "equal", "equal", remedy)
    remote, seen = set(facts.remote), facts.replicas
    offline = sorted(str(where) for where in seen.offline if where.topic in remote)
    remedy = "bring the target's brokers back" if offline else ""
    result = CheckResult.FAILED if offline else CheckResult.OK
    yield Check("offline on the target", result, shown(offline) or "0", "0", remedy)
    lagging = sorted(str(where) for where in seen.under_replicated if where.topic in remote)
    remedy = "see why replicas of the target lag" if lagging else ""
    figure = shown(lagging) or "0"
    yield Check(
        "under-replicated on the target", CheckResult.WARNING if lagging else CheckResult.OK, figure, "0", remedy
    )
    wanted = facts.wanted_in_sync
    closed = sorted(topic for topic in remote & wanted.keys() if seen.in_sync.get(topic, 0) < wanted[topic])
    unseen = sorted((remote & seen.factors.keys()) - wanted.keys())
    remedy = "producers with acks=all cannot write these: lower min.insync.replicas, or add replicas" if closed else ""
    name, unknown = "replicas in sync for min.insync.replicas", f"not known of {shown(unseen)}" if unseen else ""
    result = CheckResult.FAILED if closed else CheckResult.UNKNOWN if unseen else CheckResult.OK
    yield Check(name, result, shown(closed) or unknown or "enough", "enough", remedy)
    single = sorted(topic for topic in remote if seen.factors.get(topic) == 1)
    remedy = "raise the replication factor of these topics: one broker's loss is theirs" if single else ""
    figure = f"{number_of(len(single), 'topic')} with one replica on {number_of(seen.brokers, 'broker')}"
    weak = bool(single) and seen.brokers > 1
    yield Check(
        "replication factor", CheckResult.WARNING if weak else CheckResult.OK, figure, "2", remedy if weak else ""
    )


def _transactions(facts: ReadinessFacts) -> Iterator[Check]:
    for alias, seen in facts.undecided.items():
        names = shown(sorted(map(str, seen.open)), 3)
        remedy = "`lockstep cutover` waits for those on the source, names them, and ends them with --abort-transactions"
        result = CheckResult.WARNING if seen.open else CheckResult.OK
        yield Check(f"open transactions on {alias}", result, names or "0", "0", remedy if seen.open else "")
        if seen.unknown:
            untold = [f"{where}: {why}" for where, why in sorted(seen.unknown.items())]
            name, remedy = f"last stable offsets on {alias}", "see that the leaders of these partitions answer"
            yield Check(name, CheckResult.UNKNOWN, f"not told: {shown(untold, 3)}", "all", remedy)


def _fencing(facts: ReadinessFacts) -> Iterator[Check]:
    if not facts.authorizer:
        remedy = "stop producers themselves; `lockstep cutover --without-fence` proves that the ends do not move"
        yield Check("fence", CheckResult.WARNING, "the source has no authorizer", "", remedy)
        return
    if facts.rules.copier_copies_acls:
        copier = facts.copier
        figure = f"on: {copier.label} would copy the fence to the target"
        yield Check(f"{copier.label}'s ACL sync", CheckResult.FAILED, figure, "off", COPIED_FENCE[copier][1])
    figure = "the source has an authorizer; ACLs do not bind super users, and brokers do not list super users"
    yield Check("fence", CheckResult.OK, figure)


def _rights(facts: ReadinessFacts) -> Iterator[Check]:
    missing = sorted(facts.missing_rights)
    remedy = "`lockstep rights --failover --principal …` prints the commands that grant them" if missing else ""
    figure = shown(missing) or "all are there"
    bad = CheckResult.WARNING if facts.by_job else CheckResult.FAILED
    if missing and facts.by_job:
        figure = f"the job does not need them, the operator who runs the commands does: {figure}"
    yield Check("rights of later steps", bad if missing else CheckResult.OK, figure, "", remedy)


def _flags(facts: ReadinessFacts) -> Iterator[Check]:
    for flag in facts.flags:
        yield Check("not carried over", CheckResult.WARNING, flag, "", "docs/failover.md says what to do by hand")


FROM_CLUSTERS: Sequence[Question] = (
    _missing_records,
    _lost,
    _unsynced_groups,
    _target,
    _transactions,
    _fencing,
    _rights,
    _flags,
)
"""Questions to the clusters themselves. Comparing kinds does not answer them."""

OF_TARGET: Sequence[Question] = (_unsynced_groups, _target)
"""The questions among these that also decide a failover without the source."""

CHECKS: Sequence[Question] = (_heartbeat, _missing_records, _lost, _kinds, _groups, *FROM_CLUSTERS[2:])
"""All questions, in the order in which they are shown."""
