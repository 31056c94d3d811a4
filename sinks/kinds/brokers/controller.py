"""The brokers' cluster-wide configs, polled as a whole; there are few."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sinks.faults import IncrementalUnsupported, ItemFault
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Faults, Origin
from sinks.kafka.ports.config_levels import (
    DEFAULT_OF_ALL,
    ConfigEntity,
    ConfigLevels,
    LevelledEntry,
    LevelReader,
    Levels,
    ResourceType,
)
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.brokers.rules import (
    PROPERTIES,
    BrokerConfigRules,
    DesiredBrokerConfigs,
    desired_broker_configs,
    differing,
    plan_broker_configs,
    same,
    surplus,
)
from sinks.kinds.polled_controller import ListedKind, PolledController, Surveyed
from sinks.kinds.topics.config_writer import Values, settle
from sinks.kinds.topics.effective import Drift, effective_side, groups_of, warnings
from sinks.ledger.adoption import Alike
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import Plan, Unobserved, make_plan
from sinks.protocol.controller import PassContext, Sighting, Wanted

REST = 10.0
"""Seconds between two polls without a metadata-change signal."""

REFUSED_REST = 60.0
"""The same while something is refused: to see whether it still is takes all configs of a broker."""


class ListedBrokerConfigs(ListedKind):
    """The kind `broker-config` of one flow."""

    kind, needs = Kind.BROKER_CONFIG, "reading broker configs needs DESCRIBE_CONFIGS on the CLUSTER of both sides"
    rest, signalled_rest, refused_rest = REST, REST, REFUSED_REST

    def __init__(self, assembly: Assembly, source: ConfigLevels, target: ConfigLevels) -> None:
        self._settings, self._once, self._source, self._target = assembly.settings, assembly.once, source, target
        self._configs = BrokerConfigRules({PROPERTIES: ",".join(assembly.settings.broker_configs)})

    def survey(self, context: PassContext) -> Surveyed:
        """As `survey_brokers`."""
        owned, sides = context.ledger.owned(Kind.BROKER_CONFIG), (self._source, self._target)
        seen = survey_brokers(self._settings, self._configs, *sides, owned)
        if not self._once:
            return seen
        return replace(seen, plan=with_effective_drift(self._settings, self._configs, *sides, seen.plan))

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """As `look_up_brokers`."""
        return look_up_brokers(self._source, self._settings.flow.source, keys)


def assemble(assembly: Assembly) -> Assembled:
    """The kind `broker-config` of one flow."""
    if not assembly.is_enabled(Kind.BROKER_CONFIG):
        return Assembled()
    source, target = assembly.source.levels, assembly.target.levels
    controller = PolledController(assembly.settings.flow, ListedBrokerConfigs(assembly, source, target))
    return Assembled([controller], {Kind.BROKER_CONFIG: BrokerWriter(target)})


def with_effective_drift(
    settings: FlowSettings, configs: BrokerConfigRules, source: LevelReader, target: LevelReader, plan: Plan
) -> Plan:
    """The plan with each default that differs where neither side sets anything: as a note, and as drift.

    A running job does not look for these: it takes all configs of a broker on each side to see them.
    """
    upstream = any_broker(source, settings.flow.source)
    downstream = any_broker(target, settings.flow.target)
    if isinstance(upstream, Unobserved) or isinstance(downstream, Unobserved):
        return plan
    drifts = list(broker_drifts(upstream, downstream, configs))
    notes = (*plan.notes, *warnings(settings.flow, drifts))
    return replace(plan, notes=notes, effective=groups_of(drifts))


def broker_drifts(source: Levels, target: Levels, rules: BrokerConfigRules) -> Iterator[Drift]:
    """Of the brokers, by all configs of one broker of each side, for those that Lockstep would copy."""
    for name in sorted(source.keys() & target.keys()):
        if not rules.syncs(name):
            continue
        here, there = effective_side(source, name), effective_side(target, name)
        if here is None or there is None or here.origin is Origin.CLUSTER or here.value == there.value:
            continue
        yield Drift(ResourceType.BROKER, "", name, here, there)


class BrokerWriter:
    """Writes changes of the kind `broker-config`. An entity is all or nothing, so a refused one is halved."""

    def __init__(self, target: ConfigLevels) -> None:
        self._target = target

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """One outcome for each change. Raises ClusterUnreachable, RightsMissing."""
        wanted: dict[str, Values] = {}
        for change in changes:
            broker, name = change.key
            wanted.setdefault(broker, {})[name] = change.after if isinstance(change.after, str) else None
        faults = settle(wanted, self._alter)
        return [Outcome(change, faults.get((change.key[0], change.key[1]))) for change in changes]

    def _alter(self, wanted: Mapping[str, Values]) -> Faults:
        try:
            faults = self._target.alter(
                {ConfigEntity(ResourceType.BROKER, broker): values for broker, values in wanted.items()}
            )
        except IncrementalUnsupported as error:
            # The old AlterConfigs would erase what it is not given, passwords among it, which nobody can read.
            return dict.fromkeys(wanted, ItemFault("UNSUPPORTED_VERSION", str(error)))
        return {entity.name: fault for entity, fault in faults.items()}


# Observe, desire, plan for the brokers' cluster-wide configs: what of one flow differs now. Writes nothing.
#
# `lockstep plan` calls it, and a micro-batch every few seconds: the two defaults are a few entries each. All configs of
# a broker are several hundred, so they are asked for only where something differs.


def survey_brokers(
    settings: FlowSettings, rules: BrokerConfigRules, source: LevelReader, target: LevelReader, owned: AbstractSet[Key]
) -> Surveyed:
    """The plan for the kind `broker-config`; what could not be read is in its `errors`.

    Raises ClusterUnreachable, RightsMissing.
    """
    flow = settings.flow
    upstream = _described(source, DEFAULT_OF_ALL, flow.source)
    downstream = _described(target, DEFAULT_OF_ALL, flow.target)
    if isinstance(upstream, Unobserved) or isinstance(downstream, Unobserved):
        unobserved = [seen for seen in (upstream, downstream) if isinstance(seen, Unobserved)]
        return Surveyed(Plan(flow, errors=tuple(unobserved)), None, None)
    desired = desired_broker_configs(upstream, rules)
    deletions = surplus(desired, downstream, owned, rules)
    known = any_broker(target, flow.target) if differing(desired, downstream) else {}
    errors = [known] if isinstance(known, Unobserved) else []
    if isinstance(known, Unobserved):
        desired, known = DesiredBrokerConfigs(skipped=desired.skipped), {}
    changes, refused = plan_broker_configs(desired, downstream, deletions, known, flow.target)
    present = {("", name) for name in downstream}
    plan = make_plan(
        flow,
        changes,
        refused=refused,
        errors=errors,
        existing={Kind.BROKER_CONFIG: len(owned & present)},
        skipped=desired.skipped,
    )
    # A source may have none of its own: a broker is asked which it follows, before any is deleted.
    wanted = Wanted(Kind.BROKER_CONFIG, [("", name) for name in desired.wanted], 1 + len(upstream), "broker config")
    return Surveyed(plan, present, wanted, Alike({("", name): "" for name in same(desired, downstream)}))


def look_up_brokers(source: LevelReader, alias: str, keys: Collection[Key]) -> dict[Key, Sighting]:
    """What the source has of these: in its cluster-wide default, and in force at one of its brokers, who is asked
    itself. Raises ClusterUnreachable, RightsMissing."""
    default, followed = _described(source, DEFAULT_OF_ALL, alias), any_broker(source, alias)
    if isinstance(default, Unobserved) or isinstance(followed, Unobserved):
        return {}
    there = default.keys() | {name for name, entry in followed.items() if _is_cluster_wide(entry)}
    return {key: Sighting.WANTED if key[1] in there else Sighting.GONE for key in keys}


def _is_cluster_wide(entry: LevelledEntry) -> bool:
    return any(one.origin is Origin.CLUSTER for one in entry.synonyms)


def any_broker(levels: LevelReader, alias: str) -> Levels | Unobserved:
    """All configs of the first of a cluster's brokers. Raises ClusterUnreachable, RightsMissing."""
    return _described(levels, ConfigEntity(ResourceType.BROKER, levels.brokers()[0]), alias)


def _described(levels: LevelReader, entity: ConfigEntity, alias: str) -> Levels | Unobserved:
    seen = levels.describe([entity])
    if entity in seen.items:
        return seen.items[entity]
    what = f"broker {entity.name}" if entity.name else "the cluster-wide default"
    return Unobserved(Kind.BROKER_CONFIG, f"{what} of {alias}: {seen.errors[entity]}")
