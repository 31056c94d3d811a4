"""What a flow's passes are made of: one value, so that tests and commands make another than the job does."""

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
    """What the passes of one flow are made of.

    `topics`: lists topics of both clusters. `target`: reads topic ids. `overrides`: called with the ledger after each
    reading. `source_ends`: writes to the ledger what a failover will need to know of the source; only a job has it.
    `obeys_failover`: False for a command that writes on behalf of a failover; others write nothing for a flow that a
    failover ended. `leads_back`: groups are moved on the source, and the copies are left alone.
    `leadership`: asked before each write. `full_turn`: the lock that one flow of the job holds while it compares
    everything. `wishes`: what the flows of this process want of the target. `reviewed`: a person reviews the plan.
    `opened`: both clusters, closed with the flow. `source_epochs`: metadata epochs of the clients that take the second
    look.
    """

    topics: TopicListing
    guard: ClusterGuard
    open_ledger: Callable[[], Ledger]
    audit: Audit
    controllers: Sequence[Controller]
    writers: Writers
    target: Reader
    signal: MetadataSignal = field(default_factory=NoSignal)
    source_epochs: MetadataEpochs = no_epochs
    observers: Sequence[Observer] = ()
    overrides: SeeLedger | None = None
    obeys_failover: bool = True
    leads_back: bool = False
    source_ends: SourceEndOffsetStore | None = None
    leadership: Leadership = field(default_factory=Unled)
    full_turn: Lock = field(default_factory=Lock)
    wishes: Wishes = field(default_factory=Wishes)
    reviewed: bool = False
    opened: ExitStack = field(default_factory=ExitStack)
