"""ACLs: when they are polled, and what they are compared by. They are cluster-wide: a difference is one for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from sinks.engine.ledger_entries import Entry
from sinks.engine.model import Change, Key, Kind, Op, Outcome
from sinks.failover.fence_rules import is_fence_key
from sinks.failover.known_fences import ReverseFences
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import Acls
from sinks.kinds.acls.staged_writes import staged_entries
from sinks.kinds.acls.survey import Fences, KeptTranslation, look_up_acls, survey_acls
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.controller import PassContext, Sighting
from sinks.kinds.polled_controller import PolledController, Rules, Surveyed

REST = 2.0
"""Seconds between two polls where no metadata log tells of changes: each asks a broker for all ACLs."""

SIGNALLED_REST = 10.0
"""The same while the metadata log tells of changes and is silent; at a signal there is a poll at once."""


def assemble(assembly: Assembly) -> Assembled:
    """The kind `acl` of one flow."""
    if not assembly.is_enabled(Kind.ACL):
        return Assembled()

    reverse = ReverseFences(assembly.settings.internal.reverse_ledger, assembly.source.cluster)
    translated, sides = KeptTranslation(), (assembly.source.acls, assembly.target.acls)

    def survey(context: PassContext) -> Surveyed:
        owned = context.ledger.owned(Kind.ACL)
        if context.everything:
            translated.forget()
        fences, confirms = _fences(context, reverse), Kind.ACL in context.confirming
        seen = survey_acls(assembly.settings, *sides, context.listed, owned, fences, translated, afresh=confirms)
        assembly.principals.current = seen.principals

        def remember() -> None:
            if seen.staged is not None:
                context.ledger.put(staged_entries(seen.staged, context.ledger.values(Entry.STAGED)))

        return Surveyed(seen.plan, seen.present, seen.wanted, remember, seen.alike)

    def look_up(context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        return look_up_acls(assembly.settings, *sides, context.listed, keys, _fences(context, reverse))

    def inputs(context: PassContext) -> Hashable:
        return frozenset(context.listed.desired.remote)

    rules = Rules(
        kind=Kind.ACL,
        survey=survey,
        look_up=look_up,
        inputs=inputs,
        rest=REST,
        signalled_rest=SIGNALLED_REST,
        needs="reading ACLs needs DESCRIBE on the CLUSTER of both sides",
        shown_late=assembly.settings.flow.target,
    )
    watches = assembly.source.acl_watch(), assembly.target.acl_watch()
    controller = PolledController(assembly.settings.flow, rules, watches)
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
