"""What a machine needs around a flow in memory: its world, the pins of cluster ids, what is logged, what is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from sinks.engine.report import Report
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.shared_listings import SharedListings
from sinks.ledger.audit import read_audit
from sinks.ledger.pins import Pins
from sinks.model.changes import Key, Kind
from streaming.flow import Flow
from tests.sinks.builders import World, flow_settings
from tests.sinks.machine.faulty_lists import FaultyAcls, FaultyGroups, FaultyLevels, FaultyQuotas, FaultyUsers
from tests.sinks.machine.hazards import FaultyCluster, Hazard, Written
from tests.sinks.memory_flow import Clock

Difference = tuple[Kind, Key]

SETTLES_WITHIN = 20
"""Passes of a minute each, once nothing goes wrong any more: refused changes wait five minutes at most, a topic's
absence a minute."""

QUIET_PASSES = 6
"""So many of them without a write are the end. What would be deleted is looked at several times. What was created and
never shown counts as there for five minutes."""


@dataclass
class MemoryPins:
    """The local file of cluster ids."""

    where: str = "memory"
    kept: dict[Flow, Pins] = field(default_factory=dict)

    def of(self, flow: Flow) -> Pins | None:
        return self.kept.get(flow)

    def keep(self, flow: Flow, pins: Pins | None) -> None:
        if pins is None:
            self.kept.pop(flow, None)
        else:
            self.kept[flow] = pins


class Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def world_of(
    kinds: Collection[Kind],
    source: FaultyCluster,
    target: FaultyCluster,
    upstream: Hazard,
    now: Callable[[], datetime],
) -> World:
    """A flow from a to b, both clusters with ports that fail together. `upstream`: the hazard of the source's lists."""
    both = (("a", upstream), ("b", target.hazard))
    acls, users, groups, levels, quotas = (
        [made(alias, hazard=hazard) for alias, hazard in both]
        for made in (FaultyAcls, FaultyUsers, FaultyGroups, FaultyLevels, FaultyQuotas)
    )
    settings, clock = flow_settings(topic_deletes=True, enabled=kinds, matching=True), Clock()
    return World(
        settings,
        source,
        target,
        clock,
        listings=SharedListings(clock),
        source_acls=acls[0],
        target_acls=acls[1],
        source_users=users[0],
        target_users=users[1],
        source_groups=groups[0],
        target_groups=groups[1],
        source_levels=levels[0],
        target_levels=levels[1],
        others={PORT: {"a": quotas[0], "b": quotas[1]}},
        pins=MemoryPins(),
        now=now,
    )


def kinds_unseen(report: Report) -> set[Kind]:
    """Kinds that a pass did not compare: they could not be read, something stopped them, or they rest."""
    return {one.kind for one in report.plan.errors} | {*report.trouble.faulted} | report.idle


def unexplained(report: Report, differences: Collection[Difference]) -> set[Difference]:
    """Those that a report has no word for: no change that failed, no refusal, no kind that is stopped or not seen."""
    said = {(outcome.change.kind, outcome.change.key) for outcome in report.outcomes if outcome.error}
    said |= {(refusal.kind, refusal.key) for refusal in report.plan.refused}
    kinds = kinds_unseen(report)
    return {one for one in differences if one not in said and one[0] not in kinds}


def without_event(world: World, written: Collection[Written]) -> list[Written]:
    """What was written and is not in the audit topic."""
    if not written:
        return []
    events = list(read_audit(world.settings.internal.audit, world.target))
    told = {(event.kind, event.key) for event in events}
    for event in events:
        if event.kind == Kind.TOPIC.value and event.after:
            # The event of a topic's creation names its configs, also ones that were added right after it.
            configs = orjson.loads(event.after)["configs"]
            told |= {(Kind.TOPIC_CONFIG.value, (*event.key, name)) for name in configs}
    return [one for one in written if (one.kind.value, one.key) not in told]
