"""What a micro-batch says: which flows live, and where the sink should look first.

Hints are never the truth about a cluster. A topic or a group in them is worth a look before others; that all is as it
should be follows from comparing the clusters. So a hint that is lost or comes twice does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from streaming.records import RecordKind
from streaming.settings import Flow


class Summary(NamedTuple):
    """Decoded rows that say the same, as Spark counted them: one row of `query.summarize`.

    `name`: a checkpoint's group or an offset-sync's topic. `newest_ms`, `appended_ms`: the latest of `timestamp_ms`
    and of `appended_ms` among them. `record` and the like as in `decode.SCHEMA`.
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


@dataclass(frozen=True, slots=True)
class HeartbeatSeen:
    """The newest heartbeat of a flow in a batch.

    `timestamp_ms`: when its connector emitted it. `latency_ms`: how long it took to the target at most, None if it did
    not cross. MM2 keeps a record's timestamp, so that the arrival itself is visible only where the target's topic has
    `message.timestamp.type=LogAppendTime`; elsewhere it is the time until this batch read it, which counts the wait
    for the trigger, too.
    """

    timestamp_ms: int
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class Hints:
    """What the sink needs of a batch.

    `heartbeats`: those that MM2 copied, which prove that records cross; the flow is that of the topic, see `roles`.
    `emitted`: those that a heartbeat connector wrote to the target itself, which prove that MM2 runs there.
    `syncs`: upstream topics that records arrived of. `groups`: groups that a checkpoint was written for.
    `undecodable`: rows without a meaning, by topic and reason. `rows`: how many there were in all.
    """

    heartbeats: Mapping[Flow, HeartbeatSeen] = field(default_factory=dict)
    emitted: Mapping[Flow, HeartbeatSeen] = field(default_factory=dict)
    syncs: Mapping[Flow, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[Flow, frozenset[str]] = field(default_factory=dict)
    undecodable: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rows: int = 0


def hints_of(summaries: Iterable[Summary], read_ms: int) -> Hints:
    """The hints of one batch, read at `read_ms` (ms since the epoch)."""
    heartbeats: dict[Flow, HeartbeatSeen] = {}
    emitted: dict[Flow, HeartbeatSeen] = {}
    names: dict[str, dict[Flow, set[str]]] = {RecordKind.OFFSET_SYNC.value: {}, RecordKind.CHECKPOINT.value: {}}
    undecodable: dict[tuple[str, str], int] = {}
    rows = 0
    for summary in summaries:
        rows += summary.rows
        flow = _flow(summary)
        if summary.error is not None:
            key = (summary.topic, summary.error)
            undecodable[key] = undecodable.get(key, 0) + summary.rows
        elif flow is not None and summary.name is not None and summary.record in names:
            names[summary.record].setdefault(flow, set()).add(summary.name)
        elif flow is not None and summary.newest_ms is not None:
            seen = heartbeats if summary.replicated else emitted
            seen[flow] = _heartbeat(summary, summary.newest_ms, read_ms)
    syncs, groups = ({flow: frozenset(found) for flow, found in by_flow.items()} for by_flow in names.values())
    return Hints(heartbeats, emitted, syncs, groups, undecodable, rows)


def _flow(summary: Summary) -> Flow | None:
    """A heartbeat's own aliases may be anything that bytes can say."""
    if not summary.source or not summary.target or summary.source == summary.target:
        return None
    return Flow(summary.source, summary.target)


def _heartbeat(summary: Summary, newest_ms: int, read_ms: int) -> HeartbeatSeen:
    if not summary.replicated:
        return HeartbeatSeen(newest_ms, None)
    appended_ms = summary.appended_ms or 0
    arrived_ms = appended_ms if appended_ms > newest_ms else read_ms
    return HeartbeatSeen(newest_ms, max(0, arrived_ms - newest_ms))


class LatestHeartbeats:
    """The newest heartbeat of each flow over all batches.

    A flow that ever had a heartbeat copied is measured by those alone: when copying stops, the connector at the target
    goes on emitting, and that must not pass for a sign of life.
    """

    def __init__(self) -> None:
        self._copied: dict[Flow, HeartbeatSeen] = {}
        self._emitted: dict[Flow, HeartbeatSeen] = {}

    def note(self, hints: Hints) -> None:
        """Takes a batch's hints; one that was read before changes nothing."""
        for known, new in ((self._copied, hints.heartbeats), (self._emitted, hints.emitted)):
            for flow, seen in new.items():
                if flow not in known or seen.timestamp_ms > known[flow].timestamp_ms:
                    known[flow] = seen

    def of(self, flow: Flow) -> HeartbeatSeen | None:
        """The newest that counts, or None if there was none."""
        return self._copied.get(flow) or self._emitted.get(flow)
