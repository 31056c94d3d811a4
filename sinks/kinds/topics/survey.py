"""Observe, desire, plan: what of one flow differs now. Reads both clusters, writes nothing, keeps nothing.

`lockstep plan` calls it with everything; a micro-batch with the topics that a watch saw differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sinks.faults import ItemFault, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import ConfigEntry, Reader, TopicConfigs
from sinks.kinds.topics.effective import Drift, groups_of, topic_drifts, warnings
from sinks.kinds.topics.rules import plan_topic_deletions, plan_topics
from sinks.kinds.topics.target_rules import split, split_overrides
from sinks.model.changes import Change, Key, Kind
from sinks.model.plan import Plan, Refusal, Unobserved, make_plan
from sinks.protocol.listing import Listed
from streaming.mm2.replication_filters import ConfigPropertyFilter

TOPICS_IN_A_REQUEST = 500
"""Topics in one describe request: larger ones are no faster (3,500 topics/s) and show less progress."""

DENIED_TOPIC = frozenset({"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"})


@dataclass(frozen=True)
class Survey:
    """A plan, what it was made from, and the upstream topics that must be compared again soon.

    `unobserved`: why an upstream topic could not be compared; the plan's `errors` say the same. `drifts`: by upstream
    topic, what differs in effect though nothing is to be written; `refused`, which configs the target would not take.
    """

    plan: Plan
    covered: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()
    unobserved: Mapping[str, Unobserved] = field(default_factory=dict)
    drifts: Mapping[str, Sequence[Drift]] = field(default_factory=dict)
    refused: Mapping[str, Sequence[Refusal]] = field(default_factory=dict)


@dataclass
class _Found:
    """What the comparison has gathered so far."""

    changes: list[Change] = field(default_factory=list)
    creations: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    unobserved: dict[str, Unobserved] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    drifts: dict[str, list[Drift]] = field(default_factory=dict)
    refused: dict[str, list[Refusal]] = field(default_factory=dict)
    denied: int = 0

    def refuse(self, topic: str, refused: list[Refusal]) -> None:
        """Notes what the target would not take of an upstream topic."""
        if refused:
            self.refused[topic] = refused


def survey(
    settings: FlowSettings,
    source: Reader,
    target: Reader,
    listed: Listed,
    *,
    only: Collection[str] | None = None,
    owned: Collection[Key] = (),
    deletions: Mapping[str, str] | None = None,
    created: Collection[Key] = (),
    paused: Collection[Kind] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Survey:
    """The plan for the upstream topics of `only` (None: all) and for every topic that the target lacks.

    `owned`: keys of what Lockstep created; `deletions`: names on the target, and ids, of those that may be deleted;
    `created`: keys of what the target took a moment ago, and does not show yet.

    Raises ClusterUnreachable, and RightsMissing where no topic at all may be described.
    """
    active = settings.synced - set(paused)
    remote = listed.desired.remote
    missing = {topic for topic, name in remote.items() if name not in listed.target and (name,) not in created}
    missing = missing if Kind.TOPIC in active else set()
    chosen = remote.keys() if only is None else remote.keys() & only
    compared = {topic for topic in chosen if remote[topic] in listed.target} if Kind.TOPIC_CONFIG in active else set()
    known = _known_configs(target, listed) if missing else frozenset()
    found = _compare(settings, source, target, remote, missing, compared, progress, known)
    # Where configs are not synced, what may not be read keeps that topic away, and no other.
    if chosen == remote.keys() and Kind.TOPIC_CONFIG in active:
        _raise_if_unobserved(settings, found, len(missing) + len(compared))
    topic_changes: list[Change] = []
    mine = {key[0] for key in owned} & listed.target.keys()
    if Kind.TOPIC in active:
        topic_changes = plan_topics(listed.desired, listed.target, found.creations, settings.replication_factor)
        topic_changes += plan_topic_deletions(listed.target, deletions or {})
    drifts = [drift for of_topic in found.drifts.values() for drift in of_topic]
    plan = make_plan(
        settings.flow,
        [*topic_changes, *found.changes],
        refused=[*listed.desired.refused, *(one for of_topic in found.refused.values() for one in of_topic)],
        errors=found.unobserved.values(),
        existing={Kind.TOPIC: len(mine)},
        skipped=found.skipped,
        notes=warnings(settings.flow, drifts),
        effective=groups_of(drifts),
    )
    covered, again = frozenset(missing | compared), frozenset(found.again)
    return Survey(plan, covered, again, found.unobserved, found.drifts, found.refused)


def _known_configs(target: Reader, listed: Listed) -> frozenset[str]:
    """The names of all configs that a topic has on the target, by what it shows of any; none where it shows none."""
    for configs in target.describe_topic_configs(sorted(listed.target)[:1]).items.values():
        return frozenset(configs)
    return frozenset()


def _compare(
    settings: FlowSettings,
    source: Reader,
    target: Reader,
    remote: Mapping[str, str],
    missing: Collection[str],
    compared: Collection[str],
    progress: Callable[[int, int], None],
    known: Collection[str],
) -> _Found:
    """`known`: the names of all configs that a topic has on the target."""
    found = _Found()
    total, done = len(missing) + len(compared), 0
    for chunk in _chunks(sorted({*missing, *compared})):
        upstream = source.describe_topic_configs(chunk)
        downstream = target.describe_topic_configs([remote[topic] for topic in chunk if topic in compared])
        for topic, fault in upstream.errors.items():
            kind = Kind.TOPIC if topic in missing else Kind.TOPIC_CONFIG
            _note_fault(found, kind, topic, settings.flow.source, topic, fault)
        for topic, configs in upstream.items.items():
            name = remote[topic]
            if topic in missing:
                wanted = desired_configs(configs, settings.config_filter).overrides()
                found.creations[name], refused = split_overrides(name, wanted, known, settings.flow.target)
                found.refuse(topic, refused)
            elif name in downstream.items:
                _compare_topic(found, settings, topic, name, configs, downstream.items[name])
            elif name in downstream.errors:
                _note_fault(found, Kind.TOPIC_CONFIG, topic, settings.flow.target, name, downstream.errors[name])
        done += len(chunk)
        progress(done, total)
    return found


def _compare_topic(
    found: _Found, settings: FlowSettings, topic: str, name: str, source: TopicConfigs, target: TopicConfigs
) -> None:
    desired = desired_configs(source, settings.config_filter)
    found.skipped += desired.skipped
    changes, refused = split(plan_configs(name, desired, target), target, settings.flow.target)
    found.changes += changes
    found.refuse(topic, refused)
    if drifts := list(topic_drifts(name, source, target, settings.config_filter)):
        found.drifts[topic] = drifts


def _note_fault(found: _Found, kind: Kind, topic: str, alias: str, name: str, fault: ItemFault) -> None:
    if fault.retriable:
        # Gone in between, or not everywhere yet: the next batch's listing tells which.
        found.again.add(topic)
        return
    found.denied += fault.code in DENIED_TOPIC
    found.unobserved[topic] = Unobserved(kind, f"{name} on {alias}: {fault.needing('DESCRIBE_CONFIGS', 'TOPIC', name)}")


def _raise_if_unobserved(settings: FlowSettings, found: _Found, total: int) -> None:
    if total and found.denied == total:
        first = next(iter(found.unobserved.values())).reason
        raise RightsMissing(
            f"{settings.flow.name}: no topic's configs may be read ({first}); grant the principal "
            f"DESCRIBE_CONFIGS on the topics of {settings.flow.source} and {settings.flow.target}"
        )


def _chunks(topics: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(topics), TOPICS_IN_A_REQUEST):
        yield topics[start : start + TOPICS_IN_A_REQUEST]


# Topic configs (KIP-894): what each key should be on the target, and the difference. Pure.
#
# | the key on the source            | `use.defaults.from=target`     | `use.defaults.from=source`               |
# |----------------------------------|--------------------------------|------------------------------------------|
# | overridden on the topic          | SET to the same value          | SET to the same value                    |
# | at any default                   | no override: DELETE if there   | SET, where another value is in force     |
# | excluded by the filter           | never planned                  | never planned                            |
# | read-only or sensitive           | never touched, counted         | never touched, counted                   |
# | unknown to the source            | never touched                  | never touched                            |
#
# What is never planned is never written where IncrementalAlterConfigs is. The old AlterConfigs replaces all configs of
# a topic: `config_writer` reads them right before and writes them back, so it undoes what another client changes in
# between.
#
# An override is what is set on the topic itself. MM2 counts a broker's dynamic default as an override, too
# (`ConfigEntry.isDefault` is false for it), and so pins the source brokers' settings on each remote topic; here they
# are a default like any other.


class Goal(Enum):
    """What is wanted of a key: an override of a value, no override, or a value in force however it comes about."""

    OVERRIDE = "override"
    NO_OVERRIDE = "no override"
    IN_FORCE = "in force"


@dataclass(frozen=True, slots=True)
class DesiredConfig:
    """`value` is None for NO_OVERRIDE alone."""

    goal: Goal
    value: str | None = None

    def met_by(self, entry: ConfigEntry | None) -> bool:
        """Whether what the target has is already so."""
        if self.goal is Goal.NO_OVERRIDE:
            return entry is None or not entry.is_override
        if entry is None or entry.value != self.value:
            return False
        return self.goal is Goal.IN_FORCE or entry.is_override


@dataclass(frozen=True)
class DesiredConfigs:
    """Per config name what is wanted; `skipped` counts by reason the overrides that cannot be copied."""

    wanted: Mapping[str, DesiredConfig]
    skipped: Counter[str] = field(default_factory=Counter)

    def overrides(self) -> tuple[tuple[str, str], ...]:
        """What a topic that does not exist yet is created with."""
        return tuple(sorted((name, wanted.value) for name, wanted in self.wanted.items() if wanted.value is not None))


def desired_configs(source: TopicConfigs, rules: ConfigPropertyFilter) -> DesiredConfigs:
    """The source topic's configs in the target's terms, by the table above."""
    wanted: dict[str, DesiredConfig] = {}
    skipped: Counter[str] = Counter()
    for name, entry in source.items():
        if not rules.should_replicate_config_property(name):
            continue
        if entry.read_only or entry.sensitive:
            if entry.is_override:
                skipped["sensitive configs" if entry.sensitive else "read-only configs"] += 1
        elif entry.is_override and entry.value is not None:
            wanted[name] = DesiredConfig(Goal.OVERRIDE, entry.value)
        elif rules.should_replicate_source_default(name) and entry.value is not None:
            wanted[name] = DesiredConfig(Goal.IN_FORCE, entry.value)
        else:
            wanted[name] = DesiredConfig(Goal.NO_OVERRIDE)
    return DesiredConfigs(wanted, skipped)


def plan_configs(remote: str, desired: DesiredConfigs, target: TopicConfigs) -> list[Change]:
    """The difference of one topic. `before` is the target's override, or None when the key is at a default there."""
    changes = []
    for name, wanted in desired.wanted.items():
        entry = target.get(name)
        if wanted.met_by(entry) or (entry is not None and (entry.read_only or entry.sensitive)):
            continue
        before = entry.value if entry is not None and entry.is_override else None
        changes.append(Change(Kind.TOPIC_CONFIG, (remote, name), before, wanted.value))
    return changes
