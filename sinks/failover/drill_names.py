"""Checks what a drill may call its topic."""

from __future__ import annotations

from sinks.flow_settings import FlowSettings
from sinks.kinds.topics.rules import OWN, is_replicated
from streaming.errors import WrongUsage
from streaming.mm2.topic_names import topic_name_fault

KAFKAS_OWN = "__"


def check_drill_name(settings: FlowSettings, topic: str) -> None:
    """Raises WrongUsage for a name that Kafka would refuse, here or for the copy. Also for topics of Kafka, MM2 and
    Lockstep, and for topics that the flow does not replicate."""
    remote = settings.policy.format_remote_topic(settings.flow.source, topic)
    reason = _illegal(topic) or _owned(settings, topic) or _unreplicated(settings, topic)
    if reason is None and (of_copy := _illegal(remote) or _owned(settings, remote)):
        reason = f"its copy would be {remote}, which {of_copy}"
    if reason is not None:
        raise WrongUsage(f"--topic {topic}: {reason}")


def _illegal(name: str) -> str | None:
    fault = topic_name_fault(name)
    return fault.said if fault else None


def _owned(settings: FlowSettings, topic: str) -> str | None:
    internal = settings.internal
    if topic.startswith(OWN) or topic in (*internal.on_target, internal.reverse_ledger):
        return "is a topic of Lockstep's own"
    if topic.startswith(KAFKAS_OWN):
        return "is a topic of Kafka's own"
    of_mm2 = topic in (internal.heartbeats, internal.checkpoints, internal.offset_syncs)
    if of_mm2 or settings.policy.is_internal_topic(topic) or settings.policy.is_heartbeats_topic(topic):
        return "is a topic of MM2's own"
    return None


def _unreplicated(settings: FlowSettings, topic: str) -> str | None:
    if is_replicated(settings, topic):
        return None
    return f"is not replicated by {settings.flow.name}: name another, which `topics` matches"
