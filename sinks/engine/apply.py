"""Applying a plan: in its order, in few requests, an outcome for every change whatever happens to its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol

from sinks.engine.model import Change, Kind, Outcome
from sinks.engine.plan import Plan
from sinks.faults import ClusterUnreachable, ItemFault

CHANGES_IN_A_REQUEST = 500
"""Changes in one write request."""


class Writer(Protocol):
    """Writes changes of one kind to the target."""

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """One outcome for each change. Raises ClusterUnreachable, and what stops the flow."""


Writers = Mapping[Kind, Writer]


def apply_steps(plan: Plan, writers: Writers) -> Iterator[list[Outcome]]:
    """The outcomes step by step, so that what is done can be remembered even if a later step raises.

    A target that stops answering makes the rest fail with a retriable fault, and is asked no more. Raises
    IncrementalUnsupported where `use.incremental.alter.configs=required`, RightsMissing for a request that is denied.
    """
    silent: ItemFault | None = None
    for kind, changes in _steps(plan):
        if silent is None:
            try:
                yield writers[kind].write(changes)
                continue
            except ClusterUnreachable as error:
                silent = ItemFault("UNREACHABLE", str(error), retriable=True)
        yield [Outcome(change, silent) for change in changes]


def _steps(plan: Plan) -> Iterator[tuple[Kind, Sequence[Change]]]:
    for (kind, _), group in groupby(plan.changes, key=_step):
        changes = list(group)
        for start in range(0, len(changes), CHANGES_IN_A_REQUEST):
            yield kind, changes[start : start + CHANGES_IN_A_REQUEST]


def _step(change: Change) -> tuple[Kind, int]:
    # Config changes of a topic go out together, whatever their operation: each topic is all or nothing.
    return change.kind, 0 if change.kind.row.together else change.order[0]
