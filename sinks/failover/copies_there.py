"""Lists the copies on the target without asking the source, with those whose ends no job ever recorded."""

from __future__ import annotations

from dataclasses import replace

from sinks.failover.scene import Scene
from sinks.failover.unplanned import Prediction
from sinks.kinds.topics.rules import is_replicated
from sinks.ledger.fences import fenced_topics
from sinks.ledger.kept_end_offsets import UNSEEN


def copies_on_target(scene: Scene) -> dict[str, tuple[str, int]]:
    """Returns each copy's name on the target and its partition count, by topic of the source.

    Under a policy that keeps names these are all topics that the flow would replicate, whichever client created them.
    """
    settings, flow = scene.settings, scene.settings.flow
    policy, found = settings.policy, dict[str, tuple[str, int]]()
    for name, partitions in scene.target.cluster.list_topics().items():
        topic = policy.upstream_topic(name)
        if topic is None or policy.format_remote_topic(flow.source, topic) != name:
            continue
        if policy.topic_source(name) in (None, flow.source) and is_replicated(settings, topic):
            found[topic] = name, partitions
    written = fenced_topics(settings, {topic: name for topic, (name, _) in found.items()}, scene.aliases)
    return {topic: found[topic] for topic in written}


def with_all_copies(scene: Scene, prediction: Prediction) -> Prediction:
    """Returns the prediction, with "end never seen" for each copy on the target that it lacks."""
    known, remote = {topic: list(ends) for topic, ends in prediction.known.items()}, dict(prediction.remote)
    for topic, (name, partitions) in copies_on_target(scene).items():
        remote.setdefault(topic, name)
        ends = known.setdefault(topic, [])
        ends += [UNSEEN] * (partitions - len(ends))
    return replace(prediction, known=known, remote=remote)
