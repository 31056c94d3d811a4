"""What is set on neither side and in force with different values is told, with both levels and what to do."""

from __future__ import annotations

import pytest

from sinks.kafka.ports.cluster import ConfigEntry, Origin
from sinks.kafka.ports.config_levels import LevelledEntry, Levels
from sinks.kinds.brokers.controller import broker_drifts
from sinks.kinds.effective import Drift, Side, effective_side, warnings
from sinks.kinds.topics.config_rules import plan_configs
from sinks.model.changes import Kind
from tests.contract.level_looks import ONE
from tests.memory.memory_levels import MemoryLevels
from tests.sinks.builders import FLOW, config_filter, override
from tests.sinks.kinds.brokers.broker_builders import level, put, rules

RETENTION = "retention.ms"
SAME_DEFAULTS = "set use.defaults.from=source, or make the brokers' defaults the same"
WEEK, DAY = ConfigEntry("604800000", Origin.DEFAULT), ConfigEntry("86400000", Origin.CLUSTER)


def drifts(source: ConfigEntry, target: ConfigEntry, name: str = RETENTION, **properties: str) -> list[Drift]:
    rules = config_filter({key.replace("_", "."): value for key, value in properties.items()})
    return plan_configs("a.x", {name: source}, {name: target}, rules, known=(), alias="b").drifts


def test_topic_config_at_two_defaults_with_two_values_is_drift() -> None:
    assert drifts(WEEK, DAY) == [
        Drift(Kind.TOPIC_CONFIG, "a.x", RETENTION, Side("604800000", Origin.DEFAULT), Side("86400000", Origin.CLUSTER))
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (WEEK, WEEK),
        (WEEK, ConfigEntry("604800000", Origin.CLUSTER)),
        (override("1"), DAY),
        (WEEK, override("1")),
        (WEEK, ConfigEntry(None, Origin.DEFAULT, sensitive=True)),
    ],
)
def test_equal_values_and_what_the_plan_writes_are_no_such_drift(source: ConfigEntry, target: ConfigEntry) -> None:
    assert drifts(source, target) == []


def test_source_s_defaults_mend_it_and_excluded_configs_are_nobody_s_business() -> None:
    assert drifts(WEEK, DAY, use_defaults_from="source") == []
    assert drifts(ConfigEntry("1", Origin.DEFAULT), ConfigEntry("2", Origin.CLUSTER), "min.insync.replicas") == []


@pytest.mark.parametrize(("target", "told"), [("3.0-IV1", False), ("2.7-IV2", True)])
def test_record_format_that_the_target_does_not_heed_is_no_drift(target: str, told: bool) -> None:
    there = ConfigEntry(target, Origin.DEFAULT)
    assert bool(drifts(ConfigEntry("2.8-IV1", Origin.DEFAULT), there, "message.format.version")) == told


def of_brokers(source: Levels, target: Levels) -> list[Drift]:
    return list(broker_drifts(source, target, rules()))


def broker(name: str, *values: tuple[str, Origin]) -> Levels:
    synonyms = tuple(synonym for value, origin in values for synonym in level(name, value, origin).synonyms)
    return {name: LevelledEntry(values[0][0], values[0][1], synonyms=synonyms)}


def test_brokers_whose_files_differ_are_drift_and_what_the_plan_copies_is_not() -> None:
    name = "log.segment.bytes"
    built_in = broker(name, ("1073741824", Origin.DEFAULT))
    in_file = broker(name, ("5", Origin.STATIC), ("1073741824", Origin.DEFAULT))
    cluster_wide = broker(name, ("5", Origin.CLUSTER), ("1073741824", Origin.DEFAULT))
    assert [(one.source.value, one.target.value) for one in of_brokers(in_file, built_in)] == [("5", "1073741824")]
    assert of_brokers(cluster_wide, built_in) == []
    assert len(of_brokers(built_in, cluster_wide)) == 1


def test_override_on_one_broker_is_a_trial_and_does_not_count() -> None:
    name = "num.io.threads"
    trial = broker(name, ("16", Origin.BROKER), ("8", Origin.DEFAULT))
    assert of_brokers(trial, broker(name, ("8", Origin.DEFAULT))) == []


def test_retention_in_hours_counts_where_none_is_set_in_milliseconds() -> None:
    def hours(value: str, origin: Origin) -> Levels:
        older = broker("log.retention.hours", (value, origin))
        return {"log.retention.ms": LevelledEntry(None, Origin.DEFAULT), **older}

    assert effective_side(hours("168", Origin.DEFAULT), "log.retention.ms") == Side("604800000", Origin.DEFAULT)
    assert effective_side(hours("-1", Origin.STATIC), "log.retention.ms") == Side("-1", Origin.STATIC)
    (drift,) = of_brokers(hours("168", Origin.DEFAULT), hours("24", Origin.STATIC))
    assert (drift.name, drift.target) == ("log.retention.ms", Side("86400000", Origin.STATIC))


def test_levels_of_two_clusters_are_compared_as_they_are_described() -> None:
    source, target = MemoryLevels("a"), MemoryLevels("b", static={"log.retention.bytes": "5"})
    put(source, {"num.io.threads": "9"})
    found = of_brokers(source.describe([ONE]).items[ONE], target.describe([ONE]).items[ONE])
    assert [(one.name, one.source, one.target) for one in found] == [
        ("log.retention.bytes", Side("-1", Origin.DEFAULT), Side("5", Origin.STATIC))
    ]


def test_warning_names_both_values_with_their_levels_and_the_remedy() -> None:
    assert warnings(FLOW, drifts(WEEK, DAY)) == [
        "retention.ms of a.x: both at their default, but the defaults differ: 604800000 on a (Kafka's built-in "
        "default), 86400000 on b (the cluster-wide default); " + SAME_DEFAULTS
    ]


def test_topics_with_the_same_two_values_are_one_warning() -> None:
    (first,) = drifts(WEEK, DAY)
    second = Drift(first.kind, "a.y", first.name, first.source, first.target)
    (warning,) = warnings(FLOW, [first, second])
    assert warning.startswith("retention.ms of 2 topics, a.x among them: both at their default")


def test_warning_of_brokers_says_whether_somebody_set_it() -> None:
    built_in, in_file = Side("1", Origin.DEFAULT), Side("2", Origin.STATIC)
    both = Drift(Kind.BROKER_CONFIG, "", "log.retention.ms", built_in, in_file)
    one = Drift(Kind.BROKER_CONFIG, "", "log.retention.ms", built_in, Side("2", Origin.CLUSTER))
    first, second = warnings(FLOW, [both, one])
    assert "log.retention.ms of the brokers: both at their default, but the defaults differ: 1 on a" in first
    assert "set on one side alone, and not copied" in second
