"""Writes consumer groups' offsets, after one more check: a group may have woken up since they were planned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sinks.faults import ItemFault
from sinks.kafka.ports.groups import Groups
from sinks.kinds.offsets.group_states import read_states
from sinks.kinds.offsets.verdicts import Facts, Verdict, verdict_on
from sinks.model.changes import Change, Outcome
from streaming.mm2.records import TopicPartition


class GroupWriter:
    """Writes changes of the kind `group-offset` to a cluster: only forward, within the log, without members."""

    def __init__(self, alias: str, groups: Groups) -> None:
        self._alias, self._groups = alias, groups

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """One outcome for each change. Raises ClusterUnreachable, RightsMissing."""
        settled = self._settled(changes)
        todo: dict[str, dict[TopicPartition, int]] = {}
        for change in changes:
            if change not in settled and isinstance(change.after, int):
                todo.setdefault(change.key[0], {})[where_of(change)] = change.after
        faults = self._groups.commit(todo)
        return [settled.get(change) or Outcome(change, faults[change.key[0]][where_of(change)]) for change in changes]

    def _settled(self, changes: Sequence[Change]) -> dict[Change, Outcome]:
        """Changes that must not, or need not, be written any more."""
        groups = {change.key[0] for change in changes}
        committed, members = read_states(self._groups, groups)
        ends = self._groups.ends(set(map(where_of, changes)))
        settled: dict[Change, Outcome] = {}
        for change in changes:
            group, where = change.key[0], where_of(change)
            error = committed.errors.get(group) or members.errors.get(group)
            facts = Facts(
                onto=self._alias,
                answer=change.after if isinstance(change.after, int) else 0,
                log=ends.items.get(where),
                committed=committed.items.get(group, {}).get(where),
                members=members.items.get(group, 0),
                error=str(error) if error else None,
            )
            judgement = verdict_on(facts)
            if judgement.verdict is Verdict.SYNCED:
                settled[change] = Outcome(change, already=True)
            elif not judgement.writes:
                fault = ItemFault(judgement.verdict.value, judgement.reason, retriable=True)
                settled[change] = Outcome(change, fault)
        return settled


def where_of(change: Change) -> TopicPartition:
    """The partition that a change of this kind is about."""
    _, topic, partition = change.key
    return _partition(topic, partition)


@lru_cache(maxsize=100_000)
def _partition(topic: str, partition: str) -> TopicPartition:
    # Thousands of groups share them, and each name is checked where one is made.
    return TopicPartition(topic, int(partition))
