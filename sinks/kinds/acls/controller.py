"""Polls and compares the ACLs of both sides as one list, because they belong to the cluster and not to topics."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sinks.every_kind.comparison import Comparison, Wanted
from sinks.every_kind.controller import PassContext, Sighting, sightings
from sinks.kafka.ports.acl_binding import TOPIC, AclBinding
from sinks.kafka.ports.acls import AclList, Acls
from sinks.kinds.acls.rules import deletable, desired_acls, plan_acls
from sinks.kinds.acls.staged_writes import staged_entries
from sinks.kinds.acls.survey import KeptTranslation, held_by_source, source_topics
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.polled_controller import PolledController
from sinks.ledger.adoption import Alike
from sinks.ledger.fence_acls import ReverseFences, could_be_fence, without_fences
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.seal import Seal
from sinks.model.changes import Change, Key, Kind, Op, Outcome
from sinks.model.plan import make_plan

REST = 2.0
"""Seconds between two polls if no metadata log tells of changes. Each poll asks a broker for all ACLs."""

SIGNALLED_REST = 10.0
"""Seconds between two polls while the metadata log is followed and silent. A signal starts a poll at once."""


@dataclass(frozen=True)
class BothSides:
    """The source's ACLs to sync and the target's ACLs, both without fences, and the number of ACLs that the source
    shows with fences."""

    synced: AclList
    existing: AclList
    shown: int


class AclController(PolledController[BothSides]):
    """The kind `acl` of one flow."""

    kind, needs = Kind.ACL, "reading ACLs needs DESCRIBE on the CLUSTER of both sides"
    rest, signalled_rest = REST, SIGNALLED_REST

    def __init__(self, assembly: Assembly) -> None:
        super().__init__(assembly.settings.flow, (assembly.source.acl_watch(), assembly.target.acl_watch()))
        self._assembly, self._settings = assembly, assembly.settings
        seal = Seal(self._settings.flow.reverse.name, self._settings.safety.reverse_secret)
        self._reverse = ReverseFences(self._settings.internal.reverse_ledger, assembly.source.cluster, seal)
        self._translated = KeptTranslation()

    def inputs(self, context: PassContext) -> Hashable:
        """Returns the replicated topics."""
        return frozenset(context.listed.desired.kept)

    def read(self, context: PassContext) -> BothSides:
        """Read the ACLs of both sides, without fences."""
        if context.everything:
            self._translated.forget()
        return self._survey(context, afresh=Kind.ACL in context.confirming)

    def _survey(self, context: PassContext, *, afresh: bool) -> BothSides:
        """Read the ACLs of both sides. `afresh`: ask the source now, to confirm a deletion. Raises ClusterUnreachable,
        NotSupported, RightsMissing.

        Leaves out this flow's fences on the source and the reverse flow's on the target, so that a fence is neither
        copied nor deleted. If an ACL has the form of a fence, reads the ledgers before the ACLs and after them. So a
        lifted fence is forgotten last, and a new fence is remembered first.
        """
        source, target = self._assembly.source.acls, self._assembly.target.acls
        of_source, of_target = context.ledger.fences(), self._reverse.known
        bindings, on_target = (AclList(source.describe()) if afresh else source.recent()), target.recent()
        if any(could_be_fence(acl) for acl in (*bindings.denying, *on_target.denying)):
            # What was read before the ledgers were would show a fence that they have forgotten since.
            bindings, on_target = AclList(source.describe()), AclList(target.describe())
            context.ledger.catch_up()
            of_source, of_target = of_source | context.ledger.fences(), of_target | self._reverse.current()
        return BothSides(without_fences(bindings, of_source), without_fences(on_target, of_target), len(bindings))

    def difference_of(self, context: PassContext, seen: BothSides) -> Comparison:
        """Returns the plan for all ACLs. The controllers of users and quotas use the principals found here."""
        settings, listed, owned = self._settings, context.listed, context.ledger.owned(Kind.ACL)
        desired, present = self._translated(seen.synced, settings, listed), seen.existing.keys
        ours = deletable(owned, settings.acls)
        fenced = seen.shown - len(seen.synced)
        skipped = {**desired.skipped, "fence": fenced} if fenced else desired.skipped
        plan = make_plan(
            settings.flow,
            plan_acls(desired, seen.existing, ours, settings.acls.deletes),
            refused=desired.refusals(present),
            existing={Kind.ACL: len(present & owned)},
            skipped={f"{reason} ACLs": count for reason, count in skipped.items()},
            notes=desired.notes,
        )
        # A source that shows no topic shows no ACL of one either.
        shown, items = (seen.shown, "ACL") if listed.source else (0, "topic")
        keys = {acl.key for acl in desired.wanted}
        wanted = Wanted(Kind.ACL, keys, shown, items, kept=(owned - ours) | desired.withheld.keys())
        found = Comparison(plan, {Kind.ACL: dict.fromkeys(present, "")}, wanted)
        if owned and not shown:
            self._assembly.principals.current = None
            return found
        self._assembly.principals.current = desired.principals
        withheld = {key: why for key, why in desired.withheld.items() if key in present}
        # For a failover.
        staged = staged_entries(desired.staged, context.ledger.values(Entry.STAGED))
        return replace(found, alike=Alike(dict.fromkeys(keys & present, ""), withheld), remembered=staged)

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Returns what the source now says of these ACLs of the target. Raises as `read`."""
        both, rules = self._survey(context, afresh=True), self._settings.acls
        if not (both.shown and context.listed.source):
            return {}
        topics = source_topics(self._settings, context.listed)
        desired = desired_acls(both.synced, rules, topics)
        wanted = {acl.key for acl in desired.wanted} | desired.withheld.keys()
        principals = {AclBinding.from_key(key).principal for key in keys}
        # Another flow may hold such a right: it wants nothing that its own file left out.
        reading = {acl.principal for acl in both.existing if acl.resource_type == TOPIC and acl.key not in keys}
        held = held_by_source(both.synced, rules, topics, both.existing, principals, reading)
        return sightings(keys, wanted, {acl.key for acl in held})


def assemble(assembly: Assembly) -> Assembled:
    if Kind.ACL not in assembly.settings.synced:
        return Assembled()
    return Assembled([AclController(assembly)], {Kind.ACL: partial(write_acls, assembly.target.acls)})


def write_acls(target: Acls, changes: Sequence[Change]) -> list[Outcome]:
    """Write changes that have one operation. Raises ClusterUnreachable, RightsMissing, NotSupported."""
    bindings = [AclBinding.from_key(change.key) for change in changes]
    faults = target.create(bindings) if changes[0].op is Op.CREATE else target.delete(bindings)
    return [Outcome(change, faults[binding]) for change, binding in zip(changes, bindings, strict=True)]
