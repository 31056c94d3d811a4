"""The names of MM2's internal topics and of Lockstep's own, as the replication policy has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from streaming.flow import Flow
from streaming.mm2.records import RecordKind
from streaming.mm2.replication_policy import ReplicationPolicy

LEDGER = "lockstep-ledger"
"""How the names of ledgers begin, unless the replication policy has the method `ledger_topic`."""


FORMER_SEPARATORS = (".", "_", "-")
"""Separators with which a topic may be a ledger of an earlier configuration. A topic with any other may be a
client's."""


@dataclass(frozen=True, slots=True)
class InternalTopics:
    """MM2's internal topics of a flow, and Lockstep's own.

    `offset_syncs_cluster`: alias of the cluster that has the offset-syncs. `reverse_ledger`: the ledger of the reverse
    flow. `former_ledgers`: names of the flow's ledger with the usual separators. `of_other_flows`: Lockstep's topics on
    the same target for the file's other flows. `mm2s_of_other_flows`: MM2's topics there for them.
    """

    heartbeats: str
    checkpoints: str
    offset_syncs: str
    offset_syncs_cluster: str
    ledger: str
    audit: str
    topics: str
    groups: str
    reverse_ledger: str = ""
    of_other_flows: tuple[str, ...] = ()
    mm2s_of_other_flows: tuple[str, ...] = ()
    former_ledgers: tuple[str, ...] = ()

    @property
    def ours(self) -> tuple[str, ...]:
        """Lockstep's own topics for this flow."""
        return self.ledger, self.audit, self.topics, self.groups

    @property
    def on_target(self) -> frozenset[str]:
        """Lockstep's topics on the target for any flow, and names of former ledgers. Syncs from a source never change
        them."""
        return frozenset((*self.ours, *self.of_other_flows, *self.former_ledgers))

    @property
    def mm2s_on_target(self) -> frozenset[str]:
        """MM2's internal topics on the target, for any flow of the file. Syncs from a source never change them.

        The name of the offset-syncs is included even if that topic is on the source.
        """
        return frozenset((self.heartbeats, self.checkpoints, self.offset_syncs, *self.mm2s_of_other_flows))


def internal_topics(policy: ReplicationPolicy, flow: Flow, location: str) -> InternalTopics:
    """Returns the internal topics of a flow. `location`: MM2's `offset-syncs.topic.location`, `source` or `target`; all
    others are on the target.

    If the policy has no separator, Lockstep's names have a dot. A policy may name Lockstep's topics itself with the
    methods `ledger_topic(source)`, `audit_topic(source)`, `topics_log_topic(source)` and `groups_log_topic(source)`.
    `LogListener` writes the last two.
    """
    separator: str = getattr(policy, "internal_separator", ".")
    here, other = (flow.source, flow.target) if location == "source" else (flow.target, flow.source)
    return InternalTopics(
        heartbeats=policy.heartbeats_topic(),
        checkpoints=policy.checkpoints_topic(flow.source),
        offset_syncs=policy.offset_syncs_topic(other),
        offset_syncs_cluster=here,
        ledger=_own(policy, "ledger_topic", LEDGER, flow.source, separator),
        audit=_own(policy, "audit_topic", "lockstep-audit", flow.source, separator),
        topics=_own(policy, "topics_log_topic", "lockstep-topics", flow.source, separator),
        groups=_own(policy, "groups_log_topic", "lockstep-groups", flow.source, separator),
        reverse_ledger=_own(policy, "ledger_topic", LEDGER, flow.target, separator),
        former_ledgers=former_ledgers(flow.source),
    )


def former_ledgers(source: str) -> tuple[str, ...]:
    """Returns the names of a ledger with each of the usual separators. `source`: alias of the flow's source."""
    return tuple(own_topic(LEDGER, source, separator) for separator in FORMER_SEPARATORS)


def own_topic(name: str, source: str, separator: str) -> str:
    """Returns the name of a topic of Lockstep's that the policy does not name itself. `name`: such as `LEDGER`."""
    return separator.join((name, source, "internal"))


def _own(policy: ReplicationPolicy, method: str, name: str, source: str, separator: str) -> str:
    chosen: Callable[[str], str] | None = getattr(policy, method, None)
    return chosen(source) if chosen else own_topic(name, source, separator)


# What each internal topic tells of a flow, and the cluster that it is on.
#
# For a flow a -> b, as MM2's classes write them (`MirrorMakerConfig.clusterPairs`, `MirrorHeartbeatTask`,
# `MirrorSourceTask`, `MirrorCheckpointTask`; Kafka 2.4 to 4.3):
#
# | topic (default names) | on | written by | says of a -> b |
# |---|---|---|---|
# | `a.heartbeats` | b | the source connector of a -> b, which copies a's `heartbeats` | that it copies |
# | `heartbeats` | b | the heartbeat connector of a -> b | that MM2 runs at b, no more |
# | `a.checkpoints.internal` | b | the checkpoint connector of a -> b | where groups stand |
# | `mm2-offset-syncs.b.internal` | a | the source connector of a -> b | which topics' records arrive |
#
# A heartbeat connector writes to its own flow's *target*. Connectors of flows into a write a's `heartbeats`. MM2 starts
# one for b -> a even when only a -> b is enabled, to give a -> b something to copy (not with
# `emit.heartbeats.enabled=false`). So the aliases inside a record of `a.heartbeats` name a flow *into* a, not the flow
# that the record proves. The topic tells that one. In `heartbeats` the record's own aliases count.
# With `offset-syncs.topic.location=target` the last topic is `mm2-offset-syncs.a.internal` on b.


class TopicOn(NamedTuple):
    """A topic by the alias of the cluster that it is on and its name there."""

    cluster: str
    topic: str


@dataclass(frozen=True, slots=True)
class TopicRole:
    """What an internal topic carries. `flow`: None for heartbeats as emitted, because each of them names its own
    flow."""

    record: RecordKind
    flow: Flow | None = None

    def __post_init__(self) -> None:
        if self.flow is None and self.record is not RecordKind.HEARTBEAT:
            raise ValueError(f"a topic of {self.record}s needs its flow: only heartbeats carry the aliases themselves")


def roles_of_flow(flow: Flow, policy: ReplicationPolicy, internal: InternalTopics) -> dict[TopicOn, TopicRole]:
    """Returns the topics that tell of one flow, as in the table above."""
    replicated = policy.format_remote_topic(flow.source, internal.heartbeats)
    return {
        TopicOn(flow.target, replicated): TopicRole(RecordKind.HEARTBEAT, flow),
        TopicOn(flow.target, internal.heartbeats): TopicRole(RecordKind.HEARTBEAT),
        TopicOn(flow.target, internal.checkpoints): TopicRole(RecordKind.CHECKPOINT, flow),
        TopicOn(internal.offset_syncs_cluster, internal.offset_syncs): TopicRole(RecordKind.OFFSET_SYNC, flow),
    }
