"""The names of MM2's internal topics and of Lockstep's own, as the replication policy has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streaming.flow import Flow
from streaming.mm2.replication_policy import ReplicationPolicy

LEDGER = "lockstep-ledger"
"""How the names of ledgers begin, unless the replication policy has the method `ledger_topic`."""


@dataclass(frozen=True, slots=True)
class InternalTopics:
    """The topics that a flow's records and our own are in.

    `offset_syncs_cluster`: the alias of where those are. `reverse_ledger`: the ledger of the flow the other way round.
    `of_other_flows`: what Lockstep makes on the same target for the file's other flows. `mm2s_of_other_flows`: what MM2
    makes there for them.
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

    @property
    def ours(self) -> tuple[str, ...]:
        """Those that Lockstep makes."""
        return self.ledger, self.audit, self.topics, self.groups

    @property
    def on_target(self) -> frozenset[str]:
        """Those that Lockstep makes on the target for any flow: no source has a say about them."""
        return frozenset((*self.ours, *self.of_other_flows))

    @property
    def mm2s_on_target(self) -> frozenset[str]:
        """MM2's internal topics on the target, of any flow of the file. No source has a say about them either.

        The offset-syncs count wherever they are: on the target their name is a name like any other.
        """
        return frozenset((self.heartbeats, self.checkpoints, self.offset_syncs, *self.mm2s_of_other_flows))


def internal_topics(policy: ReplicationPolicy, flow: Flow, location: str) -> InternalTopics:
    """`location`: MM2's `offset-syncs.topic.location`, `source` or `target`; all others are on the target.

    Where the policy has no separator of its own, our names have a dot. A policy names our topics itself with the
    methods `ledger_topic(source)`, `audit_topic(source)`, `topics_log_topic(source)` and `groups_log_topic(source)`,
    where it has them. The last two are those of `LogListener`.
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
    )


def own_topic(name: str, source: str, separator: str) -> str:
    """The name of a topic of Lockstep's, where the policy does not choose it."""
    return separator.join((name, source, "internal"))


def _own(policy: ReplicationPolicy, method: str, name: str, source: str, separator: str) -> str:
    chosen: Callable[[str], str] | None = getattr(policy, method, None)
    return chosen(source) if chosen else own_topic(name, source, separator)
