"""Applies a plan in its order, with few requests. Each change has its own outcome, even if others fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from sinks.engine.kind_trouble import stops_flow, stops_flow_at_the_end
from sinks.every_kind.controller import Writer
from sinks.faults import CoordinatorUnavailable, ItemFault, JavaGone, NoAnswer
from sinks.model.changes import Change, Kind, Outcome
from sinks.model.plan import Plan
from streaming.errors import LockstepError

T = TypeVar("T")

CHANGES_IN_A_REQUEST = 500
"""Changes in one write request, of a kind whose row says nothing else."""


Writers = Mapping[Kind, Writer]


@dataclass(frozen=True)
class AppliedStep:
    """What became of one request. `stopped`: why the kind is not written any more in this pass."""

    kind: Kind
    outcomes: Sequence[Outcome]
    stopped: LockstepError | None = None


def apply_steps(
    plan: Plan,
    writers: Writers,
    goes_on: Callable[[], bool] = lambda: True,
    sends: Callable[[Sequence[Change]], object] = lambda changes: None,
) -> Iterator[AppliedStep]:
    """Request by request, so that what is done can be recorded whatever comes later.

    `goes_on`: asked right before each request; once it says no, nothing more is written and the rest has no outcome.
    `sends`: called with the changes of each request that is sent, whatever becomes of it. A target that stops answering
    makes the rest fail with a retriable fault, and is asked no more. The outcome of the request that was sent is
    unknown; the rest was never sent. What concerns a kind alone makes the rest of that kind fail. Raises what stops
    the flow (`kind_trouble.stops_flow`); after the last request, what stops it at the end.
    """
    silent: ItemFault | None = None
    stopped: dict[Kind, ItemFault] = {}
    raised_at_the_end: LockstepError | None = None
    for kind, changes in _requests(plan):
        fault = silent or stopped.get(kind)
        if fault is not None:
            yield AppliedStep(kind, [Outcome(change, fault) for change in changes])
            continue
        sent = False
        try:
            if not goes_on():
                return
            sent = True
            sends(changes)
            yield AppliedStep(kind, [_naming_right(outcome) for outcome in writers[kind].write(changes)])
        except LockstepError as error:
            silences = isinstance(error, NoAnswer) and not isinstance(error, CoordinatorUnavailable)
            if not silences and stops_flow(error):
                raise
            if stops_flow_at_the_end(error):
                raised_at_the_end = error
            passing = isinstance(error, NoAnswer)
            named = not silences or isinstance(error, JavaGone)
            fault = ItemFault(type(error).__name__ if named else "UNREACHABLE", str(error), retriable=passing)
            silent, stopped[kind] = fault if silences else None, fault
            here = replace(fault, unknown=sent and passing)
            yield AppliedStep(kind, [Outcome(change, here) for change in changes], None if silences else error)
    if raised_at_the_end is not None:
        raise raised_at_the_end


def _naming_right(outcome: Outcome) -> Outcome:
    """Where a right is missing: which one, on what."""
    change, fault = outcome.change, outcome.error
    if fault is None or not fault.is_denied:
        return outcome
    named = dict(zip(change.kind.row.key_fields, change.key, strict=True))
    denied = fault.code.removesuffix("_AUTHORIZATION_FAILED")
    resource = (denied, named[denied.lower()]) if denied.lower() in named else ("CLUSTER", "kafka-cluster")
    return replace(outcome, error=fault.needing(change.kind.row.written_with[change.op], *resource))


def _requests(plan: Plan) -> Iterator[tuple[Kind, Sequence[Change]]]:
    for (kind, _), group in groupby(plan.changes, key=_together):
        for part in chunks(list(group), kind.row.in_a_request or CHANGES_IN_A_REQUEST):
            yield kind, part


def _together(change: Change) -> tuple[Kind, int]:
    # Config changes of a topic go out together, whatever their operation: each topic is all or nothing.
    return change.kind, 0 if change.kind.row.together else change.order[0]


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in order, at most `size` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
