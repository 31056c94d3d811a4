"""What a flow's passes are made of: one value, so that tests and commands make another than the job does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from sinks.engine.apply import Writers
from sinks.engine.audit import Audit
from sinks.engine.claims import Claims
from sinks.engine.full_comparisons import FullTurns
from sinks.engine.guard import Guard
from sinks.engine.leadership import Leadership, Unled
from sinks.engine.ledger import Ledger
from sinks.engine.recorder import TopicIds
from sinks.engine.report import Observer
from sinks.failover.position_memory import Positions
from sinks.kafka.ports.watches import MetadataEpochs, MetadataSignal, NoSignal, no_epochs
from sinks.kinds.controller import Controller, PassContext
from sinks.kinds.listing import Freshness, Listed


@dataclass(frozen=True)
class FlowComponents:
    """What a flow's passes are made of. `list_topics`: both clusters' topics, as fresh as is told. `topic_ids`:
    of topics on the target, by name. `on_ledger`: called whenever the ledger was read; may raise what stops the flow.
    `obeys_failover`: nothing is written for a flow that a failover ended. `keep`: keeps in the ledger what a failover
    will want to know; `note_counted`: called with how far partitions were copied, from any thread. `leadership`: asked
    before anything is written. `turns`: of the job's full comparisons. `claims`: what the flows of this process want
    of the target. `source_epochs`: of the source's clients that look items up.
    `reviewed`: a person sees the plan before it is applied. `close`: lets go of the clusters.
    """

    list_topics: Callable[[Freshness], Listed]
    guard: Guard
    open_ledger: Callable[[], Ledger]
    audit: Audit
    controllers: Sequence[Controller]
    writers: Writers
    topic_ids: TopicIds = lambda topics: {}
    signal: MetadataSignal = field(default_factory=NoSignal)
    source_epochs: MetadataEpochs = no_epochs
    observers: Sequence[Observer] = ()
    on_ledger: Callable[[Ledger], None] = lambda ledger: None
    obeys_failover: bool = True
    keep: Callable[[PassContext], None] = lambda context: None
    note_counted: Callable[[Positions], None] = lambda positions: None
    leadership: Leadership = field(default_factory=Unled)
    turns: FullTurns = field(default_factory=FullTurns)
    claims: Claims = field(default_factory=Claims)
    reviewed: bool = False
    close: Callable[[], None] = lambda: None


def close_all(components: FlowComponents, *, replaced: bool) -> None:
    """Lets go of every client, whatever one of them raises. `replaced`: another goes on with the flow."""
    with ExitStack() as stack:
        stack.callback(components.close)
        # After all that may still write.
        stack.callback(components.leadership.close)
        for observer in components.observers:
            stack.callback(observer.close, replaced=replaced)
        for controller in components.controllers:
            stack.callback(controller.close)
        stack.callback(components.signal.close)
        stack.callback(components.audit.close)
