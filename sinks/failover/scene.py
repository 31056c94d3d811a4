"""What the commands of a failover work on: a flow's two clusters, its journal, what was chosen, how it is waited."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field

from sinks.failover.arrival import pairs_of, unlisted
from sinks.failover.fence_notes import NO_OTHERS, OtherLedgers
from sinks.failover.fence_proof import Proof, Waiting
from sinks.failover.journal import Journal
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.shared_listings import list_both
from sinks.ledger.failover_states import Step
from sinks.ledger.fence_rules import check_names, fenced_topics, shown
from sinks.protocol.listing import Listed
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

LINE_INTERVAL = 10.0
"""Seconds between two lines of one wait."""


@dataclass
class WaitLines:
    """Of one wait, which begins when this is made. `clock`: seconds that only go on; `within`: how long it may take."""

    say: Callable[[str], None]
    clock: Callable[[], float]
    within: float
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self._said = self.clock()

    @property
    def is_over(self) -> bool:
        """Whether it has taken too long."""
        return self.clock() > self.began + self.within

    @property
    def is_due(self) -> bool:
        """Whether `go_on` would say something."""
        return self.clock() - self._said >= LINE_INTERVAL

    def go_on(self, what: str) -> None:
        """Says what it waits for, unless it has just done so."""
        now = self.clock()
        if self.is_due:
            self._said = now
            self.say(f"waiting for {what}: {now - self.began:.0f} s, at most {self.within:g} s")


Compare = Callable[[Collection[str], Mapping[TopicPartition, int]], None]
"""Compares the records of these topics of the source; raises where they differ. Partitions of the target end at the
offsets that are given: what clients have written behind them is no copy."""


@dataclass
class CopyCheck:
    """Of one command. `compared`: topics of which nothing need be compared any more."""

    compare: Compare
    compared: set[str] = field(default_factory=set)

    def run(self, topics: Collection[str], ends: Mapping[TopicPartition, int]) -> bool:
        """Whether there was something to compare. Raises what `compare` raises."""
        left = set(topics) - self.compared
        if left:
            self.compare(left, ends)
            self.compared |= left
        return bool(left)


@contextmanager
def both_readers(
    settings: FlowSettings, source: ClusterPorts, target: ClusterPorts
) -> Iterator[tuple[RecordReader, RecordReader]]:
    """Of the source, as MM2 reads it, and of the target, as its consumers should: with committed records alone.

    What MM2 copied in a transaction that it did not commit is no copy: an abort takes it back.
    """
    with (
        closing(source.records(settings.isolation)) as here,
        closing(target.records("read_committed")) as there,
    ):
        yield here, there


@dataclass(frozen=True)
class Choices:
    """What a command chose. `proof`: of the fence. `drain_within`: seconds until all records must be on the target.
    `accepted`: topics of which records may be missing there. `abort_transactions`: those that are open behind the fence
    are ended."""

    proof: Proof = field(default_factory=Proof)
    drain_within: float = 300.0
    accepted: frozenset[str] = frozenset()
    abort_transactions: bool = False


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
    other_ledgers: Callable[[], AbstractContextManager[OtherLedgers]] = lambda: nullcontext(NO_OTHERS)
    verify: CopyCheck | None = None

    def steps(self) -> Mapping[Step, Callable[[], None]]:
        """What each step does."""
        return self.does(self)

    def listed(self) -> Listed:
        """The topics of both clusters now."""
        return list_both(self.settings, self.source.cluster, self.target.cluster)

    def readers(self) -> AbstractContextManager[tuple[RecordReader, RecordReader]]:
        """As `both_readers`."""
        return both_readers(self.settings, self.source, self.target)

    def topics(self, listed: Listed) -> list[str]:
        """Those that the failover is about: the fenced ones, or all that producers write."""
        wanted = self.journal.record.topics
        return self.fenced(listed, wanted)

    def fenced(self, listed: Listed, wanted: Collection[str] = ()) -> list[str]:
        """Those that a fence is for, or of these the `wanted`. Raises LockstepError for one that is not among them, and
        where topics share a name on the target."""
        check_names(self.settings, listed.desired.shared, self.aliases)
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
