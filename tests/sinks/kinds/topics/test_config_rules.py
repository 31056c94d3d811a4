"""KIP-894 row by row, then as properties: a plan that was applied leaves nothing to plan."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.flow_settings import Incremental
from sinks.kafka.ports.cluster import ConfigEntry, Origin, TopicConfigs
from sinks.kinds.topics.config_rules import plan_configs
from sinks.kinds.topics.writer import ConfigWriter
from sinks.model.changes import Change
from streaming.mm2.replication_filters import ConfigPropertyFilter
from tests.memory.memory_cluster import BUILT_IN, MemoryCluster
from tests.sinks.builders import config_change, config_filter, override, put_topic

TARGET_DEFAULTS = config_filter({"use.defaults.from": "target"})
SOURCE_DEFAULTS = config_filter({"use.defaults.from": "source"})
BOTH_MODES = pytest.mark.parametrize("rules", [TARGET_DEFAULTS, SOURCE_DEFAULTS], ids=["target", "source"])
ANY_DEFAULT = pytest.mark.parametrize("origin", [Origin.DEFAULT, Origin.STATIC, Origin.CLUSTER, Origin.BROKER])
EXCLUDED = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)


def changes(
    source: dict[str, ConfigEntry], target: dict[str, ConfigEntry], rules: ConfigPropertyFilter = TARGET_DEFAULTS
) -> list[Change]:
    """What is planned for the remote topic a.t."""
    return planned_of("a.t", source, target, rules)[0]


def planned_of(
    remote: str, source: TopicConfigs, target: TopicConfigs, rules: ConfigPropertyFilter
) -> tuple[list[Change], Counter[str]]:
    """For a target whose configs are not known, so that it refuses none beforehand."""
    planned = plan_configs(remote, source, target, rules, known=(), alias="b")
    assert planned.refused == []
    return planned.changes, planned.skipped


def default(value: str | None, origin: Origin = Origin.DEFAULT) -> ConfigEntry:
    """A config that is not set on the topic."""
    return ConfigEntry(value, origin)


@BOTH_MODES
def test_override_is_set_where_the_target_has_none(rules: ConfigPropertyFilter) -> None:
    planned = changes({"retention.ms": override("1")}, {"retention.ms": default("604800000")}, rules)
    assert planned == [config_change("a.t", "retention.ms", None, "1")]


@BOTH_MODES
def test_override_is_set_where_the_target_has_another(rules: ConfigPropertyFilter) -> None:
    planned = changes({"retention.ms": override("1")}, {"retention.ms": override("2")}, rules)
    assert planned == [config_change("a.t", "retention.ms", "2", "1")]


@BOTH_MODES
def test_override_is_set_though_the_target_default_is_the_same_today(rules: ConfigPropertyFilter) -> None:
    planned = changes({"retention.ms": override("1")}, {"retention.ms": default("1")}, rules)
    assert planned == [config_change("a.t", "retention.ms", None, "1")]


@BOTH_MODES
def test_override_unknown_to_the_target_is_tried(rules: ConfigPropertyFilter) -> None:
    assert changes({"new.config": override("1")}, {}, rules) == [config_change("a.t", "new.config", None, "1")]


@BOTH_MODES
def test_same_override_is_no_change(rules: ConfigPropertyFilter) -> None:
    assert changes({"retention.ms": override("1")}, {"retention.ms": override("1")}, rules) == []


@ANY_DEFAULT
def test_key_at_any_default_of_the_source_is_deleted_on_the_target(origin: Origin) -> None:
    planned = changes({"retention.ms": default("7", origin)}, {"retention.ms": override("1")})
    assert planned == [config_change("a.t", "retention.ms", "1", None)]


def test_override_with_the_value_of_the_source_default_is_deleted_too() -> None:
    planned = changes({"retention.ms": default("7")}, {"retention.ms": override("7")})
    assert planned == [config_change("a.t", "retention.ms", "7", None)]


@ANY_DEFAULT
def test_keys_at_defaults_on_both_sides_are_left_alone_whatever_the_values(origin: Origin) -> None:
    assert changes({"retention.ms": default("7", origin)}, {"retention.ms": default("9")}) == []


@ANY_DEFAULT
def test_source_default_is_set_where_another_value_is_in_force(origin: Origin) -> None:
    source = {"retention.ms": default("7", origin)}
    assert changes(source, {"retention.ms": default("9")}, SOURCE_DEFAULTS) == [
        config_change("a.t", "retention.ms", None, "7")
    ]
    assert changes(source, {"retention.ms": override("9")}, SOURCE_DEFAULTS) == [
        config_change("a.t", "retention.ms", "9", "7")
    ]


@pytest.mark.parametrize("entry", [default("7"), default("7", Origin.STATIC), override("7")])
def test_source_default_that_is_in_force_already_is_no_change(entry: ConfigEntry) -> None:
    assert changes({"retention.ms": default("7")}, {"retention.ms": entry}, SOURCE_DEFAULTS) == []


@pytest.mark.parametrize("value", ["", None])
def test_source_default_without_a_value_is_no_value_to_set(value: str | None) -> None:
    planned = changes({"retention.ms": default(value)}, {"retention.ms": override("1")}, SOURCE_DEFAULTS)
    assert planned == [config_change("a.t", "retention.ms", "1", value)]


@BOTH_MODES
@pytest.mark.parametrize("name", EXCLUDED)
@pytest.mark.parametrize("source", [override("1"), default("1")])
@pytest.mark.parametrize("target", [override("2"), default("2")])
def test_excluded_keys_are_never_touched(
    rules: ConfigPropertyFilter, name: str, source: ConfigEntry, target: ConfigEntry
) -> None:
    assert changes({name: source}, {name: target}, rules) == []


@BOTH_MODES
@pytest.mark.parametrize("target", [override("2"), default("2"), None])
@pytest.mark.parametrize(
    ("source", "reason"),
    [(override("1", read_only=True), "read-only configs"), (override(None, sensitive=True), "sensitive configs")],
)
def test_read_only_and_sensitive_overrides_are_counted_and_never_written(
    rules: ConfigPropertyFilter, source: ConfigEntry, reason: str, target: ConfigEntry | None
) -> None:
    assert planned_of("a.t", {"x": source}, {"x": target} if target else {}, rules) == ([], Counter({reason: 1}))


@BOTH_MODES
def test_read_only_defaults_are_nothing_to_count(rules: ConfigPropertyFilter) -> None:
    source = {"x": ConfigEntry("1", Origin.STATIC, read_only=True)}
    assert planned_of("a.t", source, {}, rules) == ([], Counter())


@BOTH_MODES
@pytest.mark.parametrize("source", [override("1"), default("1")])
@pytest.mark.parametrize("target", [override("2", read_only=True), override(None, sensitive=True)])
def test_what_is_read_only_or_sensitive_on_the_target_is_not_written(
    rules: ConfigPropertyFilter, source: ConfigEntry, target: ConfigEntry
) -> None:
    assert changes({"x": source}, {"x": target}, rules) == []


@BOTH_MODES
def test_keys_unknown_to_the_source_are_never_touched(rules: ConfigPropertyFilter) -> None:
    assert changes({}, {"newer.config": override("1")}, rules) == []


def created_with(source: dict[str, ConfigEntry], rules: ConfigPropertyFilter) -> list[tuple[str, str | None]]:
    """What of the source's configs a topic has that the target lacked."""
    return sorted((one.key[1], str(one.after)) for one in changes(source, {}, rules))


def test_new_topic_is_created_with_overrides_alone() -> None:
    source = {"retention.ms": override("1"), "retention.bytes": default("2"), "min.insync.replicas": override("2")}
    assert created_with(source, TARGET_DEFAULTS) == [("retention.ms", "1")]


def test_new_topic_is_created_with_source_defaults_where_they_are_asked_for() -> None:
    source = {"retention.ms": override("1"), "retention.bytes": default("2"), "min.insync.replicas": override("2")}
    assert created_with(source, SOURCE_DEFAULTS) == [("retention.bytes", "2"), ("retention.ms", "1")]


def test_wanted_override_is_not_met_by_a_default() -> None:
    wanted = config_change("a.t", "x", None, "1")
    assert changes({"x": override("1")}, {"x": default("1")}, SOURCE_DEFAULTS) == [wanted]
    assert changes({"x": default("1")}, {"x": default("1")}, SOURCE_DEFAULTS) == []
    assert changes({"x": default("1")}, {}, TARGET_DEFAULTS) == []


NAMES = st.sampled_from(sorted(BUILT_IN))
VALUES = st.sampled_from(["", "1", "2", BUILT_IN["retention.ms"]])
OVERRIDES = st.dictionaries(NAMES, VALUES, max_size=6)
EXCLUDES = st.sampled_from(["", "retention.*", r"min\.insync\.replicas, cleanup.policy", ".*"])
RULES = st.builds(
    lambda excludes, defaults: config_filter({"config.properties.exclude": excludes, "use.defaults.from": defaults}),
    EXCLUDES,
    st.sampled_from(["source", "target"]),
)
MODES = st.sampled_from(list(Incremental))


def cluster(alias: str, defaults: dict[str, str], overrides: dict[str, str]) -> MemoryCluster:
    """A cluster with the one topic t."""
    built = MemoryCluster(alias, defaults=defaults)
    put_topic(built, "t")
    built.topics["t"].overrides = dict(overrides)
    return built


def planned_between(source: MemoryCluster, target: MemoryCluster, rules: ConfigPropertyFilter) -> list[Change]:
    """The plan for the one topic of both."""
    upstream, downstream = (one.describe_topic_configs(["t"]).items["t"] for one in (source, target))
    return planned_of("t", upstream, downstream, rules)[0]


@given(OVERRIDES, OVERRIDES, OVERRIDES, OVERRIDES, RULES, MODES)
@settings(max_examples=150, deadline=None)
def test_applying_a_plan_leaves_nothing_to_plan(
    source_defaults: dict[str, str],
    source_overrides: dict[str, str],
    target_defaults: dict[str, str],
    target_overrides: dict[str, str],
    rules: ConfigPropertyFilter,
    mode: Incremental,
) -> None:
    source = cluster("a", source_defaults, source_overrides)
    target = cluster("b", target_defaults, target_overrides)
    outcomes = ConfigWriter(target, mode).write(planned_between(source, target, rules))
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert planned_between(source, target, rules) == []


@given(OVERRIDES, OVERRIDES, RULES)
@settings(max_examples=50, deadline=None)
def test_cluster_planned_against_itself_is_in_step(
    defaults: dict[str, str], overrides: dict[str, str], rules: ConfigPropertyFilter
) -> None:
    source = cluster("a", defaults, overrides)
    assert planned_between(source, source, rules) == []


@given(OVERRIDES, OVERRIDES, OVERRIDES, RULES, MODES)
@settings(max_examples=100, deadline=None)
def test_excluded_keys_never_appear_and_survive_the_write(
    source_defaults: dict[str, str],
    source_overrides: dict[str, str],
    target_overrides: dict[str, str],
    rules: ConfigPropertyFilter,
    mode: Incremental,
) -> None:
    source, target = cluster("a", source_defaults, source_overrides), cluster("b", {}, target_overrides)
    planned = planned_between(source, target, rules)
    assert all(rules.should_replicate_config_property(change.key[1]) for change in planned)
    ConfigWriter(target, mode).write(planned)
    left = target.topics["t"].overrides
    for name in BUILT_IN:
        if not rules.should_replicate_config_property(name):
            assert left.get(name) == target_overrides.get(name)


@given(st.dictionaries(NAMES, st.builds(override, VALUES)), st.dictionaries(NAMES, st.builds(override, VALUES)), RULES)
@settings(max_examples=60, deadline=None)
def test_only_keys_known_to_the_source_appear(
    source: dict[str, ConfigEntry], target: dict[str, ConfigEntry], rules: ConfigPropertyFilter
) -> None:
    assert {change.key[1] for change in changes(source, target, rules)} <= source.keys()
