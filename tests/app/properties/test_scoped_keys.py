"""Which of several lines holds: MM2's precedence, and the prefix `lockstep.` over it."""

from __future__ import annotations

from collections.abc import Mapping

import javaproperties
from hypothesis import given
from hypothesis import strategies as st

from app.properties import keys
from app.properties.mistakes import Findings
from app.properties.parse import parse
from app.properties.scoped_keys import Properties, ScopedKey, scoped_key
from streaming.flow import Flow

A_TO_B = Flow("a", "b")


def properties(values: Mapping[str, str], aliases: tuple[str, ...] = ("a", "b")) -> Properties:
    findings = Findings("f")
    return Properties(parse(javaproperties.dumps(values).encode(), findings), aliases, findings)


STRONGEST_FIRST = (
    "a->b.lockstep.topics",
    "lockstep.topics",
    "a->b.topics",
    "topics",
)
OTHERS = ("b->a.topics", "b->a.lockstep.topics", "topics.exclude", "a.topics", "a->b.topics.exclude")


@given(st.sets(st.sampled_from(STRONGEST_FIRST + OTHERS)))
def test_for_a_flow_the_prefix_comes_before_none_and_the_flow_before_all_flows(written: set[str]) -> None:
    holds = next((key for key in STRONGEST_FIRST if key in written), None)
    entry = properties(dict.fromkeys(written, "x")).entry("topics", A_TO_B)
    assert (entry.key if entry else None) == holds


@given(st.sets(st.sampled_from(STRONGEST_FIRST + OTHERS)))
def test_mm2_never_sees_the_prefix(written: set[str]) -> None:
    holds = next((key for key in ("a->b.topics", "topics") if key in written), None)
    entry = properties(dict.fromkeys(written, "x")).mm2_entry("topics", A_TO_B)
    assert (entry.key if entry else None) == holds


CLIENT_STRONGEST_FIRST = (
    "lockstep.a->b.source.admin.sasl.mechanism",
    "lockstep.a.admin.sasl.mechanism",
    "lockstep.a.sasl.mechanism",
    "lockstep.sasl.mechanism",
    "a->b.source.admin.sasl.mechanism",
    "a.admin.sasl.mechanism",
    "a.sasl.mechanism",
    "sasl.mechanism",
    "a->b.admin.sasl.mechanism",
    "a->b.source.cluster.sasl.mechanism",
)
CLIENT_OTHERS = (
    "b.sasl.mechanism",
    "a.consumer.sasl.mechanism",
    "a->b.target.admin.sasl.mechanism",
    "a->b.sasl.mechanism",
    "admin.sasl.mechanism",
    "b->a.source.admin.sasl.mechanism",
)


@given(st.sets(st.sampled_from(CLIENT_STRONGEST_FIRST + CLIENT_OTHERS)))
def test_client_settings_are_looked_for_where_mm2_does_in_that_order(written: set[str]) -> None:
    found = properties({key: key for key in written})
    holds = next((key for key in CLIENT_STRONGEST_FIRST if key in written), None)
    assert found.client("admin", "a", A_TO_B).get("sasl.mechanism") == holds
    of_clusters = [key for key in CLIENT_STRONGEST_FIRST if "->" not in key and key in written]
    assert found.client("admin", "a").get("sasl.mechanism") == next(iter(of_clusters), None)


def test_behind_an_alias_alone_only_addresses_and_security_are_client_settings() -> None:
    """MirrorClientConfig.CLIENT_CONFIG_DEF: `b.group.id` is the Connect worker's, not a consumer's."""
    found = properties({"b.group.id": "worker", "b.ssl.protocol": "TLSv1.3", "b.consumer.group.id": "mine"})
    assert found.client("consumer", "b") == {"ssl.protocol": "TLSv1.3", "group.id": "mine"}
    assert found.client("admin", "b") == {"ssl.protocol": "TLSv1.3"}


def test_mm2s_own_keys_that_look_like_client_settings_are_none() -> None:
    found = properties({"a->b.admin.timeout.ms": "1", "a->b.consumer.poll.timeout.ms": "1"})
    assert found.client("admin", "a", A_TO_B) == {}
    assert found.client("consumer", "a", A_TO_B) == {}


def test_the_prefix_may_stand_before_the_flow_or_behind_it() -> None:
    for written in ("lockstep.a->b.topics", "a->b.lockstep.topics"):
        assert scoped_key(written, ("a", "b")) == ScopedKey(A_TO_B, True, "topics")


def test_keys_of_lockstep_keep_their_prefix_and_may_be_a_flows() -> None:
    for written in ("lockstep.a->b.observe.rate", "a->b.lockstep.observe.rate"):
        assert scoped_key(written, ("a", "b")) == ScopedKey(A_TO_B, True, "lockstep.observe.rate")
    assert scoped_key("lockstep.observe.rate", ("a", "b")) == ScopedKey(None, True, "lockstep.observe.rate")
    assert scoped_key("observe.rate", ("a", "b")) == ScopedKey(None, False, "observe.rate")


def test_the_longest_alias_takes_a_key() -> None:
    assert scoped_key("us.east.ssl.protocol", ("us", "us.east")) == ScopedKey("us.east", False, "ssl.protocol")


def test_a_key_that_holds_for_all_is_not_taken_for_a_clusters_of_that_name() -> None:
    assert scoped_key("topics.exclude", ("topics", "b")) == ScopedKey(None, False, "topics.exclude")
    assert scoped_key("topics.bootstrap.servers", ("topics", "b")) == ScopedKey("topics", False, "bootstrap.servers")
    assert scoped_key("lockstep.http.port", ("http", "b")) == ScopedKey(None, True, "lockstep.http.port")


def test_two_spellings_of_one_key_are_a_warning_and_the_last_one_holds() -> None:
    findings = Findings("f")
    entries = parse(b"lockstep.a->b.topics=x\na->b.lockstep.topics=y\n", findings)
    entry = Properties(entries, ("a", "b"), findings).entry("topics", A_TO_B)
    assert entry is not None
    assert entry.value == "y"
    assert "says the same as lockstep.a->b.topics in line 1" in findings.warnings[0].message


def test_an_interval_of_mm2s_holds_for_lockstep_with_the_prefix_only() -> None:
    key = keys.SYNC_TOPIC_CONFIGS_INTERVAL
    assert properties({key.name: "5", f"a->b.{key.name}": "6"}).get(key, A_TO_B) is None
    assert properties({key.name: "5", f"lockstep.{key.name}": "7"}).get(key, A_TO_B) == 7


def test_a_plug_in_gets_what_holds_for_its_flow_by_bare_names() -> None:
    found = properties(
        {
            "topics": "all",
            "a->b.topics": "flow",
            "groups": "mm2",
            "lockstep.groups": "ours",
            "my.own.key": "1",
            "b->a.other": "x",
            "b.sasl.jaas.config": "hush",
            "lockstep.observe.rate": "5",
        }
    )
    assert found.of_flow(A_TO_B) == {
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "topics": "flow",
        "groups": "ours",
        "my.own.key": "1",
        "lockstep.observe.rate": "5",
    }
