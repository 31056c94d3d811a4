"""ACLs: when they are polled, and what they are compared by. They are cluster-wide: a difference is one for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace

from sinks.every_kind.comparison import Comparison
from sinks.every_kind.controller import PassContext, Sighting
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import Acls
from sinks.kinds.acls.staged_writes import staged_entries
from sinks.kinds.acls.survey import BothSides, Fences, KeptTranslation, compare_acls, second_look_at_acls, survey_acls
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.polled_controller import PolledController
from sinks.ledger.fence_acls import ReverseFences, is_fence_key
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.seal import Seal
from sinks.model.changes import Change, Key, Kind, Op, Outcome

REST = 2.0
"""Seconds between two polls where no metadata log tells of changes: each asks a broker for all ACLs."""

SIGNALLED_REST = 10.0
"""The same while the metadata log tells of changes and is silent; at a signal there is a poll at once."""


class AclController(PolledController[BothSides]):
    """The kind `acl` of one flow."""

    kind, needs = Kind.ACL, "reading ACLs needs DESCRIBE on the CLUSTER of both sides"
    rest, signalled_rest = REST, SIGNALLED_REST

    def __init__(self, assembly: Assembly) -> None:
        super().__init__(assembly.settings.flow, (assembly.source.acl_watch(), assembly.target.acl_watch()))
        self._assembly, self._sides = assembly, (assembly.source.acls, assembly.target.acls)
        settings = assembly.settings
        seal = Seal(settings.flow.reverse.name, settings.safety.reverse_secret)
        self._reverse = ReverseFences(settings.internal.reverse_ledger, assembly.source.cluster, seal)
        self._translated = KeptTranslation()

    def inputs(self, context: PassContext) -> Hashable:
        """The replicated topics."""
        return frozenset(context.listed.desired.kept)

    def read(self, context: PassContext) -> BothSides:
        """Both lists, without fences."""
        if context.everything:
            self._translated.forget()
        return survey_acls(*self._sides, _fences(context, self._reverse), afresh=Kind.ACL in context.confirming)

    def difference_of(self, context: PassContext, seen: BothSides) -> Comparison:
        """Returns the plan for all ACLs. Kinds of principals use the principals found here."""
        owned, settings = context.ledger.owned(Kind.ACL), self._assembly.settings
        found = compare_acls(settings, seen, context.listed, owned, self._translated)
        self._assembly.principals.current = found.principals
        if found.staged is None:
            return found.comparison
        # For a failover.
        staged = staged_entries(found.staged, context.ledger.values(Entry.STAGED))
        return replace(found.comparison, remembered=staged)

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """As `second_look_at_acls`."""
        fences = _fences(context, self._reverse)
        return second_look_at_acls(self._assembly.settings, *self._sides, context.listed, keys, fences)


def assemble(assembly: Assembly) -> Assembled:
    """The kind `acl` of one flow."""
    if Kind.ACL not in assembly.settings.synced:
        return Assembled()
    return Assembled([AclController(assembly)], {Kind.ACL: AclWriter(assembly.target.acls)})


def _fences(context: PassContext, reverse: ReverseFences) -> Callable[[bool], Fences]:
    """Returns the fences of failovers on both sides, as they are known or read again."""

    def fences(again: bool) -> Fences:
        if again:
            context.ledger.catch_up()
        ours = [key for key in context.ledger.fences() if is_fence_key(key)]
        return Fences(ours, reverse.current() if again else reverse.known)

    return fences


class AclWriter:
    """Writes changes of the kind `acl` that have one operation."""

    def __init__(self, target: Acls) -> None:
        self._target = target

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """Returns an outcome for each change. Raises ClusterUnreachable, RightsMissing, NotSupported."""
        bindings = [AclBinding.from_key(change.key) for change in changes]
        faults = self._target.create(bindings) if changes[0].op is Op.CREATE else self._target.delete(bindings)
        return [Outcome(change, faults[binding]) for change, binding in zip(changes, bindings, strict=True)]
