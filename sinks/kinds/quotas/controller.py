"""Client quotas, polled as a whole; there are few."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.polled_controller import ListedKind, PolledController, Surveyed
from sinks.kinds.quotas.jvm_quotas import JvmQuotas
from sinks.kinds.quotas.quota_port import ClientQuotas, Entity, QuotaReader
from sinks.kinds.quotas.rules import desired_quotas, entity_of, is_protected, keys_of, plan_quotas
from sinks.ledger.adoption import Alike
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import make_plan
from sinks.model.principals import PrincipalFilter
from sinks.protocol.controller import PassContext, Sighting, Wanted

PORT = "client-quotas"
REST = 10.0
"""Seconds between two polls without a metadata-change signal."""


class ListedQuotas(ListedKind):
    """The kind `client-quota` of one flow."""

    kind, needs = Kind.CLIENT_QUOTA, "reading client quotas needs DESCRIBE_CONFIGS on the CLUSTER of both sides"
    rest, signalled_rest = REST, REST

    def __init__(self, assembly: Assembly, source: ClientQuotas, target: ClientQuotas) -> None:
        self._assembly, self._source, self._target = assembly, source, target

    def survey(self, context: PassContext) -> Surveyed:
        """As `survey_quotas`."""
        return survey_quotas(self._assembly, context, self._source, self._target)

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """As `look_up_quotas`."""
        return look_up_quotas(self._assembly, self._source, keys)


def assemble(assembly: Assembly) -> Assembled:
    """The kind `client-quota` of one flow."""
    if not assembly.is_enabled(Kind.CLIENT_QUOTA):
        return Assembled()
    source: ClientQuotas = assembly.source.port(PORT, JvmQuotas, QuotaReader)
    target: ClientQuotas = assembly.target.port(PORT, JvmQuotas, QuotaReader)
    controller = PolledController(assembly.settings.flow, ListedQuotas(assembly, source, target))
    return Assembled([controller], {Kind.CLIENT_QUOTA: QuotaWriter(target)})


def survey_quotas(assembly: Assembly, context: PassContext, source: ClientQuotas, target: ClientQuotas) -> Surveyed:
    """The plan for all quotas. Raises ClusterUnreachable, RightsMissing, NotSupported."""
    flow, acls = assembly.settings.flow, assembly.settings.acls
    created = context.ledger.owned(Kind.CLIENT_QUOTA)
    owned = {key for key in created if not is_protected(key, acls.protected)}
    upstream, downstream = source.describe(), target.describe()
    desired = desired_quotas(upstream, acls.principals, acls.mapping, acls.protected)
    existing = keys_of(downstream)
    present = existing.keys()
    plan = make_plan(
        flow,
        plan_quotas(desired, downstream, owned),
        refused=desired.refused,
        existing={Kind.CLIENT_QUOTA: len(owned & present)},
        skipped=desired.skipped,
    )

    wanted = Wanted(Kind.CLIENT_QUOTA, desired.wanted, len(upstream), "client quota", kept=created - owned)
    same = {key: "" for key, value in desired.wanted.items() if existing.get(key) == value}
    return Surveyed(plan, present, wanted, Alike(same))


def look_up_quotas(assembly: Assembly, source: ClientQuotas, keys: Collection[Key]) -> dict[Key, Sighting]:
    """What the source says of quotas of these users, client ids and addresses now. Raises as `survey_quotas`."""
    acls, upstream = assembly.settings.acls, source.describe()
    if not upstream:
        return {}
    wanted = desired_quotas(upstream, acls.principals, acls.mapping, acls.protected)
    unfiltered = desired_quotas(upstream, PrincipalFilter(), acls.mapping).wanted
    kept = wanted.wanted.keys() | {refusal.key for refusal in wanted.refused}
    return {
        key: Sighting.WANTED if key in kept else Sighting.LEFT_OUT if key in unfiltered else Sighting.GONE
        for key in keys
    }


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
