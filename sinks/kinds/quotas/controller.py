"""Client quotas, polled as a whole; there are few."""

from __future__ import annotations

from functools import partial

from sinks.engine.adoption import Alike
from sinks.engine.claims import Claim
from sinks.engine.model import Kind
from sinks.engine.plan import Unobserved, make_plan
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.controller import PassContext
from sinks.kinds.polled_controller import PolledController, Rules, Surveyed
from sinks.kinds.quotas.jvm_quotas import JvmQuotas
from sinks.kinds.quotas.quota_port import ClientQuotas
from sinks.kinds.quotas.rules import desired_quotas, is_protected, keys_of, plan_quotas
from sinks.kinds.quotas.writer import QuotaWriter

PORT = "client-quotas"
REST = 10.0
"""Seconds between two polls without a metadata-change signal."""


def assemble(assembly: Assembly) -> Assembled:
    """The kind `client-quota` of one flow."""
    claim = assembly.claim(Kind.CLIENT_QUOTA, assembly.is_enabled(Kind.CLIENT_QUOTA))
    if not assembly.is_enabled(Kind.CLIENT_QUOTA):
        return Assembled()
    source: ClientQuotas = assembly.source.port(PORT, JvmQuotas)
    target: ClientQuotas = assembly.target.port(PORT, JvmQuotas)

    def close() -> None:
        source.close()
        target.close()

    rules = Rules(
        kind=Kind.CLIENT_QUOTA,
        survey=lambda context: survey(assembly, context, source, target, claim.recalled(context.ledger)),
        rest=REST,
        signalled_rest=REST,
        needs="reading client quotas needs DESCRIBE_CONFIGS on the CLUSTER of both sides",
        close=close,
        unsupported=lambda context: claim.recalled(context.ledger).publish((), shown=False),
    )
    return Assembled([PolledController(assembly.settings.flow, rules)], {Kind.CLIENT_QUOTA: QuotaWriter(target)})


def survey(
    assembly: Assembly, context: PassContext, source: ClientQuotas, target: ClientQuotas, claim: Claim
) -> Surveyed:
    """The plan for all quotas. Raises ClusterUnreachable, RightsMissing, NotSupported."""
    flow, acls = assembly.settings.flow, assembly.settings.acls
    owned = {key for key in context.ledger.owned(Kind.CLIENT_QUOTA) if not is_protected(key, acls.protected)}
    upstream, downstream = source.describe(), target.describe()
    desired = desired_quotas(upstream, acls.principals, acls.mapping, acls.protected)
    # A source that shows none of the quotas that there were is taken for one that could not be seen.
    blank = bool(owned) and not upstream
    reason = f"{flow.source} shows no client quota: none is deleted"
    if not blank:
        claim.publish(desired.wanted, shown=bool(upstream))
    changes, held = claim.hold(plan_quotas(desired, downstream, owned, deletes=not blank))
    existing = keys_of(downstream)
    present = existing.keys()
    plan = make_plan(
        flow,
        changes,
        refused=[*desired.refused, *held],
        errors=[Unobserved(Kind.CLIENT_QUOTA, reason)] if blank else [],
        existing={Kind.CLIENT_QUOTA: len(owned & present)},
        skipped=desired.skipped,
    )

    def alike() -> Alike:
        return Alike({key: "" for key, value in desired.wanted.items() if existing.get(key) == value})

    return Surveyed(plan, present, partial(claim.remember, context.ledger), alike)
