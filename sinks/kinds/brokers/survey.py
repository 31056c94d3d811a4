"""Observe, desire, plan for the brokers' cluster-wide configs: what of one flow differs now. Writes nothing.

`lockstep plan` calls it, and a micro-batch every few seconds: the two defaults are a few entries each. All configs of
a broker are several hundred, so they are asked for only where something differs.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from sinks.engine.adoption import Alike
from sinks.engine.model import Key, Kind
from sinks.engine.plan import Plan, Unobserved, make_plan
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import (
    DEFAULT_OF_ALL,
    ConfigEntity,
    LevelledEntry,
    LevelReader,
    Levels,
    ResourceType,
)
from sinks.kinds.brokers.rules import (
    BrokerConfigRules,
    DesiredBrokerConfigs,
    desired_broker_configs,
    differing,
    plan_broker_configs,
    same,
    surplus,
)
from sinks.kinds.controller import Sighting, Wanted
from sinks.kinds.polled_controller import Surveyed


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
    return Surveyed(plan, present, wanted, alike=lambda: Alike({("", name): "" for name in same(desired, downstream)}))


def look_up(source: LevelReader, alias: str, keys: Collection[Key]) -> dict[Key, Sighting]:
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
