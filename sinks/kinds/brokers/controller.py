"""The brokers' cluster-wide configs, polled as a whole; there are few."""

from __future__ import annotations

from dataclasses import replace

from sinks.engine.model import Kind
from sinks.engine.plan import Plan, Unobserved
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.config_levels import LevelReader
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.brokers.rules import PROPERTIES, BrokerConfigRules
from sinks.kinds.brokers.survey import any_broker, look_up, survey_brokers
from sinks.kinds.brokers.writer import BrokerWriter
from sinks.kinds.controller import PassContext
from sinks.kinds.polled_controller import PolledController, Rules, Surveyed
from sinks.kinds.topics.effective import broker_drifts, groups_of, warnings

REST = 10.0
"""Seconds between two polls without a metadata-change signal."""

REFUSED_REST = 60.0
"""The same while something is refused: to see whether it still is takes all configs of a broker."""


def assemble(assembly: Assembly) -> Assembled:
    """The kind `broker-config` of one flow."""
    if not assembly.is_enabled(Kind.BROKER_CONFIG):
        return Assembled()
    settings = assembly.settings
    source, target = assembly.source.levels(), assembly.target.levels()
    configs = BrokerConfigRules({PROPERTIES: ",".join(settings.broker_configs)})

    def survey(context: PassContext) -> Surveyed:
        owned = context.ledger.owned(Kind.BROKER_CONFIG)
        seen = survey_brokers(settings, configs, source, target, owned)
        if not assembly.once:
            return seen
        return replace(seen, plan=with_effective_drift(settings, configs, source, target, seen.plan))

    def close() -> None:
        source.close()
        target.close()

    rules = Rules(
        kind=Kind.BROKER_CONFIG,
        survey=survey,
        look_up=lambda context, keys: look_up(source, settings.flow.source, keys),
        rest=REST,
        signalled_rest=REST,
        refused_rest=REFUSED_REST,
        needs="reading broker configs needs DESCRIBE_CONFIGS on the CLUSTER of both sides",
        close=close,
    )
    writer = BrokerWriter(target)
    return Assembled([PolledController(settings.flow, rules)], {Kind.BROKER_CONFIG: writer})


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
