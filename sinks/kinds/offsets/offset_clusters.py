"""The two clusters of a flow, as the kind `group-offset` needs them."""

from __future__ import annotations

import time

from sinks.kinds.assembly import Assembly
from sinks.kinds.offsets.direction import ClusterGroups, OffsetClusters
from sinks.kinds.offsets.followed_groups import FollowedGroups
from sinks.kinds.offsets.mirror_records import mirror_topics


def offset_clusters(assembly: Assembly) -> OffsetClusters:
    """Groups are followed where they come from: on the source, or on the target where offsets are led back."""
    settings, source, target, back = assembly.settings, assembly.source, assembly.target, assembly.scope.back
    comes_from = target if back else source
    followed = FollowedGroups(
        settings, comes_from.groups, comes_from.group_watch(), assembly.commits, time.monotonic, assembly.scope.groups
    )
    return OffsetClusters(
        ClusterGroups(source.cluster, source.groups if back else followed),
        ClusterGroups(target.cluster, followed if back else target.groups),
        mirror_topics(settings.internal, source.cluster, target.cluster),
        followed,
    )
