"""ACLs: when they are polled, and what they are compared by. They are cluster-wide: a difference is one for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import Acls
from sinks.kinds.acls.staged_writes import staged_entries
from sinks.kinds.acls.survey import Fences, KeptTranslation, look_up_acls, survey_acls
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.polled_controller import ListedKind, PolledController, Surveyed
from sinks.ledger.fences import ReverseFences, is_fence_key
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Change, Key, Kind, Op, Outcome
from sinks.protocol.controller import PassContext, Sighting

REST = 2.0
"""Seconds between two polls where no metadata log tells of changes: each asks a broker for all ACLs."""

SIGNALLED_REST = 10.0
"""The same while the metadata log tells of changes and is silent; at a signal there is a poll at once."""


class ListedAcls(ListedKind):
    """The kind `acl` of one flow."""

    kind, needs = Kind.ACL, "reading ACLs needs DESCRIBE on the CLUSTER of both sides"
    rest, signalled_rest = REST, SIGNALLED_REST

    def __init__(self, assembly: Assembly) -> None:
        self._assembly, self._sides = assembly, (assembly.source.acls, assembly.target.acls)
        self._reverse = ReverseFences(assembly.settings.internal.reverse_ledger, assembly.source.cluster)
        self._translated = KeptTranslation()
        self._staged: frozenset[AclBinding] | None = None

    def inputs(self, context: PassContext) -> Hashable:
        """The replicated topics."""
        return frozenset(context.listed.desired.remote)

    def survey(self, context: PassContext) -> Surveyed:
        """The plan for all ACLs. Raises as `survey_acls`."""
        if context.everything:
            self._translated.forget()
        owned, fences = context.ledger.owned(Kind.ACL), _fences(context, self._reverse)
        settings, confirms = self._assembly.settings, Kind.ACL in context.confirming
        self._staged = None
        seen = survey_acls(settings, *self._sides, context.listed, owned, fences, self._translated, afresh=confirms)
        self._assembly.principals.current, self._staged = seen.principals, seen.staged
        return Surveyed(seen.plan, seen.present, seen.wanted, seen.alike)

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """As `look_up_acls`."""
        fences = _fences(context, self._reverse)
        return look_up_acls(self._assembly.settings, *self._sides, context.listed, keys, fences)

    def remember(self, context: PassContext) -> None:
        """What is held back, for a failover."""
        if self._staged is not None:
            context.ledger.put(staged_entries(self._staged, context.ledger.values(Entry.STAGED)))


def assemble(assembly: Assembly) -> Assembled:
    """The kind `acl` of one flow."""
    if not assembly.is_enabled(Kind.ACL):
        return Assembled()
    watches = assembly.source.acl_watch(), assembly.target.acl_watch()
    controller = PolledController(assembly.settings.flow, ListedAcls(assembly), watches)
    return Assembled([controller], {Kind.ACL: AclWriter(assembly.target.acls)})


def _fences(context: PassContext, reverse: ReverseFences) -> Callable[[bool], Fences]:
    """What failovers deny on both sides: as it is known, or read again."""

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
        """One outcome for each change. Raises ClusterUnreachable, RightsMissing, NotSupported."""
        bindings = [AclBinding.from_key(change.key) for change in changes]
        faults = self._target.create(bindings) if changes[0].op is Op.CREATE else self._target.delete(bindings)
        return [Outcome(change, faults[binding]) for change, binding in zip(changes, bindings, strict=True)]
