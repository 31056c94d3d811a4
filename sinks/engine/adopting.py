"""Runs `lockstep adopt`: finds items that are equal on source and target, and writes to the ledger that Lockstep owns
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sinks.engine.cluster_guard import ClusterGuard
from sinks.engine.flow_ledger import ENDED
from sinks.engine.reconcile import FlowReconcile
from sinks.ledger.adoption import AdoptionPlan, Alike, plan_adoption
from sinks.ledger.audit import Audit
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.ownership import Entries
from sinks.model.changes import Key, Kind
from sinks.model.plan import Unobserved
from streaming.errors import LockstepError


@dataclass(frozen=True)
class Adoptable:
    """The items of one kind that `lockstep adopt` could take over. `errors`: items that Lockstep could not read.
    `paused`: the kind is paused, so nothing was compared."""

    plan: AdoptionPlan
    ledger: Ledger
    errors: Sequence[Unobserved] = ()
    paused: bool = False


def adoptable(reconcile: FlowReconcile, kind: Kind) -> Adoptable:
    """Compare everything once, and return what `adopt` may take over of this kind. Writes nothing.

    Raises every error that stops the flow. Raises LockstepError if the kind could not be compared, or if the flow has
    ended.
    """
    compared = reconcile.compare(everything=True)
    ledger, trouble = compared.context.ledger, reconcile.report_only(compared).trouble
    if ledger.failover().has_ended:
        raise LockstepError(ENDED.format(ledger.failover().describe()))
    for reason in (*trouble.faulted.values(), *trouble.unsupported.values()):
        raise LockstepError(f"{kind}: {reason}")
    paused = kind in ledger.paused()
    found = [] if paused else [one for one in compared.comparisons if kind in one[0].kinds]
    alike = found[0][0].alike(compared.context, found[0][1]) if found else Alike()
    owned: dict[Key, str] = {key[1:]: value for key, value in ledger.values(Entry.OWNED).items() if key[0] == kind}
    plan = plan_adoption(reconcile.settings.flow, kind, alike, owned)
    return Adoptable(plan, ledger, [error for error in compared.plan.errors if error.kind is kind], paused)


def take_over(plan: AdoptionPlan, ledger: Ledger, guard: ClusterGuard, audit: Audit) -> None:
    """Write the ownership to the ledger, then the audit event. Does nothing if there is nothing to adopt.

    Raises the error of a failed write, WrongCluster, NotLeading. If only the audit event fails, the error says that the
    items are adopted.
    """
    if not plan.items:
        return
    guard.check(ledger)
    entries: Entries = {(Entry.OWNED, (plan.kind.value, *key)): found for key, found in plan.items.items()}
    # An intent of an item is settled now.
    unsettled = ledger.unsettled(plan.kind) & plan.items.keys()
    ledger.put(entries | {(Entry.INTENT, (plan.kind.value, *key)): None for key in unsettled})
    try:
        audit.record_adoption(plan)
    except LockstepError as error:
        raise LockstepError(
            f"{len(plan.items)} of {plan.kind} were adopted, but the audit event could not be written: {error}"
        ) from error
