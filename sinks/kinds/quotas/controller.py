"""Polls and compares client quotas as one list, because they are few."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from sinks.every_kind.comparison import Comparison, Wanted
from sinks.every_kind.controller import PassContext, Sighting, sightings
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.polled_controller import PolledController
from sinks.kinds.quotas.jvm_quotas import JvmQuotas
from sinks.kinds.quotas.quota_port import ClientQuotas, Entity, QuotaReader, Quotas
from sinks.kinds.quotas.rules import desired_quotas, entity_of, is_protected, keys_of, plan_quotas
from sinks.ledger.adoption import Alike
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import make_plan
from sinks.model.principals import PrincipalFilter

PORT = "client-quotas"


class QuotaController(PolledController[tuple[Quotas, Quotas]]):
    """The kind `client-quota` of one flow."""

    kind, needs = Kind.CLIENT_QUOTA, "reading client quotas needs DESCRIBE_CONFIGS on the CLUSTER of both sides"

    def __init__(self, assembly: Assembly, source: ClientQuotas, target: ClientQuotas) -> None:
        super().__init__(assembly.settings.flow)
        self._assembly, self._source, self._target = assembly, source, target

    def read(self, context: PassContext) -> tuple[Quotas, Quotas]:
        return self._source.describe(), self._target.describe()

    def difference_of(self, context: PassContext, seen: tuple[Quotas, Quotas]) -> Comparison:
        (upstream, downstream), settings = seen, self._assembly.settings
        acls, created = settings.acls, context.ledger.owned(Kind.CLIENT_QUOTA)
        owned = {key for key in created if not is_protected(key, acls.protected)}
        desired = desired_quotas(upstream, acls.principals, acls.mapping, acls.protected)
        existing = keys_of(downstream)
        plan = make_plan(
            settings.flow,
            plan_quotas(desired, downstream, owned),
            refused=desired.refused,
            existing={Kind.CLIENT_QUOTA: len(owned & existing.keys())},
            skipped=desired.skipped,
        )
        wanted = Wanted(Kind.CLIENT_QUOTA, desired.wanted, len(upstream), "client quota", kept=created - owned)
        same = {key: "" for key, value in desired.wanted.items() if existing.get(key) == value}
        return Comparison(plan, {Kind.CLIENT_QUOTA: dict.fromkeys(existing, "")}, wanted, alike=Alike(same))

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Returns the source's answer about the quotas of these users, client ids and addresses, read now."""
        acls, upstream = self._assembly.settings.acls, self._source.describe()
        if not upstream:
            return {}
        wanted = desired_quotas(upstream, acls.principals, acls.mapping, acls.protected)
        unfiltered = desired_quotas(upstream, PrincipalFilter(), acls.mapping).wanted
        kept = wanted.wanted.keys() | {refusal.key for refusal in wanted.refused}
        return sightings(keys, kept, unfiltered)


def assemble(assembly: Assembly) -> Assembled:
    if Kind.CLIENT_QUOTA not in assembly.settings.synced:
        return Assembled()
    source: ClientQuotas = assembly.source.port(PORT, JvmQuotas, QuotaReader)
    target: ClientQuotas = assembly.target.port(PORT, JvmQuotas, QuotaReader)
    return Assembled([QuotaController(assembly, source, target)], {Kind.CLIENT_QUOTA: partial(write_quotas, target)})


def write_quotas(target: ClientQuotas, changes: Sequence[Change]) -> list[Outcome]:
    """Write changes of quotas. Raises ClusterUnreachable, RightsMissing, NotSupported."""
    wanted: dict[Entity, dict[str, float | None]] = {}
    for change in changes:
        value = float(change.after) if isinstance(change.after, str) else None
        wanted.setdefault(entity_of(change.key), {})[change.key[-1]] = value
    faults = target.alter(wanted)
    return [Outcome(change, faults[entity_of(change.key)]) for change in changes]
