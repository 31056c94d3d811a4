"""What a failover command works on: the flow's two clusters, its journal, its choices, and how it waits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field

from sinks.every_kind.followed_log import EPOCHS_GROW_WITHIN_S, FollowedLog
from sinks.every_kind.listing import Listed
from sinks.failover.fence_notes import NO_OTHERS, OtherLedgers
from sinks.failover.fence_proof import Proof, Waiting
from sinks.failover.fenced_topics import check_names, fenced_topics
from sinks.failover.journal import Journal
from sinks.failover.uncopied_records import pairs_of, unlisted
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kafka.ports.watches import NoSignal
from sinks.kinds.desired_topics import is_replicated
from sinks.kinds.shared_listings import list_both
from sinks.kinds.topics.controller import orphaned
from sinks.ledger.failover_record import Step
from sinks.ledger.kept_divergences import divergences
from sinks.ledger.kept_end_offsets import absent_topics, kept_end_offsets
from sinks.model.changes import Kind
from streaming.errors import LockstepError
from streaming.message_words import first_names
from streaming.mm2.records import TopicPartition

POLL_INTERVAL_S = 0.5
"""Seconds between two looks at what a command waits for."""

LINE_INTERVAL = 10.0
"""Seconds between two lines of one wait."""


@dataclass
class WaitLines:
    """Prints progress during one wait, which begins at construction. `clock`: monotonic. `within`: time limit (s)."""

    say: Callable[[str], None]
    clock: Callable[[], float]
    within: float
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self._said = self.clock()

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self.clock() > self.began + self.within

    @property
    def is_due(self) -> bool:
        """Whether `go_on` would print a line."""
        return self.clock() - self._said >= LINE_INTERVAL

    def go_on(self, what: str) -> None:
        """Prints what the command waits for, at most once in LINE_INTERVAL."""
        now = self.clock()
        if self.is_due:
            self._said = now
            self.say(f"waiting for {what}: {now - self.began:.0f} s, at most {self.within:g} s")


Compare = Callable[[Collection[str], Mapping[TopicPartition, int]], None]
"""Compares the records of these source topics with their copies, and raises if they differ. Reads each of the given
target partitions up to the given offset only, because moved clients may have written behind it."""


@dataclass
class CopyCheck:
    """Compares the records of each topic once in a command. `compared`: topics that were compared already."""

    compare: Compare
    compared: set[str] = field(default_factory=set)

    def run(self, topics: Collection[str], ends: Mapping[TopicPartition, int]) -> bool:
        """Compares the topics that were not compared yet, and returns whether there were any. `ends`: as in `Compare`.
        Raises what `compare` raises."""
        left = set(topics) - self.compared
        if left:
            self.compare(left, ends)
            self.compared |= left
        return bool(left)


@contextmanager
def both_readers(
    settings: FlowSettings, source: ClusterPorts, target: ClusterPorts
) -> Iterator[tuple[RecordReader, RecordReader]]:
    """Yields a reader of the source with MM2's isolation level, and a reader of the target's committed records.

    Records of an uncommitted MM2 transaction do not count as copies, because an abort discards them.
    """
    with (
        closing(source.records(settings.isolation)) as here,
        closing(target.records("read_committed")) as there,
    ):
        yield here, there


def copies_of(settings: FlowSettings, target: Mapping[str, int]) -> dict[str, tuple[str, int]]:
    """Returns each copy's name and partition count, by source topic. `target`: partition counts of its topics.

    If the replication policy keeps names, these are all topics of the target that the flow would replicate.
    """
    alias, policy, found = settings.flow.source, settings.policy, dict[str, tuple[str, int]]()
    for name, partitions in target.items():
        topic = policy.upstream_topic(name)
        if topic is None or policy.is_mm2_internal_topic(name) or policy.format_remote_topic(alias, topic) != name:
            continue
        if policy.topic_source(name) in (None, alias) and is_replicated(settings, topic):
            found[topic] = name, partitions
    written = fenced_topics(settings, {topic: name for topic, (name, _) in found.items()})
    return {topic: found[topic] for topic in written}


@dataclass(frozen=True)
class Choices:
    """The operator's options for a command."""

    proof: Proof = field(default_factory=Proof)
    """How long the ends must stand still to prove the fence."""
    drain_within: float = 300.0
    """Seconds within which all records must be on the target."""
    accepted: frozenset[str] = frozenset()
    """Source topics named with --accept, which may lack records on the target."""
    abort_transactions: bool = False
    """Whether to abort open transactions behind the fence."""


@dataclass(frozen=True)
class Scene:
    """A flow's two clusters, and what a failover command needs besides."""

    settings: FlowSettings
    source: ClusterPorts
    target: ClusterPorts
    journal: Journal
    choices: Choices = field(default_factory=Choices)
    waiting: Waiting = field(default_factory=Waiting)
    say: Callable[[str], None] = lambda line: None
    """Prints a line for the operator."""
    last_offsets: Callable[[Collection[str]], str] = lambda copies: ""
    """Writes the groups' last offsets, checks those on these copies, and returns the outcome in a line."""
    does: Callable[[Scene], Mapping[Step, Callable[[], None]]] = lambda scene: {}
    """Returns the function that does each step."""
    source_answers: bool = True
    other_ledgers: Callable[[], AbstractContextManager[OtherLedgers]] = lambda: nullcontext(NO_OTHERS)
    """Opens the ledgers of the other flows from the same source."""
    verify: CopyCheck | None = None
    """Compares the records of both sides. None without `--verify`."""

    def steps(self) -> Mapping[Step, Callable[[], None]]:
        return self.does(self)

    def listed(self) -> Listed:
        """Lists the topics of both clusters now."""
        return list_both(self.settings, self.source.cluster, self.target.cluster)

    def hidden(self, listed: Listed) -> list[str]:
        """Returns topics that the source does not list and does not report as deleted, although the target has their
        copies, or a job saw them. This principal may lack DESCRIBE, or the broker is cut off from the controller.

        Raises LockstepError for an unreadable entry.
        """
        ledger = self.journal.ledger
        orphans = orphaned(self.settings, listed, ledger.owned(Kind.TOPIC), kept_end_offsets(ledger).keys())
        orphans -= absent_topics(ledger)
        if not orphans:
            return []
        log = FollowedLog(NoSignal(), self.source.epochs, EPOCHS_GROW_WITHIN_S)
        since, absent = log.latest(), self.source.cluster.confirmed_absent(orphans)
        return sorted(orphans if absent and log.is_behind(since) else orphans - absent)

    def readers(self) -> AbstractContextManager[tuple[RecordReader, RecordReader]]:
        return both_readers(self.settings, self.source, self.target)

    def wait_until(self, condition: Callable[[], bool], within: float, what: str, advice: str) -> None:
        """Waits until the condition holds. Raises LockstepError after `within` seconds, naming `what` it waited for."""
        lines = WaitLines(self.say, self.waiting.clock, within)
        while not condition():
            if lines.is_over:
                raise LockstepError(f"gave up after {within:g} s of waiting for {what}{advice}")
            lines.go_on(what)
            self.waiting.sleep(POLL_INTERVAL_S)

    def topics(self, listed: Listed) -> list[str]:
        """Returns the source topics of this failover: the fenced ones, or all that producers write."""
        fenced = self.fenced(listed)
        if not (recorded := self.journal.record.topics):
            return fenced
        # A drained topic may be gone on the source, and out of the file.
        settled = divergences(self.journal.ledger).keys() | self.choices.accepted
        if left := sorted(set(recorded) - set(fenced) - settled):
            raise LockstepError(
                f"{first_names(left)}: fenced, not drained, and {self.settings.flow.name} does not replicate it any "
                "more. See that the source has it and that the file names it, leave it behind with --accept, or go "
                "back with `lockstep unfence`"
            )
        return sorted(set(recorded) & set(fenced))

    def fenced(self, listed: Listed, wanted: Collection[str] = ()) -> list[str]:
        """Returns the source topics that a fence covers, or only the `wanted` among them.

        Raises LockstepError for a wanted topic that a fence does not cover, and if topics share a name on the target.
        """
        check_names(self.settings, listed.desired.shared)
        found = fenced_topics(self.settings, listed.desired.remote)
        if unknown := sorted(set(wanted) - set(found)):
            flow = self.settings.flow
            raise LockstepError(
                f"{', '.join(unknown)} cannot be fenced. {flow.name} does not replicate such a topic, or MM2 copied it "
                f"to {flow.source}. `lockstep topics` lists all replicated topics"
            )
        return sorted(wanted) if wanted else found

    def pairs(self, listed: Listed) -> dict[TopicPartition, TopicPartition]:
        """Returns the partitions of `topics` with their copies. Raises LockstepError for a topic without partitions."""
        topics = self.topics(listed)
        if missing := sorted(where.topic for where in unlisted(listed.source, topics)):
            raise LockstepError(
                f"{self.settings.flow.source} lists no partition of {first_names(missing)}, so what was copied is "
                "unknown. See that its brokers answer for these topics, and run the command again"
            )
        return pairs_of(listed.desired.remote, listed.source, topics)
