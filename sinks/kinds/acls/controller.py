"""ACLs: when they are polled, and what they are compared by. They are cluster-wide: a difference is one for all."""

from __future__ import annotations

from collections.abc import Hashable

from sinks.engine.ledger_entries import Entry
from sinks.engine.model import Kind, Op
from sinks.failover.fence_rules import is_fence_key
from sinks.failover.known_fences import ReverseFences
from sinks.kinds.acls.staged_writes import staged_entries
from sinks.kinds.acls.survey import Fences, KeptTranslation, survey_acls
from sinks.kinds.acls.writer import AclWriter
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.controller import PassContext
from sinks.kinds.polled_controller import PolledController, Rules, Surveyed

REST = 2.0
"""Seconds between two polls where no metadata log tells of changes: each asks a broker for all ACLs."""

SIGNALLED_REST = 10.0
"""The same while the metadata log tells of changes and is silent; at a signal there is a poll at once."""


def assemble(assembly: Assembly) -> Assembled:
    """The kind `acl` of one flow."""
    claim = assembly.claim(Kind.ACL, assembly.is_enabled(Kind.ACL))
    if not assembly.is_enabled(Kind.ACL):
        return Assembled()

    reverse = ReverseFences(assembly.settings.internal.reverse_ledger, assembly.source.cluster)
    translated, deletion_waits = KeptTranslation(), False

    def survey(context: PassContext) -> Surveyed:
        nonlocal deletion_waits

        def fences(again: bool) -> Fences:
            if again:
                context.ledger.catch_up()
            ours = [key for key in context.ledger.fences() if is_fence_key(key)]
            return Fences(ours, reverse.current() if again else reverse.known)

        owned, sides = context.ledger.owned(Kind.ACL), (assembly.source.acls, assembly.target.acls)
        mine = claim.recalled(context.ledger)
        if context.everything:
            translated.forget()
        seen = survey_acls(assembly.settings, *sides, context.listed, owned, mine, fences, translated)
        assembly.principals.current = seen.principals
        deletion_waits = any(refusal.op is Op.DELETE for refusal in seen.plan.refused)

        def remember() -> None:
            if seen.staged is not None:
                context.ledger.put(staged_entries(seen.staged, context.ledger.values(Entry.STAGED)))
            mine.remember(context.ledger)

        return Surveyed(seen.plan, seen.present, remember, seen.alike)

    def inputs(context: PassContext) -> Hashable:
        # What others want can do no more than hold deletions: with tens of thousands of ACLs on the target, a change of
        # one would have every flow read all of them.
        return frozenset(context.listed.desired.remote), claim.of_others() if deletion_waits else None

    rules = Rules(
        kind=Kind.ACL,
        survey=survey,
        inputs=inputs,
        rest=REST,
        signalled_rest=SIGNALLED_REST,
        needs="reading ACLs needs DESCRIBE on the CLUSTER of both sides",
        shown_late=assembly.settings.flow.target,
        unsupported=lambda context: claim.recalled(context.ledger).publish((), shown=False),
    )
    watches = assembly.source.acl_watch(), assembly.target.acl_watch()
    controller = PolledController(assembly.settings.flow, rules, watches)
    return Assembled([controller], {Kind.ACL: AclWriter(assembly.target.acls)})
