"""For applications: where a consumer group goes on in the other cluster, as `RemoteClusterUtils` tells it in Java."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.overrides.in_force import load_in_force
from app.planning import group_offsets
from app.wiring import FlowClusters, both_ends, ledger
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.kinds.topics.survey import list_both
from streaming.errors import MalformedRecord
from streaming.mm2.codec import decode_checkpoint
from streaming.mm2.records import TopicPartition

CONFIG = Path("conf/mirror.properties")


def translate_offsets(flow: str, group: str, config: Path | str = CONFIG) -> dict[TopicPartition, int]:
    """The offsets on the flow's target at which a group goes on, by partition there; none for partitions without one.

    `flow`: e.g. `a->b`. It commits nothing: give them to a consumer of yours. While the source answers they are
    translated from where the group is now; without it, they are those of the group's newest checkpoints.

    Raises ConfigurationError for the file, ClusterUnreachable where the target does not answer either, RightsMissing.
    Source: `org.apache.kafka.connect.mirror.RemoteClusterUtils.translateOffsets` (KIP-382).
    """
    settings = load_in_force(Path(config), (flow,))
    one = settings.flows[0]
    with both_ends(settings, one) as ends:
        try:
            return _from_both(one, ends, [group])
        except ClusterUnreachable:
            return _from_checkpoints(one, ends, group)


def _from_both(flow: FlowSettings, ends: FlowClusters, groups: Sequence[str]) -> dict[TopicPartition, int]:
    listed = list_both(flow, ends.source, ends.target)
    rows = group_offsets(flow, ends, listed, ledger(flow, ends.target, to_write=False), groups)
    return {row.where: offset for row in rows if (offset := row.goes_on_at) is not None}


def _from_checkpoints(flow: FlowSettings, ends: FlowClusters, group: str) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for key, value in ends.target.read_log(flow.internal.checkpoints):
        try:
            checkpoint = decode_checkpoint(key, value)
        except MalformedRecord:
            continue
        if checkpoint.group == group:
            found[checkpoint.topic_partition] = checkpoint.downstream_offset
    return found
