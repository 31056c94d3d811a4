"""What comparisons of the kinds say of a failover: from a pass of a command, or from what a job knows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sinks.engine.report import Report
from sinks.engine.status import FlowStatus, Task
from sinks.kinds.offsets.verdicts import Verdict
from sinks.model.changes import Kind
from sinks.protocol.controller import GroupSummary

TASKS_LEFT_OUT = (Task.DISABLED, Task.NOT_SUPPORTED)
"""Of kinds that nobody asked for, or no cluster knows."""


@dataclass(frozen=True)
class InStep:
    """`drift`: differences, `refused`: those of them that are, `faulted`: why nobody knows or mends them; by kind.

    `verdicts`: partitions of groups; `read_twice`: the most records that a group reads twice in one of them.
    """

    drift: Mapping[Kind, int] = field(default_factory=dict)
    refused: Mapping[Kind, int] = field(default_factory=dict)
    faulted: Mapping[Kind, str] = field(default_factory=dict)
    verdicts: Mapping[Verdict, int] = field(default_factory=dict)
    read_twice: int = 0


def in_step_of_pass(report: Report, kinds: Collection[Kind], groups: GroupSummary) -> InStep:
    """After a pass that compared these kinds and wrote nothing. A kind that is not enabled counts where something of it
    is held or failed."""
    kinds = [*kinds, *(kind for kind in Kind if kind not in kinds and report.trouble.stops(kind))]
    changed = Counter(change.kind for change in report.plan.changes if not change.kind.row.content)
    refused = Counter(refusal.kind for refusal in report.plan.refused)
    paused = {kind: f"paused; `lockstep resume {kind}` starts it again" for kind in report.paused if kind in kinds}
    unseen = {error.kind: error.reason for error in reversed(report.plan.errors) if error.kind in kinds}
    drift = {kind: changed[kind] + refused[kind] for kind in kinds}
    return InStep(drift, refused, unseen | paused | report.trouble.held | report.trouble.faulted, *_of_groups(groups))


def in_step_of_status(status: FlowStatus, groups: GroupSummary) -> InStep:
    """As a running job knows it."""
    kinds = {kind: one for kind, one in status.kinds.items() if one.task not in TASKS_LEFT_OUT}
    faulted = {
        kind: one.reason or one.task.value.lower() for kind, one in kinds.items() if one.task is not Task.ACTIVE
    } | {kind: one.reason or "not compared yet" for kind, one in kinds.items() if one.is_uncompared}
    # Content moves on all the time: of it only what is refused is a difference, as for a command.
    drift = {kind: len(one.refused) if kind.row.content else one.drift or 0 for kind, one in kinds.items()}
    refused = {kind: len(one.refused) for kind, one in kinds.items() if one.refused}
    return InStep(drift, refused, faulted, *_of_groups(groups))


def _of_groups(groups: GroupSummary) -> tuple[dict[Verdict, int], int]:
    verdicts = {Verdict(name): count for name, count in groups.verdicts.items()}
    return verdicts, max(groups.bounds.values(), default=0)
