"""Applying a plan: in its order, in few requests, an outcome for every change whatever happens to its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from sinks.cluster.base import Cluster, Faults
from sinks.errors import ClusterUnreachable, ItemFault
from sinks.model import Change, Kind, Op, Outcome, TopicSpec
from sinks.plan import Plan
from sinks.writing import REFUSALS, ConfigWriter

AT_ONCE = 500
"""Topics in one write request."""

EXISTS = "TOPIC_ALREADY_EXISTS"
"""MM2 creates remote topics, too, maybe at the same moment: that is success, but the topic is not ours."""


def apply_steps(plan: Plan, target: Cluster, configs: ConfigWriter) -> Iterator[list[Outcome]]:
    """The outcomes step by step, so that what is done can be remembered even if a later step raises.

    A target that stops answering makes the rest fail with a retriable fault, and is asked no more. Raises
    IncrementalUnsupported where `use.incremental.alter.configs=required`, RightsMissing for a request that is denied.
    """
    silent: ItemFault | None = None
    for kind, op, changes in _steps(plan):
        if silent is None:
            try:
                yield _apply_step(kind, op, changes, target, configs)
                continue
            except ClusterUnreachable as error:
                silent = ItemFault("UNREACHABLE", str(error), retriable=True)
        yield [Outcome(change, silent) for change in changes]


def _steps(plan: Plan) -> Iterator[tuple[Kind, Op | None, Sequence[Change]]]:
    for (kind, op), group in groupby(plan.changes, key=_step):
        changes = list(group)
        for start in range(0, len(changes), AT_ONCE):
            yield kind, op, changes[start : start + AT_ONCE]


def _step(change: Change) -> tuple[Kind, Op | None]:
    # Config changes of a topic go out together, whatever their operation: each topic is all or nothing.
    return change.kind, None if change.kind is Kind.TOPIC_CONFIG else change.op


def _apply_step(
    kind: Kind, op: Op | None, changes: Sequence[Change], target: Cluster, configs: ConfigWriter
) -> list[Outcome]:
    if kind is Kind.TOPIC_CONFIG:
        return configs.write(changes)
    return _of_topics(changes, TOPIC_STEPS[op](changes, target))


def _of_topics(changes: Iterable[Change], faults: Faults) -> list[Outcome]:
    outcomes = []
    for change in changes:
        fault = faults.get(change.key[0])
        already = fault is not None and fault.code == EXISTS
        outcomes.append(Outcome(change, None if already else fault, already))
    return outcomes


def _create(changes: Sequence[Change], target: Cluster) -> Faults:
    specs = {change.key[0]: change.after for change in changes if isinstance(change.after, TopicSpec)}
    faults = target.create_topics(specs)
    # A refused config must not keep the topic away: it is made bare, and each config is then tried by itself.
    bare = {
        name: TopicSpec(specs[name].partitions, specs[name].replication_factor)
        for name, fault in faults.items()
        if fault is not None and fault.code in REFUSALS and specs[name].configs
    }
    return faults | target.create_topics(bare) if bare else faults


def _grow(changes: Sequence[Change], target: Cluster) -> Faults:
    return target.create_partitions(
        {change.key[0]: change.after.partitions for change in changes if isinstance(change.after, TopicSpec)}
    )


def _delete(changes: Sequence[Change], target: Cluster) -> Faults:
    return target.delete_topics([change.key[0] for change in changes])


TOPIC_STEPS: Mapping[Op | None, Callable[[Sequence[Change], Cluster], Faults]] = {
    Op.CREATE: _create,
    Op.UPDATE: _grow,
    Op.DELETE: _delete,
}
