"""What the commands of a failover work on: a flow's two clusters, its journal, and what was chosen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from sinks.engine.ledger import Ledger
from sinks.failover.arrival import pairs_of, unlisted
from sinks.failover.copy_check import CopyCheck
from sinks.failover.fence_rules import fenced_topics, shown
from sinks.failover.fencing import Proof, Waiting
from sinks.failover.journal import Journal
from sinks.failover.states import Step
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kinds.listing import Listed, list_both
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True)
class Choices:
    """What a command chose. `proof`: of the fence. `drain_within`: seconds until all records must be on the target.
    `accepted`: topics of which records may be missing there."""

    proof: Proof = field(default_factory=Proof)
    drain_within: float = 300.0
    accepted: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Scene:
    """A flow's two clusters and its failover. `aliases`: of all clusters in the file. `say`: told what goes on.

    `last_offsets`: writes the groups' last offsets, and returns in a line what came of it. `does`: what each step does.
    `source_answers`: False where it is gone. `other_ledgers`: opens those of the other flows from the same source.
    `verify`: compares the records of both sides; None: nobody asked for it.
    """

    settings: FlowSettings
    source: ClusterPorts
    target: ClusterPorts
    journal: Journal
    aliases: Collection[str]
    choices: Choices = field(default_factory=Choices)
    waiting: Waiting = field(default_factory=Waiting)
    say: Callable[[str], None] = lambda line: None
    last_offsets: Callable[[], str] = lambda: ""
    does: Callable[[Scene], Mapping[Step, Callable[[], None]]] = lambda scene: {}
    source_answers: bool = True
    other_ledgers: Callable[[], AbstractContextManager[Sequence[Ledger]]] = lambda: nullcontext(())
    verify: CopyCheck | None = None

    def steps(self) -> Mapping[Step, Callable[[], None]]:
        """What each step does."""
        return self.does(self)

    def listed(self) -> Listed:
        """The topics of both clusters now."""
        return list_both(self.settings, self.source.cluster, self.target.cluster)

    def topics(self, listed: Listed) -> list[str]:
        """Those that the failover is about: the fenced ones, or all that producers write."""
        wanted = self.journal.record.topics
        return fenced_topics(self.settings, listed.desired.remote, self.aliases, wanted)

    def pairs(self, listed: Listed) -> dict[TopicPartition, TopicPartition]:
        """Their partitions with the copies. Raises LockstepError where a topic has none that are listed."""
        topics = self.topics(listed)
        if missing := sorted(where.topic for where in unlisted(listed.source, topics)):
            raise LockstepError(
                f"{self.settings.flow.source} lists no partition of {shown(missing)}, so that nobody can tell what was "
                "copied: see that its brokers answer for these topics, and run the command again"
            )
        return pairs_of(listed.desired.remote, listed.source, topics)
