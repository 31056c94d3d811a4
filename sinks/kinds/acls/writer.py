"""Writes ACLs: creates and deletes."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.engine.model import Change, Op, Outcome
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import Acls


class AclWriter:
    """Writes changes of the kind `acl` that have one operation."""

    def __init__(self, target: Acls) -> None:
        self._target = target

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """One outcome for each change. Raises ClusterUnreachable, RightsMissing, NotSupported."""
        bindings = [AclBinding.from_key(change.key) for change in changes]
        faults = self._target.create(bindings) if changes[0].op is Op.CREATE else self._target.delete(bindings)
        return [Outcome(change, faults[binding]) for change, binding in zip(changes, bindings, strict=True)]
