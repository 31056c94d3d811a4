"""Answers whether the target could take over now, for `preflight`, status, metrics and page alike. Pure.

There are two questions. Could a cutover be done, which loses nothing? Could a failover be done, which goes without the
source, and how many records would it lose? Both are answered from `ReadinessFacts`. If a fact is missing, the answer is
UNKNOWN, never YES.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from sinks.failover.fencing import COPIED_FENCE
from sinks.failover.lost_before_copying import by_topic
from sinks.failover.readiness_facts import FailoverLoss, GroupsUnseen, JobFacts, NotChecked, ReadinessFacts
from sinks.flow_settings import Copier
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.failover_record import State, way_on
from sinks.model.changes import Kind
from sinks.model.times import utc_now, utc_text
from streaming.message_words import first_names, noun_of, number_of


class ReadinessAnswer(str, Enum):
    """DONE: the target has taken over. UNKNOWN: a fact is missing, or another process leads the flow."""

    DONE = "done"
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one question, and a sentence for it. `since`: start of the time without a valid preflight."""

    answer: ReadinessAnswer
    headline: str
    since: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        since = utc_text(self.since) if self.since else None
        return {"answer": self.answer.value, "headline": self.headline, "since": since}


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answers to both questions: for a cutover without loss, and for a failover without the source. `checks`: the
    results behind them."""

    checks: tuple[Check, ...]
    cutover: Answered
    failover: Answered

    @property
    def ready(self) -> bool | None:
        """Whether the flow could be cut over. None: unknown, or the target has taken over."""
        return {ReadinessAnswer.YES: True, ReadinessAnswer.NO: False}.get(self.cutover.answer)

    @property
    def not_well(self) -> list[Check]:
        return [check for check in self.checks if check.result is not CheckResult.OK]

    def as_json(self) -> dict[str, Any]:
        """Returns the fields for the page. Checks with the same figure and remedy are one finding."""
        found = {(check.figure, check.remedy): check for check in reversed(self.not_well)}
        findings = [
            {
                "about": check.name.removeprefix("in step: "),
                "reason": check.figure,
                "remedy": check.remedy,
                "blocks": check.stops(Takeover.CUTOVER),
                "blocks_failover": check.stops(Takeover.FAILOVER),
            }
            for check in self.not_well
            if found[check.figure, check.remedy] is check
        ]
        return {**self.cutover.as_json(), "failover": self.failover.as_json(), "findings": findings}


def readiness(facts: ReadinessFacts, now: datetime | None = None) -> Readiness:
    """Returns the answers to both questions, and the checks behind them. Without `now`, the clock's time counts."""
    if taken := _taken_over(facts):
        return Readiness((remark("failover", f"the flow is {facts.record.describe()}", GOES_ON),), taken, taken)
    asked = [row for row in QUESTIONS if row.seen_by in _seen(facts.job)]
    checks = tuple(replace(check, decides=row.decides) for row in asked for check in row.asks(facts))
    return Readiness(checks, _cutover(facts, checks), _failover(facts, checks, now or utc_now()))


def _seen(job: JobFacts) -> Collection[SeenBy]:
    """Returns the sources of facts that are up to date: passes, and the preflight if it is valid."""
    if job.not_checked:
        return (SeenBy.PASSES,)
    return (SeenBy.PASSES, SeenBy.PREFLIGHT_OF_TARGET) if job.trouble else tuple(SeenBy)


def _taken_over(facts: ReadinessFacts) -> Answered | None:
    """Returns the answer to both questions if the target has taken over or is about to; None otherwise."""
    record, target = facts.record, facts.target
    if facts.record_unknown is not None or not record.has_ended:
        return None
    if record.doing and not record.has_taken_over:
        half = f"{target} takes over: `{record.doing.typed}` is half done. Run it again to its end"
        return Answered(ReadinessAnswer.NO, half)
    if how := TAKEN_OVER.get(record.state):
        return Answered(ReadinessAnswer.DONE, f"{target} has taken over{_since(record.ended_at)}, by {how}")
    back = f"{record.state}{_since(record.begun.at)}"
    return Answered(ReadinessAnswer.DONE, f"{target} has taken over. The way back: {back}")


def _since(at: str) -> str:
    return f" since {at}" if at else ""


TAKEN_OVER: Mapping[State, str] = {State.PROMOTED: "`lockstep cutover`", State.FAILED_OVER: "`lockstep failover`"}
"""The command by which the target took over, by state."""


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
    heard = "MirrorMaker 2's heartbeats arrive" if facts.copier is Copier.MM2 else f"{facts.copier.label} copies"
    well = f"All that Lockstep keeps is in step, and {heard}{said}: a cutover loses nothing"
    return Answered(ReadinessAnswer.YES, well)


def _not_known(unchecked: NotChecked) -> Answered:
    """Returns UNKNOWN for a flow without a valid preflight."""
    since = f", since {utc_text(unchecked.since)}" if unchecked.since else ""
    asks = "`lockstep preflight` asks both clusters now"
    return Answered(ReadinessAnswer.UNKNOWN, f"Not known{since}: {unchecked.reason}. {asks}", unchecked.since)


def _reasons(facts: ReadinessFacts, reasons: Sequence[Check]) -> str:
    first, more = reasons[0], len(reasons) - 1
    about = "" if first.name == f"{facts.source}->{facts.target}" else f"{first.name.removeprefix('in step: ')}: "
    return f"{about}{first.figure}" + (f"; and {number_of(more, 'reason')} more" if more else "")


def _failover(facts: ReadinessFacts, checks: Sequence[Check], now: datetime) -> Answered:
    """Returns whether the target could take over without the source and MM2, and what that would lose."""
    job, loss = facts.job, facts.loss
    if job.another:
        return Answered(ReadinessAnswer.UNKNOWN, job.another)
    if facts.seen_at is None or (job.stopped and job.trouble is None):
        asks = f"`lockstep failover --dry-run` asks {facts.target}"
        unchecked = job.not_checked or NO_PREFLIGHT
        why = f"{job.stopped or unchecked.reason}. What a failover would lose is not known here: {asks}"
        return Answered(ReadinessAnswer.UNKNOWN, why, unchecked.since)
    if job.not_checked:
        return _not_known(job.not_checked)
    if loss is None:
        return Answered(ReadinessAnswer.NO, job.trouble or "What a failover would lose is not known")
    if reasons := [check for check in checks if check.stops(Takeover.FAILOVER)]:
        return Answered(ReadinessAnswer.NO, _reasons(facts, reasons))
    if loss.records is None:
        of = f" of {number_of(loss.unknown, 'partition')}" if loss.unknown else ""
        dry = f"What a failover would lose is not known{of}: `lockstep failover --dry-run` names them"
        return Answered(ReadinessAnswer.UNKNOWN, dry)
    loses = _loses(loss, facts.seen_at, facts.source, now)
    if not job.compared:
        return Answered(ReadinessAnswer.UNKNOWN, f"{loses}. {NOT_COMPARED}: what else differs is not known")
    return Answered(ReadinessAnswer.YES, loses)


NO_PREFLIGHT = NotChecked("no preflight was made")


def _loses(loss: FailoverLoss, at: datetime, source: str, now: datetime) -> str:
    """Returns the loss in words, with its age. Records that came to the source later are not in it."""
    most = "" if loss.exact else "at most "
    age = max(0, round((now - (loss.source_seen or at)).total_seconds()))
    return (
        f"It would lose {most}{number_of(loss.records or 0, 'record')} that {source} had {age} s ago, and each later "
        "record that was not copied"
    )


# The checks behind both answers: `QUESTIONS` is their table.
#
# It says for each check whether passes or a preflight see its facts, and which of the two questions it decides. A check
# without facts is UNKNOWN, never OK.


class CheckResult(str, Enum):
    """WARNING: has a cost, but stops no takeover. FAILED: must be mended first. UNKNOWN: could not be checked."""

    OK = "OK"
    WARNING = "WARNING"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


class Takeover(str, Enum):
    """CUTOVER: planned, without loss. FAILOVER: without the source, and uncopied records are lost."""

    CUTOVER = "cutover"
    FAILOVER = "failover"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of the clusters, in words."""

    name: str
    result: CheckResult
    figure: str
    """What Lockstep found."""
    limit: str = ""
    """The figure up to which the check is OK."""
    remedy: str = ""
    """What the operator does. Empty if there is nothing to do."""
    decides: frozenset[Takeover] = frozenset()
    """The takeovers that this check stops if it is FAILED or UNKNOWN."""

    def stops(self, takeover: Takeover) -> bool:
        return takeover in self.decides and self.result not in (CheckResult.OK, CheckResult.WARNING)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "result": self.result.value,
            "figure": self.figure,
            "limit": self.limit,
            "remedy": self.remedy,
        }


GOOD_VERDICTS = frozenset({Verdict.SYNCED, Verdict.PENDING, Verdict.SOURCE_EMPTY})
"""Verdicts of groups that continue on the target where they were on the source, or shortly before."""


NO_GROUP = "no group that may skip records"

SEE_STATUS = "`lockstep status` says more"

APPLY = "`lockstep plan` says what and why; `lockstep apply` writes it"

ALL_REFUSED = "`lockstep plan` says why Lockstep refuses each: mend that on the source, or exclude it in the file"


OWN_OFFSET = Verdict.GROUP_ACTIVE
"""The verdict of a group that has members on the target, and continues where these are. A group with any verdict other
than this and GOOD_VERDICTS may skip records: its offset is too high, or it starts by its reset policy."""


def _heartbeat(facts: ReadinessFacts) -> Iterator[Check]:
    limit = f"{facts.heartbeat_timeout:g} s"
    if facts.heartbeat_age is None:
        remedy = "see that MM2 runs, emits heartbeats and copies them"
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
        found += ", emitted on the target itself: it shows that MM2 runs, but not that it copies"
        remedy = "turn emit.heartbeats.enabled on for the other direction, so that MM2 has heartbeats to copy"
        yield Check("heartbeat", CheckResult.WARNING, found, limit, remedy)


def _records_not_counted(facts: ReadinessFacts) -> Iterator[Check]:
    unread = facts.by_job and bool(facts.missing_reads)
    result = CheckResult.WARNING if unread else CheckResult.UNKNOWN
    if facts.missing_reads:
        remedy = "`lockstep rights --principal …` prints the commands that grant them"
        figure = f"how many records are missing is unknown without: {first_names(sorted(facts.missing_reads))}"
        yield Check("rights to count records", result, figure, "", remedy)
    if facts.untold:
        named = [f"{where}: {why}" for where, why in sorted(facts.untold.items())]
        remedy = "see that the topic exists on both clusters, and that Lockstep may read it"
        yield Check("records whose loss is unknown", result, first_names(named, 3), "none", remedy)


def _records_not_copied(facts: ReadinessFacts) -> Iterator[Check]:
    if facts.missing_reads and not facts.losses:
        return
    records = sum(loss.records for loss in facts.losses.values())
    ages = [loss.age for loss in facts.losses.values() if loss.records and loss.age is not None]
    ageless = [topic for topic, loss in sorted(facts.losses.items()) if loss.records and loss.age is None]
    most = "" if all(loss.exact for loss in facts.losses.values()) else "at most "
    # Without an age they may have waited for days.
    old = bool(ageless) or max(ages, default=0.0) > facts.rules.max_loss_age
    over = records > facts.rules.max_loss and old
    topics = [f"{topic} {loss.records}" for topic, loss in sorted(facts.losses.items()) if loss.records]
    oldest = f", of unknown age: {first_names(ageless)}" if ageless else ""
    if ages and not ageless:
        oldest = f", the oldest {max(ages):.1f} s old: {first_names(topics)}"
    figure = f"{most}{records}{oldest}"
    limit = f"{facts.rules.max_loss}, or none older than {facts.rules.max_loss_age:g} s"
    remedy = f"{_lag(facts)}; a failover now would lose these" if over else ""
    yield Check("records not copied", CheckResult.FAILED if over else CheckResult.OK, figure, limit, remedy)


def _lag(facts: ReadinessFacts) -> str:
    """Returns in words why records are not copied yet, and what to do."""
    lags = f"{facts.copier.label} lags: give it more tasks, or wait"
    if not facts.not_begun or facts.copier is not Copier.MM2:
        return lags
    new = first_names(list(map(str, facts.not_begun)))
    return (
        f"MM2 has copied nothing of {new} yet: MM2 looks for new partitions every refresh.topics.interval.seconds. If "
        "others miss records too, give MM2 more tasks, or wait"
    )


def _lost(facts: ReadinessFacts) -> Iterator[Check]:
    topics = by_topic(facts.lost)
    lost = [f"{one.topic} {one.records} (found at {utc_text(one.since)})" for one in topics if one.records]
    unknown = [f"{one.topic}: unknown for {number_of(one.unknown, 'partition')}" for one in topics if one.unknown]
    unwatched = f"unknown for {number_of(facts.unwatched, 'partition')} that no job has watched yet"
    figure = f"at most {first_names(lost)}" if lost else "0"
    figure = "; ".join([figure, *unknown, *([unwatched] if facts.unwatched else [])])
    remedy = (
        "the source's retention deleted them before they were copied, or a log lost its tail: copy them by other "
        "means, then `lockstep ledger acknowledge`"
    )
    open_question = CheckResult.WARNING if all(one.is_compacted for one in topics) else CheckResult.UNKNOWN
    result = CheckResult.FAILED if lost else open_question if unknown else CheckResult.OK
    yield Check("records lost before copying", result, figure, "0", remedy if topics else "")


def _kinds(facts: ReadinessFacts) -> Iterator[Check]:
    found = facts.in_step
    for kind, drift in found.drift.items():
        fault, refused = found.faulted.get(kind), found.refused.get(kind, 0)
        counted = number_of(drift, "difference") + (f", {refused} refused" if refused else "")
        reason = fault or (found.reasons.get(kind) if drift else None)
        figure = fault if fault and not drift else f"{counted}: {reason}" if reason else counted
        bad = fault is not None or drift > facts.rules.max_drift
        unclear = fault is not None and not drift
        remedy = found.remedies.get(kind) or (SEE_STATUS if unclear else APPLY if drift > refused else ALL_REFUSED)
        result = CheckResult.FAILED if bad else CheckResult.WARNING if drift else CheckResult.OK
        limit = str(facts.rules.max_drift)
        yield Check(f"in step: {kind}", result, figure, limit, remedy if bad or drift else "")
    if users := found.refused.get(Kind.SCRAM_USER, 0):
        remedy = "`lockstep credentials set` for each: `lockstep plan` names them"
        yield Check("users without a credential", CheckResult.FAILED, str(users), "0", remedy)


def _forgotten(facts: ReadinessFacts) -> Iterator[Check]:
    if facts.forgotten:
        figure = f"{first_names(facts.forgotten)}: {facts.target} has a copy, but Lockstep does not keep it in step"
        remedy = "name them in `topics`, or in `topics.exclude` to leave them behind"
        yield Check("topics left out", CheckResult.FAILED, figure, "none", remedy)
    for figure in facts.without_copy:
        remedy = "wait until MM2 copies them, or name them in `topics.exclude` of Lockstep and MM2"
        yield Check("topics without a copy", CheckResult.FAILED, figure, "none", remedy)
    if facts.doubtful:
        remedy = "if an application writes one, stop it first; then name the topics with --accept"
        yield Check("called like heartbeats", CheckResult.WARNING, first_names(facts.doubtful), "none", remedy)
    if facts.idle:
        remedy = (
            "see that `topics` names the ones you mean: `lockstep topics` lists all. On the way back no cutover may be "
            "needed: `lockstep cutover` says what to do then"
        )
        yield Check("topics that clients write", CheckResult.FAILED, "none", "one or more", remedy)


def _groups(facts: ReadinessFacts) -> Iterator[Check]:
    verdicts, fault = facts.in_step.verdicts, facts.in_step.faulted.get(Kind.GROUP_OFFSET)
    most = facts.rules.max_groups_skipping
    limit = f"{most} that may skip records"
    if Kind.GROUP_OFFSET not in facts.in_step.drift:
        return
    if fault is not None and not any(verdicts.values()):
        yield Check("groups", CheckResult.UNKNOWN, f"not known: {fault}", limit, SEE_STATUS)
        return
    counted = {one: count for one, count in verdicts.items() if one not in (*GOOD_VERDICTS, OWN_OFFSET)}
    skipping = sum(counted.values())
    said = f"{skipping} may skip records: " if skipping else ""
    shown = counted if skipping else verdicts
    seen = ", ".join(f"{count} {verdict}" for verdict, count in shown.items() if count)
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
        unclear = CheckResult.WARNING if number.denied and facts.by_job else CheckResult.UNKNOWN
        why = "the groups may not be read" if number.denied else number.reason
        yield Check("groups", unclear, f"not known: {why}", limit, SEE_GROUPS[number.denied])
        return
    figure = f"{number_of(number, 'partition')} of groups without an offset on the target: offsets are not synced"
    remedy = "set sync.group.offsets.enabled, or leave the groups out with groups.exclude" if number else ""
    result = CheckResult.FAILED if number > most else CheckResult.WARNING if number else CheckResult.OK
    yield Check("groups", result, figure if number else NO_GROUP, limit, remedy)


SEE_GROUPS: Mapping[bool, str] = {
    True: "grant the right to see groups on both clusters: docs/rights.md",
    False: "see that all brokers of both clusters are up; if the source is lost, `lockstep failover --accept-loss` "
    "with a number or `unknown` asks no group",
}
"""What to do if Lockstep cannot read the groups. True: a right is missing. False: for another reason."""


def _none_but(name: str, found: Sequence[str], result: CheckResult, none: str, remedy: str, most: int = 10) -> Check:
    """Returns OK with the figure `none` if `found` is empty, else `result` with at most `most` of the names."""
    if not found:
        return Check(name, CheckResult.OK, none, none)
    return Check(name, result, first_names(found, most), none, remedy)


def _target(facts: ReadinessFacts) -> Iterator[Check]:
    wrong = [f"{topic} {here} and {there}" for topic, (here, there) in sorted(facts.partitions.items())]
    remedy = "add partitions on the target; if it has more, producers send keys to other partitions there"
    yield _none_but("partition counts", wrong, CheckResult.FAILED, "equal", remedy)
    remote, seen = set(facts.remote), facts.replicas
    offline = sorted(str(where) for where in seen.offline if where.topic in remote)
    yield _none_but("offline on the target", offline, CheckResult.FAILED, "0", "bring the target's brokers back")
    lagging = sorted(str(where) for where in seen.under_replicated if where.topic in remote)
    remedy = "see why replicas of the target lag"
    yield _none_but("under-replicated on the target", lagging, CheckResult.WARNING, "0", remedy)
    wanted = facts.wanted_in_sync
    closed = sorted(topic for topic in remote & wanted.keys() if seen.in_sync.get(topic, 0) < wanted[topic])
    unseen = sorted((remote & seen.factors.keys()) - wanted.keys())
    name = "replicas in sync for min.insync.replicas"
    if unseen and not closed:
        yield Check(name, CheckResult.UNKNOWN, f"not known for {first_names(unseen)}", "enough")
    else:
        remedy = "producers with acks=all cannot write these: lower min.insync.replicas, or add replicas"
        yield _none_but(name, closed, CheckResult.FAILED, "enough", remedy)
    single = sorted(topic for topic in remote if seen.factors.get(topic) == 1)
    remedy = "raise the replication factor of these topics: if their broker is lost, so are they" if single else ""
    figure = f"{number_of(len(single), 'topic')} with one replica on {number_of(seen.brokers, 'broker')}"
    weak = bool(single) and seen.brokers > 1
    yield Check(
        "replication factor", CheckResult.WARNING if weak else CheckResult.OK, figure, "2", remedy if weak else ""
    )


def _transactions(facts: ReadinessFacts) -> Iterator[Check]:
    for alias, seen in facts.undecided.items():
        name, names = f"open transactions on {alias}", sorted(map(str, seen.open))
        remedy = "`lockstep cutover` waits for those on the source, names them, and ends them with --abort-transactions"
        yield _none_but(name, names, CheckResult.WARNING, "0", remedy, most=3)
        if seen.unknown:
            untold = [f"{where}: {why}" for where, why in sorted(seen.unknown.items())]
            name, remedy = f"last stable offsets on {alias}", "see that the leaders of these partitions answer"
            yield Check(name, CheckResult.UNKNOWN, f"not known for {first_names(untold, 3)}", "all", remedy)


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
    figure = first_names(missing) or "all are there"
    bad = CheckResult.WARNING if facts.by_job else CheckResult.FAILED
    if missing and facts.by_job:
        figure = f"the job does not need these, but the operator who runs the commands does: {figure}"
    yield Check("rights of later steps", bad if missing else CheckResult.OK, figure, "", remedy)


def _flags(facts: ReadinessFacts) -> Iterator[Check]:
    for flag in facts.flags:
        yield Check("not carried over", CheckResult.WARNING, flag, "", "docs/failover.md says what to do by hand")


def _job(facts: ReadinessFacts) -> Iterator[Check]:
    """Reports what keeps the job from comparing the flow."""
    job, flow = facts.job, f"{facts.source}->{facts.target}"
    if job.stopped:
        yield Check(flow, CheckResult.FAILED, job.stopped, "", job.stopped_remedy or SEE_STATUS)
    if job.trouble and job.trouble not in (job.stopped or ""):
        remedy = "see that both clusters run, and can be reached from the job's machine"
        yield Check("preflight", CheckResult.FAILED, f"the clusters cannot be observed: {job.trouble}", "", remedy)


def _records_compared(facts: ReadinessFacts) -> Iterator[Check]:
    """Reports records that differ on the target, if the job compares records."""
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
    """Reports what an operator wants to know, though it stops no takeover."""
    job, flow = facts.job, f"{facts.source}->{facts.target}"
    if job.in_step_at:
        figure = f"what Lockstep keeps was last in step at {utc_text(job.in_step_at)}"
        yield remark(flow, figure, "it is compared again once both clusters answer")
    if job.note:
        yield remark(flow, job.note, SEE_STATUS)
    if facts.record_unknown is not None:
        why = "" if facts.record_unknown in (job.stopped or "") else f": {facts.record_unknown}"
        figure = f"it is not known whether a failover is under way{why}"
        yield remark("failover", figure, "see that the ledger can be read")
    elif facts.record.state is not State.MIRRORING or facts.record.doing is not None:
        yield remark("failover", f"the flow is {facts.record.describe()}", way_on(facts.record) or GOES_ON)
    if job.uncompared:
        yield remark("records", f"records are not compared: {job.uncompared}", "docs/verify.md")
    if job.effective:
        figure = f"{number_of(job.effective, 'config')} set on neither side with different values"
        yield remark("effective", figure, "set them on the source; docs/configs.md explains defaults that differ")


def remark(name: str, figure: str, remedy: str) -> Check:
    return Check(name, CheckResult.WARNING, figure, "", remedy)


HARMLESS_TO_READERS = frozenset({"DUPLICATE", "EXTRA"})
"""Differences by which the target has more records. With any other, records are lost or changed."""


GOES_ON = "docs/failover.md names the next step"


class SeenBy(Enum):
    """Where the facts of a check come from. A preflight of the target needs no answer of the source."""

    PASSES = "passes"
    PREFLIGHT = "preflight"
    PREFLIGHT_OF_TARGET = "preflight of target"


class ReadinessQuestion(NamedTuple):
    """A row of `QUESTIONS`: the function that checks, where its facts come from, and which takeovers it decides."""

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
    ReadinessQuestion(_forgotten, SeenBy.PREFLIGHT, BOTH),
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
"""All checks, in the order in which they are shown."""
