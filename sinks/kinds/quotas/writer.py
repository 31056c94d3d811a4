"""Writes client quotas: an entity is all or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.engine.model import Change, Outcome
from sinks.kinds.quotas.quota_port import ClientQuotas, Entity
from sinks.kinds.quotas.rules import entity_of


class QuotaWriter:
    """Writes changes of the kind `client-quota`."""

    def __init__(self, target: ClientQuotas) -> None:
        self._target = target

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """One outcome for each change. Raises ClusterUnreachable, RightsMissing, NotSupported."""
        wanted: dict[Entity, dict[str, float | None]] = {}
        for change in changes:
            value = float(change.after) if isinstance(change.after, str) else None
            wanted.setdefault(entity_of(change.key), {})[change.key[-1]] = value
        faults = self._target.alter(wanted)
        return [Outcome(change, faults[entity_of(change.key)]) for change in changes]
