"""Reads and writes overrides in each flow's ledger on its target."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import BoundedSemaphore

from app.settings import Settings
from app.wiring import audit, both_clusters, ledger_on_target
from sinks.background import awaited, begun
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.ledger.audit import SettingChange
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.overrides import InLedger
from sinks.model.changes import Key
from streaming.errors import LockstepError, prefixed
from streaming.flow import Flow

log = logging.getLogger(__name__)

LEDGERS_AT_ONCE = 8
"""Ledgers that are read side by side, because a cluster that does not answer takes its time."""


class Unreadable(LockstepError):
    """Why the overrides of a flow are unknown."""


def read_overrides(settings: Settings) -> dict[Flow, InLedger | Unreadable]:
    """Returns the overrides in each flow's ledger, or why they are unknown."""
    turns = BoundedSemaphore(LEDGERS_AT_ONCE)

    def read(flow: FlowSettings) -> InLedger | Unreadable:
        with turns:
            return _read(settings, flow)

    # In no pool, whose threads Ctrl-C would wait for.
    found = {one.flow: begun(partial(read, one), f"ledger {one.flow.name}") for one in settings.flows}
    return {flow: awaited(stored) for flow, stored in found.items()}


def _read(settings: Settings, flow: FlowSettings) -> InLedger | Unreadable:
    try:
        with both_clusters(settings, flow) as clusters:
            # Most callers need the source next. Two silent clusters then cost the time of one.
            asked = begun(clusters.source.cluster_id, f"cluster id {clusters.source.alias}")
            try:
                return ledger_on_target(flow, clusters, to_write=False).values(Entry.OVERRIDE)
            except ClusterUnreachable:
                # The next request to the source fails at once, and its caller reports that.
                asked.exception()
                raise
    except LockstepError as error:
        unreadable = Unreadable(f"{flow.flow.name}: its ledger cannot be read: {error}")
        unreadable.__cause__ = error
        return unreadable


class OpenLedgers:
    """The open ledgers of some flows, for writing."""

    def __init__(self, settings: Settings, flows: Sequence[FlowSettings], stack: ExitStack) -> None:
        self._targets: dict[Flow, tuple[FlowSettings, KafkaCluster]] = {}
        self._ledgers: dict[Flow, Ledger] = {}
        for flow in flows:
            try:
                clusters = stack.enter_context(both_clusters(settings, flow))
                self._ledgers[flow.flow] = ledger_on_target(flow, clusters)
            except LockstepError as error:
                raise LockstepError(f"nothing was written: {prefixed(flow.flow.name, error)}") from error
            self._targets[flow.flow] = flow, clusters.target

    def write(self, flow: Flow, entries: Mapping[Key, str | None], changes: Sequence[SettingChange] = ()) -> None:
        """Writes these overrides; None deletes one. Raises LockstepError. Only logs a failed audit event."""
        self._ledgers[flow].put({(Entry.OVERRIDE, key): text for key, text in entries.items()})
        settings, target = self._targets[flow]
        try:
            audit(settings, target).record_settings(flow, changes)
        except LockstepError as error:
            log.warning("%s: written, but not audited: %s", flow.name, error)


@contextmanager
def open_ledgers(settings: Settings, flows: Sequence[FlowSettings]) -> Iterator[OpenLedgers]:
    """Opens the ledgers. Raises LockstepError if one of them cannot be read, so that nothing is written anywhere."""
    with ExitStack() as stack:
        yield OpenLedgers(settings, flows, stack)


def each(flows: Sequence[FlowSettings], write: Callable[[FlowSettings], None]) -> tuple[list[str], list[str]]:
    """Calls `write` for each flow, even after a failure. Returns the written flows, and why others failed."""
    done, failed = [], []
    for flow in flows:
        try:
            write(flow)
        except LockstepError as error:
            failed.append(prefixed(flow.flow.name, error))
        else:
            done.append(flow.flow.name)
    return done, failed
