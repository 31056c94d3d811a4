"""Finds the differences of a flow's topics. `survey` reads both clusters, `compare_topics` plans. Neither writes
anything.

The survey compares configs request by request and keeps only differences: all configs of 10,000 topics would not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sinks.every_kind.comparison import Comparison, Wanted
from sinks.every_kind.listing import Listed
from sinks.faults import ItemFault, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader, chunks
from sinks.kinds.assembly import CompareProgress
from sinks.kinds.desired_topics import OWN
from sinks.kinds.effective import Drift, groups_of, warnings
from sinks.kinds.topics.config_rules import plan_configs
from sinks.kinds.topics.rules import plan_topics, to_create, upstream_of
from sinks.ledger.adoption import Alike
from sinks.model.changes import Change, Key, Kind
from sinks.model.plan import Refusal, Unobserved, make_plan
from streaming.mm2.replication_policy import is_written_by_mm2_alone

TOPICS_IN_A_REQUEST = 500
"""Topics in one describe request: larger ones are no faster (3,500 topics/s) and show less progress."""


@dataclass
class SeenTopics:
    """Result of a survey. Keys are upstream topics unless said otherwise."""

    active: Collection[Kind] = ()
    """Kinds to plan."""
    covered: Mapping[str, str] = field(default_factory=dict)
    """Compared topics, each with its name on the target."""
    changes: list[Change] = field(default_factory=list)
    """Changes of configs."""
    creations: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Configs of missing topics, by remote name."""
    skipped: Counter[str] = field(default_factory=Counter)
    unobserved: dict[str, Unobserved] = field(default_factory=dict)
    """Why a topic could not be compared."""
    again: set[str] = field(default_factory=set)
    """Topics to compare again soon."""
    drifts: dict[str, list[Drift]] = field(default_factory=dict)
    """Configs that differ in effect although there is nothing to write."""
    refused: dict[str, list[Refusal]] = field(default_factory=dict)
    """Configs that the target would not accept."""
    denied: int = 0
    ids: Mapping[str, str] = field(default_factory=dict)
    """Ids of Lockstep's own remote topics."""
    surplus: Mapping[str, str] = field(default_factory=dict)
    """Ids of topics that may be deleted, by name on the target."""


def survey(
    settings: FlowSettings,
    source: Reader,
    target: Reader,
    listed: Listed,
    *,
    only: Collection[str] | None = None,
    created: Collection[Key] = (),
    paused: Collection[Kind] = (),
    progress: CompareProgress | None = None,
) -> SeenTopics:
    """Compare the upstream topics of `only` (None: all), and read the configs of every topic that the target lacks.

    `created`: keys that the target took a moment ago and does not show yet. Raises ClusterUnreachable. Raises
    RightsMissing if no topic at all may be described.
    """
    active = settings.synced - set(paused)
    remote = listed.desired.kept
    missing, compared = set[str](), set[str]()
    chosen = remote.keys() if only is None else remote.keys() & only
    if Kind.TOPIC in active:
        missing = upstream_of(remote, to_create(listed, created))
    if Kind.TOPIC_CONFIG in active:
        compared = {topic for topic in chosen if remote[topic] in listed.target}
    # What any topic shows of the target's configs holds for all; none if there is no topic, or it shows none.
    shown = target.describe_topic_configs(sorted(listed.target)[:1]).items if missing else {}
    known: Collection[str] = next(iter(shown.values()), ())
    found = SeenTopics(active, {topic: remote[topic] for topic in missing | compared})
    _read_both(found, settings, source, target, missing, progress, known)
    # Where configs are not synced, what may not be read keeps that topic away, and no other.
    if chosen == remote.keys() and Kind.TOPIC_CONFIG in active:
        _raise_if_unobserved(settings, found)
    return found


def compare_topics(
    settings: FlowSettings, listed: Listed, seen: SeenTopics, *, owned: Collection[Key] = ()
) -> Comparison:
    """Returns the plan of a survey. Pure. `owned`: keys of items that Lockstep created."""
    topic_changes: list[Change] = []
    ours = {key[0] for key in owned} & listed.target.keys()
    if Kind.TOPIC in seen.active:
        factor = settings.replication_factor
        topic_changes = plan_topics(listed.desired, listed.target, seen.creations, factor, seen.surplus)
    drifts = [drift for of_topic in seen.drifts.values() for drift in of_topic]
    effect: dict[str, Any] = {}
    if drifts:
        effect = {"notes": warnings(settings.flow, drifts), "effective": groups_of(drifts)}
    plan = make_plan(
        settings.flow,
        [*topic_changes, *seen.changes],
        refused=[*listed.desired.refused, *(one for of_topic in seen.refused.values() for one in of_topic)],
        errors=seen.unobserved.values(),
        existing={Kind.TOPIC: len(ours)},
        skipped=seen.skipped,
        **effect,
    )
    return Comparison(
        plan,
        {Kind.TOPIC: {(name,): found for name, found in seen.ids.items()}},
        Wanted(Kind.TOPIC, [(name,) for name in listed.desired.partitions], len(listed.source), "topic"),
        seen.covered,
        again=seen.again,
        unobserved=seen.unobserved,
        # Where configs are not synced, what the target would not take is tried with the topic, and only then.
        refused=seen.refused if settings.enabled[Kind.TOPIC_CONFIG] else {},
        drifts={topic: [drift.case for drift in found] for topic, found in seen.drifts.items()},
    )


def _read_both(
    found: SeenTopics,
    settings: FlowSettings,
    source: Reader,
    target: Reader,
    missing: Collection[str],
    progress: CompareProgress | None,
    known: Collection[str],
) -> None:
    """Compare the configs of both sides, and note the result in `found`. `missing`: topics that the target lacks.
    `known`: names of all configs that a topic has on the target."""
    remote, topics, done = found.covered, sorted(found.covered), 0
    rules, alias = settings.config_filter, settings.flow.target
    for chunk in chunks(topics, TOPICS_IN_A_REQUEST):
        upstream = source.describe_topic_configs(chunk)
        downstream = target.describe_topic_configs([remote[topic] for topic in chunk if topic not in missing])
        for topic, fault in upstream.errors.items():
            kind = Kind.TOPIC if topic in missing else Kind.TOPIC_CONFIG
            _note_fault(found, kind, topic, settings.flow.source, topic, fault)
        for topic, configs in upstream.items.items():
            name = remote[topic]
            there = {} if topic in missing else downstream.items.get(name)
            if there is None:
                if name in downstream.errors:
                    _note_fault(found, Kind.TOPIC_CONFIG, topic, alias, name, downstream.errors[name])
                continue
            of_target = known if topic in missing else there
            planned = plan_configs(name, configs, there, rules, known=of_target, alias=alias)
            if planned.refused:
                found.refused[topic] = planned.refused
            if topic in missing:
                found.creations[name] = tuple(sorted((one.key[1], str(one.after)) for one in planned.changes))
                continue
            found.changes += planned.changes
            found.skipped += planned.skipped
            if planned.drifts:
                found.drifts[topic] = planned.drifts
        done += len(chunk)
        if progress is not None:
            progress(done, len(topics))


def _note_fault(found: SeenTopics, kind: Kind, topic: str, alias: str, name: str, fault: ItemFault) -> None:
    if fault.retriable:
        # Gone in between, or not everywhere yet: the next pass's listing tells which.
        found.again.add(topic)
        return
    found.denied += fault.is_denied
    found.unobserved[topic] = Unobserved(kind, f"{name} on {alias}: {fault.needing('DESCRIBE_CONFIGS', 'TOPIC', name)}")


def _raise_if_unobserved(settings: FlowSettings, found: SeenTopics) -> None:
    if found.covered and found.denied == len(found.covered):
        first = next(iter(found.unobserved.values())).reason
        raise RightsMissing(
            f"{settings.flow.name}: no topic's configs may be read ({first}); grant the principal "
            f"DESCRIBE_CONFIGS on the topics of {settings.flow.source} and {settings.flow.target}"
        )


OTHERS_WRITE = "its name does not prove that only MM2 writes it: another source or program may write the same topic"
INTERNAL = "is one of MM2's own topics"
NO_ID = "the target does not tell its topic id, so Lockstep could not recognize it later"


def adoptable_topics(
    settings: FlowSettings, listed: Listed, ids_of: Callable[[Collection[str]], Mapping[str, str]]
) -> Alike:
    """Returns remote topics made by MM2 that Lockstep may adopt. An adopted topic may be deleted with its records, so
    the conditions are strict.

    It has to be a copy of a replicated topic with as many partitions. Its name must say that only MM2 writes it, which
    is never so under the identity policy. It must be neither a topic of MM2 nor one of Lockstep. The target must tell
    its id, by which it is known from then on.

    `ids_of`: returns ids of topics on the target by name. Raises what `ids_of` raises.
    """
    same = {
        topic: name
        for topic, name in listed.desired.kept.items()
        if listed.source.get(topic) and listed.target.get(name) == listed.source[topic] and not name.startswith(OWN)
    }
    refused: dict[Key, str] = {}
    for topic, name in same.items():
        if reason := _why_not(settings, topic):
            refused[name,] = reason
    names = [name for name in same.values() if (name,) not in refused]
    ids = ids_of(names) if names else {}
    refused |= {(name,): NO_ID for name in names if not ids.get(name)}
    return Alike({(name,): ids[name] for name in names if ids.get(name)}, refused)


def _why_not(settings: FlowSettings, topic: str) -> str | None:
    policy = settings.policy
    if policy.is_heartbeats_topic(topic) or policy.is_internal_topic(topic):
        return INTERNAL
    return None if is_written_by_mm2_alone(policy, settings.flow.source, topic) else OTHERS_WRITE
