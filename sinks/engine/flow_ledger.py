"""A flow's ledger from pass to pass: when it is read, what of the flow is paused, and whether the flow has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from sinks.engine.deletion_checks import only_ours
from sinks.engine.flow_components import FlowComponents
from sinks.every_kind.listing import Listed
from sinks.every_kind.moved_copies import refuse_moved
from sinks.failover.journal import last_drill
from sinks.failover.lost_before_copying import kept_lost, unacknowledged
from sinks.failover.preflight import NEVER_READ, NOT_READ, FailoverStatus
from sinks.faults import ClusterUnreachable, LedgerUntrusted
from sinks.flow_settings import FlowSettings
from sinks.ledger.failover_record import FailoverRecord
from sinks.ledger.kept_divergences import Divergence, divergences
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Kind
from sinks.model.plan import Plan
from streaming.errors import LockstepError
from streaming.flow import Flow

ENDED = "the flow is {}, so Lockstep writes nothing for it any more. docs/failover.md says what to do next"


COPIED = (
    "MM2 copies {2} of {3} into {0}, the ledger of {1}. Lockstep cannot trust that ledger, so it writes nothing. "
    "Exclude the topic of the source for Lockstep and for MM2 (topics.exclude), then check who wrote the ledger"
)


def check_not_copied(settings: FlowSettings, listed: Listed, ledger: str) -> None:
    """Raises LedgerUntrusted if MM2 copies a topic of the source into a ledger without signatures. A signed ledger
    needs no check here: the flow stops at the first record of another writer."""
    if not settings.safety.ledger_secret and any(one.key == (ledger,) for one in listed.desired.refused):
        flow, rename = settings.flow, settings.policy.format_remote_topic
        copied = [topic for topic in sorted(listed.source) if rename(flow.source, topic) == ledger]
        raise LedgerUntrusted(COPIED.format(ledger, flow.name, " and ".join(copied), flow.source))


class FlowLedger:
    """The ledger of one flow, and what it said when it was last read. `ended`: why the flow has ended; None while
    Lockstep keeps it in step."""

    def __init__(self, flow: Flow, components: FlowComponents) -> None:
        self._flow, self._listener, self._leads_back = flow, components.overrides, components.leads_back
        self._guard, self._open, self._obeys = components.guard, components.open_ledger, components.obeys_failover
        self._wishes = components.wishes
        self._ledger: Ledger | None = None
        self._topic_id = ""
        self.paused: frozenset[Kind] = frozenset()
        self.ended: str | None = None
        self._drained: Mapping[str, Divergence] = {}
        self.failover = NEVER_READ

    def read(self, everything: bool) -> Ledger:
        """Returns the ledger, read again if `everything` is compared. `pause`, `apply` and a failover write to it, too.

        Checks the clusters' ids first. Raises as `ClusterGuard.check_only`. The source of a flow that has ended may be
        gone.
        """
        ledger = self._ledger
        if ledger is not None and not everything:
            return ledger
        with self._unknown_unless_read():
            if ledger is None:
                ledger = self._opened()
                ledger.check_same(self._topic_id)
            else:
                self._read_again(ledger)
        if self._listener is not None:
            self._listener(self._flow, ledger)
        self._ledger, self._topic_id, self.paused = ledger, ledger.topic_id, frozenset(ledger.paused())
        return ledger

    @contextmanager
    def _unknown_unless_read(self) -> Iterator[None]:
        """While the ledger cannot be read, the state of a failover is unknown, whatever the ledger said before."""
        self.failover = replace(self.failover, unknown=NOT_READ)
        try:
            yield
        except LockstepError as error:
            if self.failover.unknown is not None:
                self.failover = replace(self.failover, unknown=str(error))
            raise

    def read_anew(self) -> Ledger:
        """Read the whole ledger again. Only the topic's id is remembered. Raises as `read`."""
        if self._ledger is not None:
            # It may have been made by a write of this process, after it was read.
            self._topic_id, self._ledger = self._ledger.topic_id, None
        return self.read(everything=True)

    def _opened_now(self) -> Ledger:
        ledger = self._open()
        if not ledger.exists:
            # The guard may need the source to go on. A flow without a ledger drained no topics.
            self._wishes.note_drained(self._flow, ledger)
        return ledger

    def _opened(self) -> Ledger:
        try:
            ledger = self._guard.open(self._opened_now)
        except ClusterUnreachable as unreachable:
            if unreachable.both:
                raise
            ledger = self._guard.open_for_target(self._opened_now, to_write=False)
            self._note_failover(ledger)
            if not self.ended:
                raise
        self._note_failover(ledger)
        return ledger

    def _read_again(self, ledger: Ledger) -> None:
        """Read from the target first. The source of a flow that has ended may be gone, and must not be waited for."""
        self._guard.check_target_id()
        ledger.refresh()
        if not (self._obeys and ledger.failover().has_ended):
            try:
                self._guard.check_only(ledger)
            except ClusterUnreachable:
                self._note_failover(ledger)
                raise
        self._note_failover(ledger)

    def _note_failover(self, ledger: Ledger) -> None:
        self._note_end(ledger)
        record = self.failover.record
        self.failover = FailoverStatus(record, last_drill(ledger), lost=unacknowledged(kept_lost(ledger)))

    def _note_end(self, ledger: Ledger) -> None:
        # Also where the pass ends here, because the source is gone: other flows must spare the clients that moved.
        self._wishes.note_drained(self._flow, ledger)
        record: FailoverRecord = ledger.failover()
        self.ended = ENDED.format(record.describe()) if self._obeys and record.has_ended else None
        self.failover = replace(self.failover, record=record)

    def refuse_outdated(self, plan: Plan, ledger: Ledger) -> Plan:
        """Returns the part of the plan that may still be written. Called right before the first write.

        Another process may have ended the flow, drained topics, or released an item that the plan deletes. Raises
        ClusterUnreachable, RightsMissing, LedgerUntrusted.
        """
        if not plan.changes:
            return plan
        ledger.catch_up()
        self._note_end(ledger)
        if self.ended:
            return replace(plan, changes=())
        self._drained = divergences(ledger)
        if self._drained and not self._leads_back:
            plan = refuse_moved(plan, self._drained, in_batches=bool(self.failover.record.topics))
        return only_ours(plan, ledger)

    def goes_on(self, ledger: Ledger) -> bool:
        """Whether the flow has neither ended nor drained more topics since `refuse_outdated`.

        Called before each request, because a command may do either between two requests. Raises as `refuse_outdated`.
        """
        if self._obeys:
            ledger.catch_up()
            self._note_end(ledger)
        return self.ended is None and (not self._obeys or divergences(ledger) == self._drained)
