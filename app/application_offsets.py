"""For applications: where a consumer group continues on the other cluster, as `RemoteClusterUtils` does in Java."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from app.overrides.with_overrides import load_with_overrides
from app.passes import single_pass
from app.settings import Settings
from app.wiring import FlowClusters, both_clusters
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.kinds.assembly import GroupScope
from sinks.kinds.offsets.direction import GroupOffset
from sinks.kinds.offsets.verdicts import Verdict
from sinks.model.changes import Kind
from streaming.errors import LockstepError, MalformedRecord
from streaming.mm2.codec import decode_checkpoint
from streaming.mm2.records import TopicPartition

CONFIG = Path("conf/mirror.properties")


def translate_offsets(flow: str, group: str, config: Path | str = CONFIG) -> dict[TopicPartition, int]:
    """The offsets on the flow's target at which a group continues, by partition there; none for partitions without one.

    `flow`: e.g. `a->b`. It commits nothing: give them to a consumer of yours. While the source answers they are
    translated from where the group is now. Without it, they come from the group's newest checkpoints.

    Raises ConfigurationError for the file, ClusterUnreachable where the target does not answer either, RightsMissing.
    Source: `org.apache.kafka.connect.mirror.RemoteClusterUtils.translateOffsets` (KIP-382).
    """
    with closing(load_with_overrides(Path(config), (flow,))) as settings:
        one = settings.flows[0]
        try:
            return _from_both(settings, one, group)
        except ClusterUnreachable:
            with both_clusters(settings, one) as clusters:
                return _from_checkpoints(one, clusters, group)


def _from_both(settings: Settings, flow: FlowSettings, group: str) -> dict[TopicPartition, int]:
    scope = GroupScope([group], shown=True)
    with single_pass(settings, flow, kinds=[Kind.GROUP_OFFSET], scope=scope) as one:
        for reason in one.compare().trouble.faulted.values():
            raise LockstepError(reason)
        return offsets_to_use(one.group_offsets)


def offsets_to_use(rows: Iterable[GroupOffset]) -> dict[TopicPartition, int]:
    """Where a group continues. Partitions whose offset is not to be trusted are left out."""
    trusted = (row for row in rows if row.judgement.verdict is not Verdict.ERROR)
    return {row.where: offset for row in trusted if (offset := row.goes_on_at) is not None}


def _from_checkpoints(flow: FlowSettings, clusters: FlowClusters, group: str) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for key, value in clusters.target.read_log(flow.internal.checkpoints):
        try:
            checkpoint = decode_checkpoint(key, value)
        except MalformedRecord:
            continue
        if checkpoint.group == group:
            found[checkpoint.topic_partition] = checkpoint.downstream_offset
    return found
