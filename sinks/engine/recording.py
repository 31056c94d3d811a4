"""Records what was applied in the ledger and in the audit topic: trouble with one does not keep it from the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sinks.engine.audit import Audit
from sinks.engine.ledger import Ledger
from sinks.engine.model import Outcome
from sinks.engine.plan import Plan, Refusal
from streaming.errors import LockstepError


def record_both(
    ledger: Ledger,
    audit: Audit,
    plan: Plan,
    outcomes: Sequence[Outcome],
    *,
    events: Iterable[Outcome],
    refused: Iterable[Refusal],
    ids: Mapping[str, str] | None = None,
) -> None:
    """`events`: those of the outcomes that are audited; `ids`: of the topics created, by name.

    Raises the first trouble once both were tried. What the ledger could not take stays an intent there, and what the
    audit could not take waits in its queue.
    """
    trouble: list[LockstepError] = []
    try:
        ledger.record(outcomes, ids)
    except LockstepError as error:
        trouble.append(error)
    try:
        audit.record(plan, events, refused)
    except LockstepError as error:
        trouble.append(error)
    if trouble:
        raise trouble[0]
