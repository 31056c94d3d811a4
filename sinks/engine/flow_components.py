"""The parts that a flow's passes work with, in one value. Tests and some commands build another one than the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Lock

from sinks.engine.apply import Writers
from sinks.engine.cluster_guard import ClusterGuard
from sinks.engine.report import Observer
from sinks.every_kind.controller import Controller
from sinks.every_kind.listing import TopicListing
from sinks.every_kind.wishes import Wishes
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.kafka.ports.cluster import Reader
from sinks.kafka.ports.watches import MetadataEpochs, MetadataSignal, NoSignal, no_epochs
from sinks.ledger.audit import Audit
from sinks.ledger.lease import Leadership, Unled
from sinks.ledger.ledger import Ledger
from streaming.flow import Flow

SeeLedger = Callable[[Flow, Ledger], None]
"""Gets the ledger of a flow each time a pass has read it. May raise what stops the flow."""


@dataclass(frozen=True)
class FlowComponents:
    """The parts that the passes of one flow work with."""

    topics: TopicListing
    """Lists topics of both clusters."""
    guard: ClusterGuard
    open_ledger: Callable[[], Ledger]
    audit: Audit
    controllers: Sequence[Controller]
    writers: Writers
    target: Reader
    """Reads topic ids."""
    signal: MetadataSignal = field(default_factory=NoSignal)
    source_epochs: MetadataEpochs = no_epochs
    """Reads the metadata epochs of the clients that take the second look."""
    observers: Sequence[Observer] = ()
    overrides: SeeLedger | None = None
    """Called with the ledger after each reading."""
    obeys_failover: bool = True
    """Whether passes write nothing for a flow that a failover ended. False only for commands that write on behalf of a
    failover."""
    leads_back: bool = False
    """The passes move groups on the source, and leave the copies alone."""
    source_ends: SourceEndOffsetStore | None = None
    """Writes to the ledger what a failover will need to know of the source. Only a job has it."""
    leadership: Leadership = field(default_factory=Unled)
    """Asked before each write."""
    full_turn: Lock = field(default_factory=Lock)
    """The lock that one flow of the job holds while it compares everything."""
    wishes: Wishes = field(default_factory=Wishes)
    """Publishes what the flows of this process want of the target."""
    reviewed: bool = False
    """A person reviews the plan."""
    opened: ExitStack = field(default_factory=ExitStack)
    """Both clusters, closed with the flow."""
