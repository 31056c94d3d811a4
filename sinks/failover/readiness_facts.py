"""What was seen of a flow on which its readiness depends: clusters, passes, missing records. Pure."""

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
    """What of a topic is not on the target yet: `records`, and the age of the oldest in seconds; None: unknown. Unless
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
    """What a failover loses. `records`: None if unknown, because `unknown` partitions are. Unless `exact`, an upper
    bound. `source_seen`: when the ends that it is counted from were seen. None: the preflight itself saw them."""

    records: int | None
    exact: bool = False
    source_seen: datetime | None = None
    unknown: int = 0

    def as_json(self) -> dict[str, Any]:
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
    `untold`: partitions whose loss is unknown, with the reason. `not_begun`: partitions whose copy never had a record.
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
    `forgotten`: topics with a copy on the target that the file neither names nor excludes. `without_copy`: a sentence
    about topics that MM2 has not copied. `doubtful`: topics that are called like heartbeats, and that no flow copies.
    `idle`: the flow replicates no topic that clients write.
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
    not_begun: Sequence[TopicPartition] = ()
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
    forgotten: Sequence[str] = ()
    without_copy: Sequence[str] = ()
    doubtful: Sequence[str] = ()
    idle: bool = False
    lost: LostRecords = field(default_factory=dict)
    unwatched: int = 0

    @property
    def countable(self) -> bool:
        """Whether all missing records could be counted."""
        return not self.untold and not self.missing_reads


CLOCKS_DIFFER_S = 10.0
"""Seconds by which a producer's clock may be ahead of ours."""


def losses_of(arrivals: Iterable[Arrival], now_ms: float) -> dict[str, TopicLoss]:
    """Returns losses by topic of the source. Topics without a loss are left out. The age of a record whose producer's
    clock is ahead is unknown."""
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
