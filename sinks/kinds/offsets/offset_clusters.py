"""The two clusters of a flow, as the kind `group-offset` needs them."""

from __future__ import annotations

import time

from sinks.kinds.assembly import Assembly
from sinks.kinds.offsets.direction import ClusterGroups, OffsetClusters
from sinks.kinds.offsets.mirror_records import mirror_topics
from sinks.kinds.offsets.polled_groups import PolledGroups


def offset_clusters(assembly: Assembly) -> OffsetClusters:
    """Groups are polled where they come from: on the source, or on the target where offsets are led back."""
    settings, source, target = assembly.settings, assembly.source, assembly.target
    comes_from = target if assembly.scope.back else source
    polled = PolledGroups(settings, comes_from.groups, comes_from.group_watch(), time.monotonic, assembly.scope.groups)
    return OffsetClusters(
        ClusterGroups(source.cluster, source.groups),
        ClusterGroups(target.cluster, target.groups),
        mirror_topics(settings.internal, source.cluster, target.cluster),
        polled,
    )
