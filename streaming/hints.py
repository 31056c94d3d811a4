"""What a micro-batch tells: which flows are alive, and which offsets MM2 recorded.

Hints only say where to look. Lockstep acts on comparisons of the clusters. So a hint that comes twice does no harm, and
a lost one is read again from MM2's topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streaming.flow import Flow
from streaming.mm2.records import RecordKind

TOLERANCE_MS = 5_000
"""Milliseconds that the clocks of two machines may differ without a warning."""

NUMBERS = ("subject_partition", "upstream_offset", "downstream_offset", "position")
"""Columns of `decode.DECODED_SCHEMA` whose values stand one after another in `Summary.numbers`."""


class Summary(NamedTuple):
    """Decoded rows with the same content, as Spark counted them: one row of `query.summarize`.

    `name`: a checkpoint's group, or an offset-sync's topic. `newest_ms`, `appended_ms`: the latest of `timestamp_ms`
    and of `appended_ms`. `record` and the other columns: as in `decode.DECODED_SCHEMA`. `numbers`: the columns in
    `NUMBERS` of each row. `topics`: the topic of each checkpoint.
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
    """An offset-sync, and its offset in the offset-syncs topic. Its topic has the source's name."""

    position: int
    topic: str
    partition: int
    upstream: int
    downstream: int


class CheckpointSeen(NamedTuple):
    """A checkpoint, and its offset in the checkpoints topic. Its topic has the target's name."""

    position: int
    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True)
class NewestHeartbeat:
    """The newest heartbeat of a flow.

    `timestamp_ms`: when its connector emitted it, or when it arrived if that is earlier. `latency_ms`: upper bound of
    its time to the target; None if MM2 did not copy it. MM2 keeps the timestamp of a record. So the arrival itself is
    visible only if the target's topic has `message.timestamp.type=LogAppendTime`. Otherwise it is the time until this
    batch read it, which includes the wait for the trigger.

    `copied`: MM2 copied it from the source. A heartbeat that MM2 emits on the target shows that MM2 runs there; it does
    not show that records arrive.
    """

    timestamp_ms: int
    latency_ms: int | None = None
    copied: bool = True


@dataclass(frozen=True, slots=True)
class Hints:
    """What the sink needs of a batch.

    `heartbeats`: by the flow that copied them, which prove that records cross. `emitted`: heartbeats that a connector
    wrote to the target itself, which prove that MM2 runs there. `syncs`, `checkpoints`: in the order in which MM2 wrote
    them. `undecodable`: counts by topic and reason. `rows`: number of rows. `read_ms`: when the driver read the batch,
    by its clock.
    """

    heartbeats: Mapping[Flow, NewestHeartbeat] = field(default_factory=dict)
    emitted: Mapping[Flow, NewestHeartbeat] = field(default_factory=dict)
    syncs: Mapping[Flow, Sequence[SyncSeen]] = field(default_factory=dict)
    checkpoints: Mapping[Flow, Sequence[CheckpointSeen]] = field(default_factory=dict)
    undecodable: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rows: int = 0
    read_ms: int = field(default=0, compare=False)


def hints_of(summaries: Iterable[Summary], read_ms: int) -> Hints:
    """Returns the hints of one batch. `read_ms`: when it was read, in ms since the epoch."""
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
    """Returns the flow of the aliases in a heartbeat, which may be any text; None if they make no flow."""
    if not summary.source or not summary.target or summary.source == summary.target:
        return None
    return Flow(summary.source, summary.target)


def _heartbeat(summary: Summary, newest_ms: int, read_ms: int) -> NewestHeartbeat:
    emitted_ms = min(newest_ms, read_ms)
    if not summary.replicated:
        return NewestHeartbeat(emitted_ms, copied=False)
    appended_ms = summary.appended_ms or 0
    arrived_ms = appended_ms if appended_ms > newest_ms else read_ms
    return NewestHeartbeat(emitted_ms, max(0, arrived_ms - newest_ms))


def replaces(seen_ms: int, known_ms: int | None, now_ms: int) -> bool:
    """Whether a heartbeat replaces the known one. Times of emission, in ms since the epoch.

    A later heartbeat does. Any heartbeat does if the known one lies in the future, because a clock was set back.
    """
    return known_ms is None or seen_ms > known_ms or seen_ms <= now_ms + TOLERANCE_MS < known_ms


def age_seconds(timestamp_ms: int, now_ms: int) -> float | None:
    """Returns the age of a heartbeat in seconds; None if it lies in the future. Arguments in ms since the epoch."""
    return None if timestamp_ms > now_ms + TOLERANCE_MS else max(0, now_ms - timestamp_ms) / 1000


class LatestHeartbeats:
    """The newest heartbeat of each flow over all batches.

    Once a flow had a copied heartbeat, only copied ones count. When MM2 stops copying, the connector at the target
    still emits, and that must not look like replication.
    """

    def __init__(self) -> None:
        self._copied: dict[Flow, NewestHeartbeat] = {}
        self._emitted: dict[Flow, NewestHeartbeat] = {}

    def note(self, hints: Hints, flows: Iterable[Flow]) -> None:
        """Take a batch's hints of these flows. A heartbeat that was read before changes nothing.

        Other flows are left out. A record may name any source and target, and each would be kept for ever.
        """
        for flow in flows:
            for known, new in ((self._copied, hints.heartbeats), (self._emitted, hints.emitted)):
                seen = new.get(flow)
                before = known[flow].timestamp_ms if flow in known else None
                if seen is not None and replaces(seen.timestamp_ms, before, hints.read_ms):
                    known[flow] = seen

    def of(self, flow: Flow) -> NewestHeartbeat | None:
        """Returns the newest heartbeat that counts, or None."""
        return self._copied.get(flow) or self._emitted.get(flow)
