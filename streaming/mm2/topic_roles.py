"""Which internal topic on which cluster says what about which flow.

For a flow a -> b, as MM2's classes write them (`MirrorMakerConfig.clusterPairs`, `MirrorHeartbeatTask`,
`MirrorSourceTask`, `MirrorCheckpointTask`; Kafka 2.4 to 4.3):

| topic (default names) | on | written by | says of a -> b |
|---|---|---|---|
| `a.heartbeats` | b | the source connector of a -> b, which copies a's `heartbeats` | that it copies |
| `heartbeats` | b | the heartbeat connector of a -> b | that MM2 runs at b, no more |
| `a.checkpoints.internal` | b | the checkpoint connector of a -> b | where groups stand |
| `mm2-offset-syncs.b.internal` | a | the source connector of a -> b | which topics' records arrive |

A heartbeat connector writes to its own flow's *target*. What a's `heartbeats` holds comes from connectors of flows
into a: MM2 starts one for b -> a even when only a -> b is enabled, unless `emit.heartbeats.enabled=false`, to give
a -> b something to copy. So the aliases inside a record of `a.heartbeats` are those of a flow *into* a and must not be
taken for the flow that the record proves: that follows from the topic. In `heartbeats` the record's own aliases count.
With `offset-syncs.topic.location=target` the last topic is `mm2-offset-syncs.a.internal` on b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from streaming.flow import Flow
from streaming.mm2.internal_topics import InternalTopics
from streaming.mm2.records import RecordKind
from streaming.mm2.replication_policy import ReplicationPolicy


class TopicOn(NamedTuple):
    """A topic by the alias of the cluster that it is on and its name there."""

    cluster: str
    topic: str


@dataclass(frozen=True, slots=True)
class TopicRole:
    """What an internal topic carries. `flow` is None where each record names its own: heartbeats as emitted."""

    record: RecordKind
    flow: Flow | None = None

    def __post_init__(self) -> None:
        if self.flow is None and self.record is not RecordKind.HEARTBEAT:
            raise ValueError(f"a topic of {self.record}s needs its flow: only heartbeats carry the aliases themselves")


def roles_of_flow(flow: Flow, policy: ReplicationPolicy, internal: InternalTopics) -> dict[TopicOn, TopicRole]:
    """The topics that speak of one flow, as in the table above."""
    replicated = policy.format_remote_topic(flow.source, internal.heartbeats)
    return {
        TopicOn(flow.target, replicated): TopicRole(RecordKind.HEARTBEAT, flow),
        TopicOn(flow.target, internal.heartbeats): TopicRole(RecordKind.HEARTBEAT),
        TopicOn(flow.target, internal.checkpoints): TopicRole(RecordKind.CHECKPOINT, flow),
        TopicOn(internal.offset_syncs_cluster, internal.offset_syncs): TopicRole(RecordKind.OFFSET_SYNC, flow),
    }
