"""Which cluster-wide configs the target's brokers should have, and what is done so that they have them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import LevelledEntry, Levels
from sinks.kinds.brokers.rules import (
    GROUPS,
    LEFT_OUT,
    PROPERTIES,
    BrokerConfigRules,
    desired_broker_configs,
    differing,
    plan_broker_configs,
    surplus,
    why_never,
)
from sinks.model.changes import Key, Kind, Op
from sinks.model.plan import Refusal
from streaming.errors import LockstepError
from streaming.mm2.replication_filters import CONFIG_PROPERTIES_EXCLUDE
from tests.sinks.kinds.brokers.broker_builders import broker_change, level, rules, set_cluster_wide

NAMES = ("log.retention.ms", "log.cleaner.threads", "num.io.threads")
KNOWN: Levels = {name: level(name, "1", Origin.DEFAULT) for names in GROUPS.values() for name in names}
CONFIGS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["1", "2"]))


def defaults(configs: dict[str, str]) -> Levels:
    return {name: level(name, value, Origin.CLUSTER) for name, value in configs.items()}


def owned(*names: str) -> set[Key]:
    return {("", name) for name in names}


def test_default_list_is_the_groups_of_the_kip_with_cluster_scope_but_what_mm2_leaves_out_for_topics() -> None:
    names = {name for names in GROUPS.values() for name in names}
    assert {name for name in names if rules().syncs(name)} == names - LEFT_OUT
    assert not any(rules().chooses(name) for name in ("metric.reporters", "log.retention.hours", "listeners", "x"))


@pytest.mark.parametrize("topic_config", CONFIG_PROPERTIES_EXCLUDE.split(", "))
def test_what_mm2_leaves_out_for_topics_is_left_out_by_default_for_brokers(topic_config: str) -> None:
    assert not rules().chooses(topic_config)
    assert not rules().chooses(f"log.{topic_config}")


def test_list_is_read_as_names_and_patterns() -> None:
    chosen = rules(r"log\.retention\..*, num.io.threads")
    assert [name for name in NAMES if chosen.syncs(name)] == ["log.retention.ms", "num.io.threads"]
    assert not rules("").chooses("log.retention.ms")


def test_list_that_is_none_names_its_key_and_the_pattern() -> None:
    with pytest.raises(LockstepError, match=rf"^{PROPERTIES}: .*nothing between two commas"):
        rules("log.retention.ms,,x")
    with pytest.raises(LockstepError, match=rf"^{PROPERTIES}: .*\(log"):
        BrokerConfigRules({PROPERTIES: "(log"})


@pytest.mark.parametrize(
    "name",
    [
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "listener.name.x.ssl.keystore.location",
        "listener.name.x.plain.sasl.jaas.config",
        "ssl.keystore.location",
        "sasl.enabled.mechanisms",
        "plain.sasl.jaas.config",
        "principal.builder.class",
        "node.id",
        "broker.rack",
        "log.dirs",
        "follower.replication.throttled.rate",
    ],
)
def test_what_belongs_to_one_broker_or_its_security_is_never_copied_whatever_the_list_says(name: str) -> None:
    assert why_never(name) is not None
    assert not rules(".*").syncs(name)
    source = {name: level(name, "x", Origin.CLUSTER)}
    desired = desired_broker_configs(source, rules(".*"))
    assert (dict(desired.wanted), dict(desired.skipped)) == ({}, {why_never(name): 1})


def test_what_is_set_on_the_source_is_wanted_and_what_is_not_chosen_is_not() -> None:
    source = set_cluster_wide(log_retention_ms="1", metric_reporters="x.Reporter")
    assert dict(desired_broker_configs(source, rules()).wanted) == {"log.retention.ms": "1"}


def test_sensitive_and_read_only_configs_are_counted_and_not_copied() -> None:
    source = {
        "my.token": LevelledEntry(None, Origin.CLUSTER, sensitive=True),
        "num.partitions": LevelledEntry("1", Origin.CLUSTER, read_only=True),
    }
    desired = desired_broker_configs(source, rules(".*"))
    assert not desired.wanted
    assert dict(desired.skipped) == {"sensitive broker configs": 1, "read-only broker configs": 1}


def test_missing_value_is_created_and_another_one_updated() -> None:
    desired = desired_broker_configs(set_cluster_wide(log_retention_ms="1", num_io_threads="9"), rules())
    changes, refused = plan_broker_configs(desired, set_cluster_wide(num_io_threads="4"), set(), KNOWN, "b")
    assert changes == [broker_change("log.retention.ms", None, "1"), broker_change("num.io.threads", "4", "9")]
    assert refused == []


def test_what_the_source_has_no_more_goes_if_lockstep_set_it_and_nothing_else() -> None:
    desired = desired_broker_configs({}, rules())
    target = set_cluster_wide(log_retention_ms="1", num_io_threads="4", metric_reporters="x")
    mine = owned("log.retention.ms", "metric.reporters", "background.threads")
    gone = surplus(desired, target, mine, rules())
    assert gone == {"log.retention.ms"}
    assert plan_broker_configs(desired, target, gone, {}, "b") == ([broker_change("log.retention.ms", "1", None)], [])


def test_what_the_source_has_but_hides_is_not_taken_for_removed() -> None:
    source = {"log.retention.ms": LevelledEntry(None, Origin.CLUSTER, sensitive=True)}
    desired = desired_broker_configs(source, rules())
    assert surplus(desired, set_cluster_wide(log_retention_ms="1"), owned("log.retention.ms"), rules()) == set()


def test_config_that_the_target_does_not_know_is_refused_by_its_name_and_never_the_others() -> None:
    desired = desired_broker_configs(set_cluster_wide(log_local_retention_ms="1", num_io_threads="9"), rules())
    known = {"num.io.threads": KNOWN["num.io.threads"]}
    changes, refused = plan_broker_configs(desired, {}, set(), known, "b")
    assert changes == [broker_change("num.io.threads", None, "9")]
    assert refused == [
        Refusal(
            Kind.BROKER_CONFIG,
            Op.CREATE,
            ("", "log.local.retention.ms"),
            f"the brokers of b do not know log.local.retention.ms: take it out of {PROPERTIES}, or upgrade them",
        )
    ]


def test_config_that_the_target_reads_at_its_start_only_is_refused() -> None:
    desired = desired_broker_configs(set_cluster_wide(num_io_threads="9"), rules())
    known = {"num.io.threads": LevelledEntry("8", Origin.DEFAULT, read_only=True)}
    changes, refused = plan_broker_configs(desired, {}, set(), known, "b")
    assert changes == []
    assert [one.reason for one in refused] == [
        "num.io.threads cannot change at run time on b: set it in the brokers' server.properties"
    ]


@settings(deadline=None)
@given(CONFIGS, CONFIGS, st.sets(st.sampled_from(NAMES)))
def test_after_a_plan_is_applied_nothing_is_left_to_do(
    source: dict[str, str], target: dict[str, str], mine: set[str]
) -> None:
    desired = desired_broker_configs(defaults(source), rules())
    there, keys = defaults(target), owned(*mine)
    changes, refused = plan_broker_configs(desired, there, surplus(desired, there, keys, rules()), KNOWN, "b")
    after = target | {change.key[1]: str(change.after) for change in changes if change.after is not None}
    for change in changes:
        if change.op is Op.DELETE:
            del after[change.key[1]]
    assert refused == []
    assert differing(desired, defaults(after)) == surplus(desired, defaults(after), keys, rules()) == set()
    assert after.items() >= source.items()
    assert {name: value for name, value in target.items() if name not in source and name not in mine}.items() <= (
        after.items()
    )
