"""Could the target take over now? `readiness` answers for `preflight`, status, metrics and page alike. Pure.

There are two questions. A cutover loses nothing: could it be done? A failover goes without the source: could it be
done, and how many records would it lose? `QUESTIONS` is the table of the checks. It says which of the two each check
decides. What was not found out is UNKNOWN, never a yes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from sinks.failover.arrival import Arrival
from sinks.failover.lost_before_copying import LostRecords, by_topic
from sinks.failover.open_transactions import Undecided
from sinks.flow_settings import Copier, FailoverRules
from sinks.kafka.ports.brokers import Replicas
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.fences import COPIED_FENCE, shown
from sinks.model.changes import Kind
from sinks.model.times import utc_now, utc_text
from streaming.mm2.records import TopicPartition
from streaming.number_of import noun_of, number_of


class CheckResult(str, Enum):
    """OK. WARNING: has a cost, but stops no failover. FAILED: must be mended first. UNKNOWN: could not be found out."""

    OK = "OK"
    WARNING = "WARNING"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


class Takeover(str, Enum):
    """CUTOVER: planned, and loses nothing. FAILOVER: without the source, and loses what was not copied."""

    CUTOVER = "cutover"
    FAILOVER = "failover"


@dataclass(frozen=True, slots=True)
class Check:
    """The answer to one question. `remedy` is empty where there is nothing to do. `decides`: what it stops unless it is
    OK or a WARNING."""

    name: str
    result: CheckResult
    figure: str
    limit: str = ""
    remedy: str = ""
    decides: frozenset[Takeover] = frozenset()

    def stops(self, takeover: Takeover) -> bool:
        """Whether it is a reason against this."""
        return takeover in self.decides and self.result not in (CheckResult.OK, CheckResult.WARNING)

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
class FailoverLoss:
    """What a failover loses. `records`: None if unknown, because `unknown` partitions are. Unless `exact`, an upper
    bound. `source_seen`: when the ends that it is counted from were seen. None: the preflight itself saw them."""

    records: int | None
    exact: bool = False
    source_seen: datetime | None = None
    unknown: int = 0

    def as_json(self) -> dict[str, Any]:
        """Returns the fields for status and page."""
        return {
            "records": self.records,
            "exact": self.exact,
            "source_seen": utc_text(self.source_seen) if self.source_seen else None,
            "partitions_not_known": self.unknown,
        }


@dataclass(frozen=True, slots=True)
class NotChecked:
    """Why no current preflight exists, and since when. None: unknown."""

    reason: str
    since: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the fields for status and page."""
        return {"reason": self.reason, "since": utc_text(self.since) if self.since else None}


@dataclass(frozen=True)
class InStep:
    """What comparisons say, by kind. `drift`: differences. `refused`: those that Lockstep does not write. `faulted`:
    why the drift is unknown or stays. `reasons`: of other kinds, why there is any. `remedies`: what to do about it.

    `verdicts`: partitions of groups by verdict. `read_twice`: the most records that a group reads twice in one of them.
    """

    drift: Mapping[Kind, int] = field(default_factory=dict)
    refused: Mapping[Kind, int] = field(default_factory=dict)
    faulted: Mapping[Kind, str] = field(default_factory=dict)
    reasons: Mapping[Kind, str] = field(default_factory=dict)
    remedies: Mapping[Kind, str] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    read_twice: int = 0


@dataclass(frozen=True)
class JobFacts:
    """What a running job knows of a flow beside its clusters.

    `another`: which other process leads the flow. `compared`: whether a pass came to its end. `stopped`: why no pass
    does now, and `stopped_remedy` what to do. `in_step_at`: of a flow that is stopped, when it was last in step.
    `note`: another reason of the flow. `not_checked`: why no preflight counts. `trouble`: why the last preflight could
    not observe the clusters. `differences`: of records, by kind. `stalled`: partitions that MM2 does not copy on.
    `uncompared`: why records are not compared. `effective`: configs set on neither side with different values.
    """

    another: str | None = None
    compared: bool = True
    stopped: str | None = None
    stopped_remedy: str = ""
    in_step_at: datetime | None = None
    note: str | None = None
    not_checked: NotChecked | None = None
    trouble: str | None = None
    differences: Mapping[str, int] = field(default_factory=dict)
    stalled: int = 0
    uncompared: str | None = None
    effective: int = 0


@dataclass(frozen=True)
class ReadinessFacts:
    """What was seen of a flow from `source` to `target`. Ages in seconds.

    `record`: how far a failover is; `record_unknown`: why that is unknown.
    `losses`: by topic of the source, counted at `losses_at_ms` (since the epoch).
    `untold`: partitions whose loss is unknown, with the reason.
    `loss`: of a failover. `seen_at`: when the clusters were observed. None: not yet.
    `in_step`: what comparisons of the kinds say.
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
    source: str = "the source"
    target: str = "the target"
    record: FailoverRecord = field(default_factory=FailoverRecord)
    record_unknown: str | None = None
    job: JobFacts = field(default_factory=JobFacts)
    heartbeat_age: float | None = None
    heartbeat_copied: bool = True
    heartbeat_timeout: float = 30.0
    losses: Mapping[str, TopicLoss] = field(default_factory=dict)
    losses_at_ms: float = 0.0
    untold: Mapping[TopicPartition, str] = field(default_factory=dict)
    loss: FailoverLoss | None = None
    seen_at: datetime | None = None
    in_step: InStep = field(default_factory=InStep)
    unsynced: int | GroupsUnseen = 0
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


GOOD_VERDICTS = frozenset({Verdict.SYNCED, Verdict.PENDING, Verdict.SOURCE_EMPTY})
"""Verdicts with which a group continues where it was, or shortly before."""

NO_GROUP = "no group that may skip records"

OWN_OFFSET = Verdict.GROUP_ACTIVE
"""With this verdict a group continues where its members on the target are. All verdicts that are neither this nor good
may skip records: the offset is too far on, or the group starts by its reset policy."""


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


def _records_not_counted(facts: ReadinessFacts) -> Iterator[Check]:
    unread = facts.by_job and bool(facts.missing_reads)
    result = CheckResult.WARNING if unread else CheckResult.UNKNOWN
    if facts.missing_reads:
        remedy = "`lockstep rights --principal …` prints the commands that grant them"
        figure = f"how many records is unknown: {shown(sorted(facts.missing_reads))}"
        yield Check("rights to count records", result, figure, "", remedy)
    if facts.untold:
        named = [f"{where}: {why}" for where, why in sorted(facts.untold.items())]
        remedy = "see that the topic is there on both sides, and may be read"
        yield Check("records whose loss is unknown", result, shown(named, 3), "none", remedy)


def _records_not_copied(facts: ReadinessFacts) -> Iterator[Check]:
    if facts.missing_reads and not facts.losses:
        return
    records = sum(loss.records for loss in facts.losses.values())
    ages = [loss.age for loss in facts.losses.values() if loss.records and loss.age is not None]
    most = "" if all(loss.exact for loss in facts.losses.values()) else "at most "
    over = records > facts.rules.max_loss and max(ages, default=0.0) > facts.rules.max_loss_age
    topics = [f"{topic} {loss.records}" for topic, loss in sorted(facts.losses.items()) if loss.records]
    figure = f"{most}{records}" + (f", the oldest {max(ages):.1f} s old: {shown(topics)}" if ages else "")
    limit = f"{facts.rules.max_loss}, or none older than {facts.rules.max_loss_age:g} s"
    label = facts.copier.label
    remedy = f"{label} lags: give it more tasks, or wait; a failover now would lose these" if over else ""
    yield Check("records not copied", CheckResult.FAILED if over else CheckResult.OK, figure, limit, remedy)


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
    found = facts.in_step
    for kind, drift in found.drift.items():
        fault, refused = found.faulted.get(kind), found.refused.get(kind, 0)
        counted = number_of(drift, "difference") + (f", {refused} refused" if refused else "")
        reason = fault or (found.reasons.get(kind) if drift else None)
        figure = fault if fault and not drift else f"{counted}: {reason}" if reason else counted
        bad = fault is not None or drift > facts.rules.max_drift
        remedy = found.remedies.get(kind) or "`lockstep plan` says what and why; `lockstep apply` writes it"
        result = CheckResult.FAILED if bad else CheckResult.WARNING if drift else CheckResult.OK
        limit = str(facts.rules.max_drift)
        yield Check(f"in step: {kind}", result, figure, limit, remedy if bad or drift else "")
    if users := found.refused.get(Kind.SCRAM_USER, 0):
        remedy = "`lockstep credentials set` for each: `lockstep plan` names them"
        yield Check("users without a credential", CheckResult.FAILED, str(users), "0", remedy)


def _groups(facts: ReadinessFacts) -> Iterator[Check]:
    """Whether few enough partitions of groups may skip records."""
    verdicts, fault = facts.in_step.verdicts, facts.in_step.faulted.get(Kind.GROUP_OFFSET)
    most = facts.rules.max_groups_skipping
    limit = f"{most} that may skip records"
    if Kind.GROUP_OFFSET not in facts.in_step.drift:
        return
    if fault is not None and not any(verdicts.values()):
        yield Check("groups", CheckResult.UNKNOWN, f"not known: {fault}", limit, "`lockstep status` says more")
        return
    skipping = sum(count for verdict, count in verdicts.items() if verdict not in (*GOOD_VERDICTS, OWN_OFFSET))
    said = f"{skipping} may skip records: " if skipping else ""
    seen = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count)
    reads = number_of(facts.in_step.read_twice, "record is", "records are")
    twice = f"; at most {reads} read twice in a partition" if facts.in_step.read_twice else ""
    bad = bool(skipping or verdicts.get(OWN_OFFSET))
    result = CheckResult.FAILED if skipping > most else CheckResult.WARNING if bad else CheckResult.OK
    remedy = "`lockstep offsets` says for each group why" if bad else ""
    yield Check("groups", result, said + (seen or NO_GROUP) + twice, limit, remedy)


def _unsynced_groups(facts: ReadinessFacts) -> Iterator[Check]:
    if Kind.GROUP_OFFSET in facts.in_step.drift:
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


def _job(facts: ReadinessFacts) -> Iterator[Check]:
    """What keeps a job from comparing the flow."""
    job, flow = facts.job, f"{facts.source}->{facts.target}"
    if job.stopped:
        yield Check(flow, CheckResult.FAILED, job.stopped, "", job.stopped_remedy or "`lockstep status` says more")
    if job.trouble and job.trouble not in (job.stopped or ""):
        remedy = "see that both clusters run, and can be reached from the job's machine"
        yield Check("preflight", CheckResult.FAILED, f"the clusters cannot be observed: {job.trouble}", "", remedy)


def _records_compared(facts: ReadinessFacts) -> Iterator[Check]:
    """What is wrong with records on the target, where the job compares them."""
    remedy = "`lockstep verify TOPIC` says which records: docs/verify.md"
    for kind, count in facts.job.differences.items():
        result = CheckResult.WARNING if kind in HARMLESS_TO_READERS else CheckResult.FAILED
        yield Check("records", result, f"{count:,} {noun_of(count, 'record')} {kind}", "0", remedy)


def _copying(facts: ReadinessFacts) -> Iterator[Check]:
    if count := facts.job.stalled:
        figure = f"{count:,} {noun_of(count, 'partition stands', 'partitions stand')} still while the source moves"
        remedy = "see whether MirrorMaker 2's task for them runs: docs/alerts.md"
        yield Check("records", CheckResult.FAILED, figure, "0", remedy)


def _remarks(facts: ReadinessFacts) -> Iterator[Check]:
    """What stops nothing, and an operator wants to know."""
    job, flow = facts.job, f"{facts.source}->{facts.target}"
    if job.in_step_at:
        figure = f"what Lockstep keeps was last in step at {utc_text(job.in_step_at)}"
        yield _remark(flow, figure, "it is compared again once both clusters answer")
    if job.note:
        yield _remark(flow, job.note, "`lockstep status` says more")
    if facts.record_unknown is not None:
        why = "" if facts.record_unknown in (job.stopped or "") else f": {facts.record_unknown}"
        figure = f"whether one is under way is not known{why}"
        yield _remark("failover", figure, "it is known again once the ledger can be read")
    elif facts.record.state is not State.MIRRORING or facts.record.doing is not None:
        yield _remark("failover", f"the flow is {facts.record.describe()}", GOES_ON)
    if job.uncompared:
        yield _remark("records", f"are not compared: {job.uncompared}", "docs/verify.md")
    if job.effective:
        figure = f"{number_of(job.effective, 'config')} set on neither side with different values"
        yield _remark("effective", figure, "set them on the source, or read docs/configs.md on defaults that differ")


def _remark(name: str, figure: str, remedy: str) -> Check:
    return Check(name, CheckResult.WARNING, figure, "", remedy)


HARMLESS_TO_READERS = frozenset({"DUPLICATE", "EXTRA"})
"""What the target has too much of. Any other difference is a lost record or another one."""

GOES_ON = "docs/failover.md says what leads on from there"


class SeenBy(Enum):
    """Who sees what a question is about. A preflight of the target needs no source."""

    PASSES = "passes"
    PREFLIGHT = "preflight"
    PREFLIGHT_OF_TARGET = "preflight of target"


class ReadinessQuestion(NamedTuple):
    """A row of the table: the checks, who sees what they are about, and what they decide."""

    asks: Callable[[ReadinessFacts], Iterator[Check]]
    seen_by: SeenBy
    decides: frozenset[Takeover]


BOTH = frozenset(Takeover)
CUTOVER_ALONE = frozenset({Takeover.CUTOVER})
NEITHER = frozenset[Takeover]()

QUESTIONS: Sequence[ReadinessQuestion] = (
    ReadinessQuestion(_job, SeenBy.PASSES, CUTOVER_ALONE),
    ReadinessQuestion(_heartbeat, SeenBy.PASSES, CUTOVER_ALONE),
    ReadinessQuestion(_records_not_copied, SeenBy.PREFLIGHT, BOTH),
    ReadinessQuestion(_records_not_counted, SeenBy.PREFLIGHT, CUTOVER_ALONE),
    ReadinessQuestion(_lost, SeenBy.PREFLIGHT, CUTOVER_ALONE),
    ReadinessQuestion(_kinds, SeenBy.PASSES, BOTH),
    ReadinessQuestion(_groups, SeenBy.PASSES, BOTH),
    ReadinessQuestion(_unsynced_groups, SeenBy.PREFLIGHT_OF_TARGET, BOTH),
    ReadinessQuestion(_target, SeenBy.PREFLIGHT_OF_TARGET, BOTH),
    ReadinessQuestion(_transactions, SeenBy.PREFLIGHT, CUTOVER_ALONE),
    ReadinessQuestion(_fencing, SeenBy.PREFLIGHT, CUTOVER_ALONE),
    ReadinessQuestion(_rights, SeenBy.PREFLIGHT, CUTOVER_ALONE),
    ReadinessQuestion(_records_compared, SeenBy.PASSES, BOTH),
    ReadinessQuestion(_copying, SeenBy.PASSES, CUTOVER_ALONE),
    ReadinessQuestion(_flags, SeenBy.PREFLIGHT, NEITHER),
    ReadinessQuestion(_remarks, SeenBy.PASSES, NEITHER),
)
"""In the order in which they are shown."""


class ReadinessAnswer(str, Enum):
    """UNKNOWN: not found out, or another process leads the flow, and compares it. DONE: the target has taken over."""

    DONE = "done"
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one question, and a sentence for it. `since`: from when on no preflight says more than UNKNOWN."""

    answer: ReadinessAnswer
    headline: str
    since: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """For page and `preflight`."""
        since = utc_text(self.since) if self.since else None
        return {"answer": self.answer.value, "headline": self.headline, "since": since}


@dataclass(frozen=True, slots=True)
class Readiness:
    """Could the flow be cut over now, without loss? Could the target take over without the source, and what would that
    lose? `checks`: what was found."""

    checks: tuple[Check, ...]
    cutover: Answered
    failover: Answered

    @property
    def ready(self) -> bool | None:
        """Whether the flow could be cut over. None: unknown, or the target has taken over."""
        return {ReadinessAnswer.YES: True, ReadinessAnswer.NO: False}.get(self.cutover.answer)

    @property
    def not_well(self) -> list[Check]:
        """The checks that are not OK."""
        return [check for check in self.checks if check.result is not CheckResult.OK]

    def as_json(self) -> dict[str, Any]:
        """For the page. What several checks say alike is one finding."""
        found = {(check.figure, check.remedy): check for check in reversed(self.not_well)}
        rows = [check for check in self.not_well if found[check.figure, check.remedy] is check]
        return {
            **self.cutover.as_json(),
            "failover": self.failover.as_json(),
            "findings": [_finding(check) for check in rows],
        }


def _finding(check: Check) -> dict[str, Any]:
    return {
        "about": check.name.removeprefix("in step: "),
        "reason": check.figure,
        "remedy": check.remedy,
        "blocks": check.stops(Takeover.CUTOVER),
        "blocks_failover": check.stops(Takeover.FAILOVER),
    }


def readiness(facts: ReadinessFacts, now: datetime | None = None) -> Readiness:
    """Returns the answers to both questions, and the checks behind them. `now`: None takes the clock's."""
    if taken := _taken_over(facts):
        return Readiness((_remark("failover", f"the flow is {facts.record.describe()}", GOES_ON),), taken, taken)
    asked = [row for row in QUESTIONS if row.seen_by in _seen(facts.job)]
    checks = tuple(replace(check, decides=row.decides) for row in asked for check in row.asks(facts))
    return Readiness(checks, _cutover(facts, checks), _failover(facts, checks, now or utc_now()))


def _seen(job: JobFacts) -> Collection[SeenBy]:
    """Returns who has seen anything that counts now."""
    if job.not_checked:
        return (SeenBy.PASSES,)
    return (SeenBy.PASSES, SeenBy.PREFLIGHT_OF_TARGET) if job.trouble else tuple(SeenBy)


def _taken_over(facts: ReadinessFacts) -> Answered | None:
    """Returns the answer to both questions where the target has taken over, or is half done with it."""
    record, target = facts.record, facts.target
    if facts.record_unknown is not None or not record.has_ended:
        return None
    at = f" since {record.begun.at}" if record.begun.at else ""
    if record.doing and not record.has_taken_over:
        half = f"{target} takes over: `{record.doing.typed}` is half done. Run it again to its end"
        return Answered(ReadinessAnswer.NO, half)
    if how := TAKEN_OVER.get(record.state):
        return Answered(ReadinessAnswer.DONE, f"{target} has taken over{at}, by {how}")
    return Answered(ReadinessAnswer.DONE, f"{target} has taken over. The way back: {record.state}{at}")


TAKEN_OVER: Mapping[State, str] = {State.PROMOTED: "`lockstep cutover`", State.FAILED_OVER: "`lockstep failover`"}
"""How the target took over."""

NOT_COMPARED = "The first comparison is not over yet"


def _cutover(facts: ReadinessFacts, checks: Sequence[Check]) -> Answered:
    job = facts.job
    if job.another:
        return Answered(ReadinessAnswer.UNKNOWN, job.another)
    if not job.compared and not job.stopped:
        return Answered(ReadinessAnswer.UNKNOWN, NOT_COMPARED)
    if reasons := [check for check in checks if check.stops(Takeover.CUTOVER)]:
        return Answered(ReadinessAnswer.NO, _reasons(facts, reasons))
    if job.not_checked:
        return _not_known(job.not_checked)
    remarks = sum(check.result is CheckResult.WARNING for check in checks)
    said = f", with {number_of(remarks, 'remark')}" if remarks else ""
    heard = "MirrorMaker 2 is heard" if facts.copier is Copier.MM2 else f"{facts.copier.label} copies"
    well = f"All that Lockstep keeps is in step, and {heard}{said}: it loses nothing"
    return Answered(ReadinessAnswer.YES, well)


def _not_known(unchecked: NotChecked) -> Answered:
    """Records, brokers and rights were not checked, or too long ago."""
    since = f", since {utc_text(unchecked.since)}" if unchecked.since else ""
    asks = "`lockstep preflight` asks both clusters now"
    return Answered(ReadinessAnswer.UNKNOWN, f"Not known{since}: {unchecked.reason}. {asks}", unchecked.since)


def _reasons(facts: ReadinessFacts, reasons: Sequence[Check]) -> str:
    """The first, and how many more."""
    first, more = reasons[0], len(reasons) - 1
    about = "" if first.name == f"{facts.source}->{facts.target}" else f"{first.name.removeprefix('in step: ')}: "
    return f"{about}{first.figure}" + (f"; and {number_of(more, 'reason')} more" if more else "")


def _failover(facts: ReadinessFacts, checks: Sequence[Check], now: datetime) -> Answered:
    """Without the source: it may be gone, and MM2 with it."""
    job, loss = facts.job, facts.loss
    if job.another:
        return Answered(ReadinessAnswer.UNKNOWN, job.another)
    if facts.seen_at is None or (job.stopped and job.trouble is None):
        asks = f"`lockstep failover --dry-run` asks {facts.target}"
        unchecked = job.not_checked or NO_PREFLIGHT
        why = f"{job.stopped or unchecked.reason}. What it would lose is not known here: {asks}"
        return Answered(ReadinessAnswer.UNKNOWN, why, unchecked.since)
    if job.not_checked:
        return _not_known(job.not_checked)
    if loss is None:
        return Answered(ReadinessAnswer.NO, job.trouble or "What it would lose is not known")
    if reasons := [check for check in checks if check.stops(Takeover.FAILOVER)]:
        return Answered(ReadinessAnswer.NO, _reasons(facts, reasons))
    if loss.records is None:
        of = f" of {number_of(loss.unknown, 'partition')}" if loss.unknown else ""
        dry = f"What it would lose is not known{of}: `lockstep failover --dry-run` names them"
        return Answered(ReadinessAnswer.UNKNOWN, dry)
    loses = _loses(loss, facts.seen_at, facts.source, now)
    if not job.compared:
        return Answered(ReadinessAnswer.UNKNOWN, f"{loses}. {NOT_COMPARED}: what else differs is not known")
    return Answered(ReadinessAnswer.YES, loses)


NO_PREFLIGHT = NotChecked("no preflight was made")


def _loses(loss: FailoverLoss, at: datetime, source: str, now: datetime) -> str:
    """A figure is as old as what it was counted from: what came to the source since is not in it."""
    most = "" if loss.exact else "at most "
    age = max(0, round((now - (loss.source_seen or at)).total_seconds()))
    return (
        f"It would lose {most}{number_of(loss.records or 0, 'record')} of those that {source} had {age} s ago, "
        "and what came since without being copied"
    )


def losses_of(arrivals: Iterable[Arrival], now_ms: float) -> dict[str, TopicLoss]:
    """Returns losses by topic of the source. Topics without a loss are left out."""
    found: dict[str, TopicLoss] = {}
    for one in arrivals:
        if one.behind is None or not one.behind.records:
            continue
        before = found.get(one.where.topic, TopicLoss(0, None))
        age = None if one.behind.oldest is None else max(0.0, (now_ms - one.behind.oldest) / 1000)
        ages = [known for known in (before.age, age) if known is not None]
        found[one.where.topic] = TopicLoss(
            before.records + one.behind.records, max(ages, default=None), before.exact and one.behind.exact
        )
    return found


def untold(arrivals: Iterable[Arrival]) -> dict[TopicPartition, str]:
    """Returns partitions whose loss is unknown, with the reason."""
    return {one.where: one.problem for one in arrivals if one.problem}


def losses_as_json(losses: Mapping[str, TopicLoss]) -> dict[str, object]:
    """Returns the `records` in all and by topic."""
    return {
        "records": sum(loss.records for loss in losses.values()),
        "exact": all(loss.exact for loss in losses.values()),
        "topics": {
            topic: {"records": loss.records, "oldest_age_seconds": None if loss.age is None else round(loss.age, 1)}
            for topic, loss in sorted(losses.items())
        },
    }
