"""What a micro-batch says: which flows live, and which offsets MM2 tells of.

None of it is the truth about a cluster. That all is as it should be follows from comparing the clusters, so what comes
twice does no harm, and what is lost is read again from MM2's topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streaming.flow import Flow
from streaming.mm2.records import RecordKind

TOLERANCE_MS = 5_000
"""How far the clocks of two machines may differ without a remark."""

NUMBERS = ("subject_partition", "upstream_offset", "downstream_offset", "position")
"""Columns of `decode.DECODED_SCHEMA` whose values stand one after another in `Summary.numbers`."""


class Summary(NamedTuple):
    """Decoded rows that say the same, as Spark counted them: one row of `query.summarize`.

    `name`: a checkpoint's group or an offset-sync's topic. `newest_ms`, `appended_ms`: the latest of `timestamp_ms`
    and of `appended_ms` among them. `record` and the like as in `decode.DECODED_SCHEMA`. `numbers`: of each
    row, the ones of `NUMBERS`. `topics`: the topic of each checkpoint.
    """

    record: str
    source: str | None
    target: str | None
    replicated: bool
    topic: str
    name: str | None
    error: str | None
    rows: int
    newest_ms: int | None
    appended_ms: int | None
    numbers: Sequence[int] = ()
    topics: Sequence[str] = ()


class SyncSeen(NamedTuple):
    """An offset-sync, and its place in the offset-syncs topic. The topic is named as on the source."""

    position: int
    topic: str
    partition: int
    upstream: int
    downstream: int


class CheckpointSeen(NamedTuple):
    """A checkpoint, and its place in the checkpoints topic. The topic that it is about is named as on the target."""

    position: int
    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True)
class NewestHeartbeat:
    """The newest heartbeat of a flow in a batch.

    `timestamp_ms`: when its connector emitted it, at the latest when it arrived: one from the future says no more than
    that it is here. `latency_ms`: how long it took to the target at most, None if it did not cross. MM2 keeps the
    timestamp of a record. So the arrival itself is visible only where the target's topic has
    `message.timestamp.type=LogAppendTime`. Elsewhere it is the time until this batch read it, which counts the wait
    for the trigger, too.
    """

    timestamp_ms: int
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class Hints:
    """What the sink needs of a batch.

    `heartbeats`: those that MM2 copied, which prove that records cross; the flow is that of the topic, see `roles`.
    `emitted`: those that a heartbeat connector wrote to the target itself, which prove that MM2 runs there.
    `syncs`, `checkpoints`: in the order in which MM2 wrote them.
    `undecodable`: rows without a meaning, by topic and reason. `rows`: how many there were in all. `read_ms`: when the
    batch was read, by the driver's clock.
    """

    heartbeats: Mapping[Flow, NewestHeartbeat] = field(default_factory=dict)
    emitted: Mapping[Flow, NewestHeartbeat] = field(default_factory=dict)
    syncs: Mapping[Flow, Sequence[SyncSeen]] = field(default_factory=dict)
    checkpoints: Mapping[Flow, Sequence[CheckpointSeen]] = field(default_factory=dict)
    undecodable: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rows: int = 0
    read_ms: int = field(default=0, compare=False)


def hints_of(summaries: Iterable[Summary], read_ms: int) -> Hints:
    """The hints of one batch, read at `read_ms` (ms since the epoch)."""
    heartbeats: dict[Flow, NewestHeartbeat] = {}
    emitted: dict[Flow, NewestHeartbeat] = {}
    syncs: dict[Flow, list[SyncSeen]] = {}
    checkpoints: dict[Flow, list[CheckpointSeen]] = {}
    undecodable: dict[tuple[str, str], int] = {}
    rows = 0
    for summary in summaries:
        rows += summary.rows
        flow = _flow(summary)
        if summary.error is not None:
            key = (summary.topic, summary.error)
            undecodable[key] = undecodable.get(key, 0) + summary.rows
        elif flow is not None and summary.name is not None and summary.record == RecordKind.OFFSET_SYNC.value:
            syncs.setdefault(flow, []).extend(_syncs(summary.name, summary.numbers))
        elif flow is not None and summary.name is not None and summary.record == RecordKind.CHECKPOINT.value:
            checkpoints.setdefault(flow, []).extend(_checkpoints(summary.name, summary.topics, summary.numbers))
        elif flow is not None and summary.newest_ms is not None:
            seen = heartbeats if summary.replicated else emitted
            seen[flow] = _heartbeat(summary, summary.newest_ms, read_ms)
    for seen_syncs in syncs.values():
        seen_syncs.sort()
    for seen_checkpoints in checkpoints.values():
        seen_checkpoints.sort()
    return Hints(heartbeats, emitted, syncs, checkpoints, undecodable, rows, read_ms)


def _syncs(topic: str, numbers: Sequence[int]) -> Iterator[SyncSeen]:
    fields = [iter(numbers)] * len(NUMBERS)
    return (SyncSeen(position, topic, part, up, down) for part, up, down, position in zip(*fields, strict=True))


def _checkpoints(group: str, topics: Sequence[str], numbers: Sequence[int]) -> Iterator[CheckpointSeen]:
    fields = [iter(numbers)] * len(NUMBERS)
    for topic, (part, up, down, position) in zip(topics, zip(*fields, strict=True), strict=True):
        yield CheckpointSeen(position, group, topic, part, up, down)


def _flow(summary: Summary) -> Flow | None:
    """A heartbeat's own aliases may be anything that bytes can say."""
    if not summary.source or not summary.target or summary.source == summary.target:
        return None
    return Flow(summary.source, summary.target)


def _heartbeat(summary: Summary, newest_ms: int, read_ms: int) -> NewestHeartbeat:
    emitted_ms = min(newest_ms, read_ms)
    if not summary.replicated:
        return NewestHeartbeat(emitted_ms, None)
    appended_ms = summary.appended_ms or 0
    arrived_ms = appended_ms if appended_ms > newest_ms else read_ms
    return NewestHeartbeat(emitted_ms, max(0, arrived_ms - newest_ms))


def replaces(seen_ms: int, known_ms: int | None, now_ms: int) -> bool:
    """Whether a heartbeat takes the place of the one that is known; both by the time of their emission.

    A later one does. So does any where the known one lies in the future: a clock was set back since it was read.
    """
    return known_ms is None or seen_ms > known_ms or seen_ms <= now_ms + TOLERANCE_MS < known_ms


def age_seconds(timestamp_ms: int, now_ms: int) -> float | None:
    """The age of a heartbeat; None where it lies in the future, which says nothing of the present."""
    return None if timestamp_ms > now_ms + TOLERANCE_MS else max(0, now_ms - timestamp_ms) / 1000


class LatestHeartbeats:
    """The newest heartbeat of each flow over all batches.

    A flow that ever had a heartbeat copied is measured by copied ones alone. When copying stops, the connector at the
    target goes on emitting, and that must not pass for a sign of life.
    """

    def __init__(self) -> None:
        self._copied: dict[Flow, NewestHeartbeat] = {}
        self._emitted: dict[Flow, NewestHeartbeat] = {}

    def note(self, hints: Hints, flows: Iterable[Flow]) -> None:
        """Takes a batch's hints of these flows; one that was read before changes nothing.

        Others are left out: a record may name any source and target, and each would be kept for ever.
        """
        for flow in flows:
            for known, new in ((self._copied, hints.heartbeats), (self._emitted, hints.emitted)):
                seen = new.get(flow)
                before = known[flow].timestamp_ms if flow in known else None
                if seen is not None and replaces(seen.timestamp_ms, before, hints.read_ms):
                    known[flow] = seen

    def of(self, flow: Flow) -> NewestHeartbeat | None:
        """The newest that counts, or None if there was none."""
        return self._copied.get(flow) or self._emitted.get(flow)
