"""Leading a flow for as long as a command takes, where no whole pass is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from app.flow_lease import lease
from app.passes import HANDED_OVER_WITHIN
from app.settings import Settings
from app.wiring import FlowClusters, both_clusters, guard, ledger
from sinks.engine.leadership import Leadership
from sinks.engine.ledger import Ledger
from sinks.flow_settings import FlowSettings


@dataclass(frozen=True)
class LedFlow:
    """What a command has while it leads a flow. `ledger`: read once it led, and written only while it does.

    `leadership`: `check` is to be called right before each write to the target, and raises NotLeading and
    ClusterUnreachable; `ClusterPorts.written_with(leadership.check)` does so. `single_pass` takes it as `writes`.
    """

    clusters: FlowClusters
    ledger: Ledger
    leadership: Leadership


@contextmanager
def lead(settings: Settings, flow: FlowSettings, command: str) -> Iterator[LedFlow]:
    """No other process writes this flow meanwhile: a job that runs hands over between two passes, and goes on after.

    The source may be away. `command`: its name, for the others to read. Raises NotLeading where nobody hands over
    within HANDED_OVER_WITHIN; WrongCluster, LedgerUntrusted, ClusterUnreachable.
    """
    with ExitStack() as stack:
        clusters = stack.enter_context(both_clusters(settings, flow))
        leadership = lease(settings, flow, command, patience=HANDED_OVER_WITHIN)
        stack.callback(leadership.close)
        opened = guard(flow, clusters.source, clusters.target).open_for_target(
            partial(ledger, flow, clusters.target, to_write=True, permit=leadership.check), to_write=False
        )
        stack.enter_context(leadership.hold())
        leadership.claim(opened)
        opened.refresh()
        yield LedFlow(clusters, opened, leadership)
