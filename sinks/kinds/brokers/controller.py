"""Polls and compares the brokers' cluster-wide configs as one list, because they are few."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sinks.every_kind.comparison import Comparison, Wanted
from sinks.every_kind.controller import PassContext, Sighting, sightings
from sinks.faults import IncrementalUnsupported, ItemFault
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Faults, Origin
from sinks.kafka.ports.config_levels import (
    DEFAULT_OF_ALL,
    ConfigEntity,
    ConfigLevels,
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
from sinks.kinds.effective import Drift, effective_side, groups_of, warnings
from sinks.kinds.polled_controller import PolledController
from sinks.kinds.refused_configs import Values, write_configs
from sinks.ledger.adoption import Alike
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import Unobserved, make_plan

REFUSED_REST = 60.0
"""Seconds between two polls while a change is refused. To check a refusal takes all configs of a broker."""


class BrokerController(PolledController["SeenLevels"]):
    """The kind `broker-config` of one flow."""

    kind, needs = Kind.BROKER_CONFIG, "reading broker configs needs DESCRIBE_CONFIGS on the CLUSTER of both sides"
    refused_rest = REFUSED_REST

    def __init__(self, assembly: Assembly, source: ConfigLevels, target: ConfigLevels) -> None:
        super().__init__(assembly.settings.flow)
        self._settings, self._once, self._source, self._target = assembly.settings, assembly.once, source, target
        self._configs = BrokerConfigRules({PROPERTIES: ",".join(assembly.settings.broker_configs)})

    def read(self, context: PassContext) -> SeenLevels:
        """Read both sides as `survey_brokers` does. A job does not look for effective drift, which needs all configs of
        a broker."""
        return survey_brokers(self._settings, self._configs, self._source, self._target, effective=self._once)

    def difference_of(self, context: PassContext, seen: SeenLevels) -> Comparison:
        return compare_brokers(self._settings, self._configs, seen, context.ledger.owned(Kind.BROKER_CONFIG))

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Returns the source's answer about these configs, from its cluster-wide default and the configs in force at
        one broker. Raises ClusterUnreachable, RightsMissing."""
        alias = self._settings.flow.source
        default, followed = _described(self._source, DEFAULT_OF_ALL, alias), any_broker(self._source, alias)
        if isinstance(default, Unobserved) or isinstance(followed, Unobserved):
            return {}
        in_force = {
            name for name, entry in followed.items() if any(one.origin is Origin.CLUSTER for one in entry.synonyms)
        }
        there = default.keys() | in_force
        return sightings(keys, {key for key in keys if key[1] in there}, ())


def assemble(assembly: Assembly) -> Assembled:
    if Kind.BROKER_CONFIG not in assembly.settings.synced:
        return Assembled()
    source, target = assembly.source.levels, assembly.target.levels
    return Assembled(
        [BrokerController(assembly, source, target)], {Kind.BROKER_CONFIG: partial(write_broker_configs, target)}
    )


def broker_drifts(source: Levels, target: Levels, rules: BrokerConfigRules) -> Iterator[Drift]:
    """Returns the effective drift of the brokers, from all configs of one broker of each side. Only configs that
    Lockstep would copy count."""
    for name in sorted(source.keys() & target.keys()):
        if not rules.syncs(name):
            continue
        here, there = effective_side(source, name), effective_side(target, name)
        if here is None or there is None or here.origin is Origin.CLUSTER or here.value == there.value:
            continue
        yield Drift(Kind.BROKER_CONFIG, "", name, here, there)


def write_broker_configs(target: ConfigLevels, changes: Sequence[Change]) -> list[Outcome]:
    """Write changes, in halves if a request is refused: a broker takes all configs of a request or none. Raises
    ClusterUnreachable, RightsMissing."""

    def alter(wanted: Mapping[str, Values]) -> Faults:
        by_entity = {ConfigEntity(ResourceType.BROKER, broker): values for broker, values in wanted.items()}
        try:
            faults = target.alter(by_entity)
        except IncrementalUnsupported as error:
            # The old AlterConfigs would erase what it is not given, passwords too, which no client can read.
            return dict.fromkeys(wanted, ItemFault("UNSUPPORTED_VERSION", str(error)))
        return {entity.name: fault for entity, fault in faults.items()}

    return write_configs(changes, alter)


# What of the brokers' cluster-wide configs differs now.
#
# `lockstep plan` asks for it, and a pass every few seconds: the two defaults are a few entries each. All configs of a
# broker are several hundred, so they are read only where something differs.


@dataclass(frozen=True)
class SeenLevels:
    """The cluster-wide defaults of both sides. `known`: all configs of a broker of the target, if the defaults differ.
    `followed`: all configs of a broker of each side, if effective drift is asked for."""

    source: Levels | Unobserved
    target: Levels | Unobserved
    known: Levels | Unobserved = field(default_factory=dict)
    followed: tuple[Levels, Levels] | None = None


def survey_brokers(
    settings: FlowSettings, rules: BrokerConfigRules, source: LevelReader, target: LevelReader, *, effective: bool
) -> SeenLevels:
    """Read both sides. `effective`: also read what effective drift needs. Raises ClusterUnreachable, RightsMissing."""
    flow = settings.flow
    upstream = _described(source, DEFAULT_OF_ALL, flow.source)
    downstream = _described(target, DEFAULT_OF_ALL, flow.target)
    seen = SeenLevels(upstream, downstream)
    if not (isinstance(upstream, Unobserved) or isinstance(downstream, Unobserved)):
        differs = differing(desired_broker_configs(upstream, rules), downstream)
        seen = replace(seen, known=any_broker(target, flow.target) if differs else {})
    if not effective:
        return seen
    here, there = any_broker(source, flow.source), any_broker(target, flow.target)
    if isinstance(here, Unobserved) or isinstance(there, Unobserved):
        return seen
    return replace(seen, followed=(here, there))


def compare_brokers(
    settings: FlowSettings, rules: BrokerConfigRules, seen: SeenLevels, owned: AbstractSet[Key]
) -> Comparison:
    """Returns the plan for the kind `broker-config`. Its `errors` name the configs that could not be read. Pure.

    If the values in force differ although neither side sets them, that is a note and effective drift.
    """
    drifts = list(broker_drifts(*seen.followed, rules)) if seen.followed else []
    effect: dict[str, Any] = {"notes": warnings(settings.flow, drifts), "effective": groups_of(drifts)}
    upstream, downstream, known = seen.source, seen.target, seen.known
    if isinstance(upstream, Unobserved) or isinstance(downstream, Unobserved):
        unobserved = [one for one in (upstream, downstream) if isinstance(one, Unobserved)]
        return Comparison(make_plan(settings.flow, [], errors=unobserved, **effect))
    desired = desired_broker_configs(upstream, rules)
    deletions = surplus(desired, downstream, owned, rules)
    errors = [known] if isinstance(known, Unobserved) else []
    if isinstance(known, Unobserved):
        desired, known = DesiredBrokerConfigs(skipped=desired.skipped), {}
    changes, refused = plan_broker_configs(desired, downstream, deletions, known, settings.flow.target)
    present: dict[Key, str] = {("", name): "" for name in downstream}
    plan = make_plan(
        settings.flow,
        changes,
        refused=refused,
        errors=errors,
        existing={Kind.BROKER_CONFIG: len(owned & present.keys())},
        skipped=desired.skipped,
        **effect,
    )
    # A source may have none of its own: a broker is asked which it follows, before any is deleted.
    wanted = Wanted(Kind.BROKER_CONFIG, [("", name) for name in desired.wanted], 1 + len(upstream), "broker config")
    alike = Alike({("", name): "" for name in same(desired, downstream)})
    return Comparison(plan, {Kind.BROKER_CONFIG: present}, wanted, alike=alike)


def any_broker(levels: LevelReader, alias: str) -> Levels | Unobserved:
    """Returns all configs of a cluster's first broker. Raises ClusterUnreachable, RightsMissing."""
    return _described(levels, ConfigEntity(ResourceType.BROKER, levels.brokers()[0]), alias)


def _described(levels: LevelReader, entity: ConfigEntity, alias: str) -> Levels | Unobserved:
    seen = levels.describe([entity])
    if entity in seen.items:
        return seen.items[entity]
    what = f"broker {entity.name}" if entity.name else "the cluster-wide default"
    return Unobserved(Kind.BROKER_CONFIG, f"{what} of {alias}: {seen.errors[entity]}")
