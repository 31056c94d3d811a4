"""The facts on which a flow's readiness depends: of its clusters, its passes and missing records. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sinks.failover.lost_before_copying import LostRecords
from sinks.failover.open_transactions import Undecided
from sinks.failover.record_matching import Pairs
from sinks.failover.uncopied_records import Arrival, ArrivalsSeen
from sinks.flow_settings import Copier, FailoverRules
from sinks.kafka.ports.cluster import Replicas
from sinks.ledger.failover_record import FailoverRecord
from sinks.model.changes import Kind
from sinks.model.times import utc_text
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicLoss:
    """A topic's records that are not on the target yet. `age`: of the oldest, in seconds; None if unknown. Unless
    `exact`, `records` is an upper bound."""

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
    """The records that a failover would lose."""

    records: int | None
    """Their number; None if unknown. Unless `exact`, an upper bound."""
    exact: bool = False
    source_seen: datetime | None = None
    """When the source's ends were seen that the loss is counted from. None: the preflight itself saw them."""
    unknown: int = 0
    """Number of partitions whose loss is unknown."""

    def as_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "exact": self.exact,
            "source_seen": utc_text(self.source_seen) if self.source_seen else None,
            "partitions_not_known": self.unknown,
        }


@dataclass(frozen=True, slots=True)
class NotChecked:
    """Why no valid preflight exists, and since when; None if that is unknown."""

    reason: str
    since: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        return {"reason": self.reason, "since": utc_text(self.since) if self.since else None}


@dataclass(frozen=True)
class InStep:
    """The results of the last comparison of each kind."""

    drift: Mapping[Kind, int] = field(default_factory=dict)
    """Number of differences."""
    refused: Mapping[Kind, int] = field(default_factory=dict)
    """Number of differences that Lockstep refuses to write."""
    faulted: Mapping[Kind, str] = field(default_factory=dict)
    """The error that leaves the drift unknown, or keeps Lockstep from writing it."""
    reasons: Mapping[Kind, str] = field(default_factory=dict)
    """Why there is drift without an error."""
    remedies: Mapping[Kind, str] = field(default_factory=dict)
    """What the operator does about the drift."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Number of partitions of consumer groups, by verdict."""
    read_twice: int = 0
    """Most records that a group would read twice in one partition."""


@dataclass(frozen=True)
class JobFacts:
    """What a running job knows about a flow besides the state of its clusters."""

    another: str | None = None
    """A sentence that says which other process leads the flow."""
    compared: bool = True
    """Whether any pass has finished."""
    stopped: str | None = None
    """Why no pass finishes now."""
    stopped_remedy: str = ""
    in_step_at: datetime | None = None
    """When a stopped flow was last in step."""
    note: str | None = None
    """A remark about the flow that stops no pass."""
    not_checked: NotChecked | None = None
    """Why no valid preflight exists."""
    trouble: str | None = None
    """Why the last preflight could not observe the clusters."""
    differences: Mapping[str, int] = field(default_factory=dict)
    """Number of differing records, by kind of difference (`DUPLICATE`)."""
    stalled: int = 0
    """Number of partitions that MM2 has stopped copying."""
    uncompared: str | None = None
    """Why records are not compared."""
    effective: int = 0
    """Number of configs that are set on neither side and differ in effect."""


@dataclass(frozen=True)
class ReadinessFacts:
    """The facts about a flow from `source` to `target`, as a preflight or the passes saw them."""

    rules: FailoverRules
    copier: Copier = Copier.MM2
    source: str = "the source"
    target: str = "the target"
    record: FailoverRecord = field(default_factory=FailoverRecord)
    """How far a failover is."""
    record_unknown: str | None = None
    """Why `record` may be out of date."""
    job: JobFacts = field(default_factory=JobFacts)
    heartbeat_age: float | None = None
    """Age of the last heartbeat, in seconds; None if none was seen."""
    heartbeat_copied: bool = True
    """Whether MM2 copied the heartbeat from the source."""
    heartbeat_timeout: float = 30.0
    """Seconds after which a heartbeat is too old."""
    losses: Mapping[str, TopicLoss] = field(default_factory=dict)
    """Records that are not on the target yet, by source topic."""
    losses_at_ms: float = 0.0
    """When they were counted, in ms since the epoch."""
    untold: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Partitions whose loss is unknown, with the reason."""
    not_begun: Sequence[TopicPartition] = ()
    """Partitions with missing records whose copy never had a record."""
    loss: FailoverLoss | None = None
    """What a failover would lose."""
    seen_at: datetime | None = None
    """When the clusters were observed; None if they were not yet."""
    in_step: InStep = field(default_factory=InStep)
    unsynced: int | GroupsUnseen = 0
    """Number of partitions of groups without an offset on the target. Used only if Lockstep syncs no offsets."""
    partitions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Partition counts on the source and on the target that differ, by remote topic."""
    remote: Collection[str] = ()
    """Names of the copies on the target."""
    replicas: Replicas = field(default_factory=lambda: Replicas(0))
    """Replicas of the target's topics."""
    wanted_in_sync: Mapping[str, int] = field(default_factory=dict)
    """`min.insync.replicas`, by remote topic."""
    undecided: Mapping[str, Undecided] = field(default_factory=dict)
    """Open transactions, by cluster alias."""
    missing_rights: Collection[str] = ()
    """Rights that the failover commands lack, in words."""
    missing_reads: Collection[str] = ()
    """Rights whose lack keeps Lockstep from counting missing records, in words."""
    by_job: bool = False
    """Whether the job's principal asks. It needs no rights that only an operator's commands need."""
    authorizer: bool = True
    """Whether the source has an authorizer."""
    flags: Collection[str] = ()
    """What no tool carries over to the target, in words."""
    forgotten: Sequence[str] = ()
    """Topics with a copy on the target that the file neither names nor excludes."""
    without_copy: Sequence[str] = ()
    """Sentences about topics that MM2 has not copied."""
    doubtful: Sequence[str] = ()
    """Topics with names like heartbeats that no flow copies."""
    idle: bool = False
    """Whether the flow replicates no topic that clients write."""
    lost: LostRecords = field(default_factory=dict)
    """Records that retention deleted before MM2 copied them."""
    unwatched: int = 0
    """Number of partitions without a recorded copy position. Records lost there before copying do not show."""

    @property
    def countable(self) -> bool:
        """Whether all missing records could be counted."""
        return not self.untold and not self.missing_reads


CLOCKS_DIFFER_S = 10.0
"""Seconds by which a producer's clock may be ahead of the clock of Lockstep."""


def losses_of(arrivals: Iterable[Arrival], now_ms: float) -> dict[str, TopicLoss]:
    """Returns the losses by source topic, without topics that lose nothing. If the clock of a record's producer is
    ahead, the age is unknown."""
    found: dict[str, TopicLoss] = {}
    for one in arrivals:
        if one.behind is None or not one.behind.records:
            continue
        before = found.get(one.where.topic, TopicLoss(0, 0.0))
        age = None if one.behind.oldest is None else (now_ms - one.behind.oldest) / 1000
        known = age is not None and age >= -CLOCKS_DIFFER_S and before.age is not None
        found[one.where.topic] = TopicLoss(
            before.records + one.behind.records,
            max(before.age or 0.0, age or 0.0) if known else None,
            before.exact and one.behind.exact,
        )
    return found


def not_begun(seen: ArrivalsSeen, pairs: Pairs) -> list[TopicPartition]:
    """Returns partitions with missing records whose copy never had a record, sorted."""
    behind = (where for where, one in seen.arrivals.items() if one.behind is not None and one.behind.records)
    return sorted(where for where in behind if (log := seen.target.get(pairs[where])) is not None and not log.end)


def untold(arrivals: Iterable[Arrival]) -> dict[TopicPartition, str]:
    """Returns partitions whose loss is unknown, with the reason."""
    return {one.where: one.problem for one in arrivals if one.problem}


def losses_as_json(losses: Mapping[str, TopicLoss]) -> dict[str, object]:
    return {
        "records": sum(loss.records for loss in losses.values()),
        "exact": all(loss.exact for loss in losses.values()),
        "topics": {
            topic: {"records": loss.records, "oldest_age_seconds": None if loss.age is None else round(loss.age, 1)}
            for topic, loss in sorted(losses.items())
        },
    }
