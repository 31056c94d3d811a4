"""Topics that a command line names, sorted to the flows that replicate them."""

from __future__ import annotations

from collections.abc import Sequence

from app.cli.wrong_names import refuse_wrong_topics
from app.settings import Settings
from app.wiring import both_clusters, guard
from sinks.flow_settings import FlowSettings
from sinks.kinds.listing import list_both


def topics_of_flows(settings: Settings, topics: Sequence[str]) -> list[tuple[FlowSettings, tuple[str, ...]]]:
    """Each flow that replicates some of these topics, with those.

    Raises WrongUsage with every name that no flow replicates, LockstepError where no cluster can be asked.
    """
    listed = []
    for one in settings.flows:
        with both_clusters(settings, one) as clusters:
            guard(one, clusters.source, clusters.target).ids()
            listed.append((one, list_both(one, clusters.source, clusters.target)))
    refuse_wrong_topics(topics, listed)
    chosen = [(one, tuple(topic for topic in topics if topic in found.desired.remote)) for one, found in listed]
    return [(one, names) for one, names in chosen if names]
