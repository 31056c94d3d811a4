"""How one kind stands after a pass, the same for a running job and for a command that only reads. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sinks.engine.model import Kind, Outcome
from sinks.engine.report import Report
from sinks.engine.status import KindStatus, Task
from sinks.flow_settings import FlowSettings
from sinks.kinds.kind_row import FlowSide
from streaming.number_of import number_of

NOT_COMPARED = "not compared yet"


def first_status(kind: Kind, settings: FlowSettings) -> KindStatus:
    """Before the first pass."""
    if settings.enabled.get(kind, False):
        return KindStatus(Task.UNKNOWN, NOT_COMPARED)
    return KindStatus(Task.DISABLED, settings.disabled_reasons.get(kind, "not enabled"))


def kind_status(kind: Kind, before: KindStatus, report: Report, now: datetime) -> KindStatus:
    """After a pass. Changes that nobody tried count as drift, as do failed and refused ones; that of a kind which is
    paused, or could not be compared, is not known."""
    if before.task is Task.DISABLED:
        return before
    if kind in report.trouble.unsupported:
        return KindStatus(Task.NOT_SUPPORTED, report.trouble.unsupported[kind])
    if kind in report.paused:
        return replace(before, task=Task.PAUSED, reason=report.ended or _paused(kind), drift=None, since=None)
    if kind in report.idle and kind not in report.trouble.faulted:
        # It waits for its interval: nothing new is known of it.
        if before.task is not Task.PAUSED:
            return before
        return replace(before, task=Task.UNKNOWN, reason=NOT_COMPARED, drift=None, since=now)
    refused = tuple(refusal for refusal in report.plan.refused if refusal.kind is kind)
    failed = [outcome for outcome in report.outcomes if outcome.change.kind is kind and outcome.error]
    tried = {outcome.change for outcome in report.outcomes}
    pending = {change.key for change in report.plan.changes if change.kind is kind and change not in tried}
    drifting = pending | {refusal.key for refusal in refused} | {outcome.change.key for outcome in failed}
    unobserved = [error.reason for error in report.plan.errors if error.kind is kind]
    fault = report.trouble.faulted.get(kind) or _denied(kind, failed)
    held = report.trouble.held.get(kind)
    reason = fault or held or next(iter(unobserved), None) or (refused[0].reason if refused else None)
    drift = len(drifting) if drifting or not (unobserved or kind in report.trouble.faulted) else None
    task = Task.FAULTED if fault else Task.HELD if held else Task.UNKNOWN if drift is None else Task.ACTIVE
    return KindStatus(
        task=task,
        reason=reason,
        drift=drift,
        since=_since(before, now) if task is Task.UNKNOWN else None,
        last_success=before.last_success if drifting or unobserved or fault else now,
        refused=refused,
    )


def _since(before: KindStatus, now: datetime) -> datetime | None:
    return before.since if before.task is Task.UNKNOWN else now


def _paused(kind: Kind) -> str:
    return f"paused: what differs is not known; `lockstep resume {kind}` starts it again"


def _denied(kind: Kind, failed: Collection[Outcome]) -> str | None:
    """The reason when every failure is a missing right: then it is no single item's trouble."""
    faults = [outcome.error for outcome in failed if outcome.error]
    if not faults or not all(fault.is_denied for fault in faults):
        return None
    rights = [right for right in kind.row.rights if right.side is FlowSide.TARGET and right.also is None]
    operations = ", ".join(dict.fromkeys(name for right in rights for name in right.operations))
    return f"no right to write {number_of(len(failed), 'change')} of the kind {kind} ({faults[0]}); grant {operations}"
