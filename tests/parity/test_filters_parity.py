"""The same names let through by our filters and by Kafka's own, over generated patterns and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from streaming.errors import LockstepError
from streaming.mm2.java_regex import compile_java
from streaming.mm2.replication_filters import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter
from tests.parity.kafka_classes import Kafka

ASKED = {
    DefaultTopicFilter: ("topics", {"should_replicate_topic": "shouldReplicateTopic"}),
    DefaultGroupFilter: ("groups", {"should_replicate_group": "shouldReplicateGroup"}),
    DefaultConfigPropertyFilter: (
        "config.properties",
        {
            "should_replicate_config_property": "shouldReplicateConfigProperty",
            "should_replicate_source_default": "shouldReplicateSourceDefault",
        },
    ),
}
NAMES = st.sampled_from(
    [
        "orders",
        "a.orders",
        "a.replica",
        "mm2-offsets.a.internal",
        "my.internal",
        "connect-configs",
        "__consumer_offsets",
        "console-consumer-1",
        "min.insync.replicas",
        "min-insync-replicas",
        "retention.ms",
        "",
    ]
) | st.text("abAB1._- é", max_size=4)
LISTS = st.lists(
    NAMES | st.sampled_from([".*", "a.*", "a|b", "(?i)ORDERS", "(a", "b)", "[a", "b]", "a{2}", ".*(?<!internal)", "["]),
    max_size=4,
).flatmap(lambda parts: st.sampled_from([",", " , ", ",\t", ",\xa0"]).map(lambda comma: comma.join(parts)))


def configured(make: Any, properties: Mapping[str, str]) -> Any:
    """None where the properties are refused."""
    made = make()
    try:
        made.configure(dict(properties))
    except (LockstepError, Py4JJavaError):
        return None
    return made


@pytest.mark.parametrize("kind", ASKED)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_list_lets_through_what_kafkas_filter_does_and_is_refused_where_kafka_refuses_it(
    kafka: Kafka, kind: type, data: st.DataObject
) -> None:
    key, methods = ASKED[kind]
    sides = st.sampled_from(["source", " source\t", "target", "Source", "", "\u2003source"])
    keys = {key: LISTS, f"{key}.exclude": LISTS, "use.defaults.from": sides}
    properties = data.draw(st.fixed_dictionaries({}, optional=keys))
    mine, theirs = configured(kind, properties), configured(getattr(kafka.mirror, kind.__name__), properties)
    assert (mine is None) == (theirs is None)
    assume(mine is not None)
    for name in data.draw(st.lists(NAMES, min_size=1, max_size=4)):
        for method, java_method in methods.items():
            assert getattr(mine, method)(name) == getattr(theirs, java_method)(name), (method, name)


@pytest.mark.parametrize("kind", ASKED)
@settings(max_examples=20, deadline=None)
@given(NAMES)
def test_a_filter_that_nobody_configured_does_what_kafkas_does(kafka: Kafka, kind: type, name: str) -> None:
    for method, java_method in ASKED[kind][1].items():
        assert getattr(kind(), method)(name) == getattr(getattr(kafka.mirror, kind.__name__)(), java_method)(name)


CHARACTERS = st.sampled_from(
    [
        "a",
        "b",
        "A",
        "1",
        "-",
        "_",
        "\\.",
        "\\-",
        "\\x61",
        "\\u0062",
        "\\x{41}",
        "\\0101",
        "\\t",
        "é",
        "#",
        " ",
        "~",
        "]",
    ]
)
CLASSES = st.sampled_from(
    ["\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\h", "\\v", "\\p{Lower}", "\\P{Upper}", "\\p{Alnum}"]
)
IN_BRACKETS = (
    CHARACTERS | CLASSES | st.sampled_from(["a-c", "A-b", "^", "&", "|", "--", "[a-b]", "[^b]", ".", "$", "\\]"])
)
BRACKETS = st.builds(
    "[{}{}{}]".format,
    st.sampled_from(["", "^"]),
    st.lists(IN_BRACKETS, min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "", "&&[^b]", "&&a-c", "&&[a-c&&[^b]]", "&&[a-d]&&[^a]"]),
)
GROUPS = ["(", "(?:", "(?i:", "(?s:", "(?-i:", "(?=", "(?!", "(?<=", "(?<!"]
QUANTIFIERS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??", "{0}"])
ATOMS = (
    CHARACTERS
    | CLASSES
    | BRACKETS
    | st.sampled_from([".", "^", "$", "\\A", "\\z", "\\Z", "(?i)", "(?-i)", "(?is)", "\\Qa.b\\E"])
    | st.sampled_from(["(a|b)\\1", "(a)(b)?\\2", "(.)\\11", "(?:(a)|b)\\1*", "(?<=a|.b)"])
)


def composed(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Sequences, repetitions and alternatives of patterns, in groups or not."""
    repeated = st.builds("{}{}".format, parts, QUANTIFIERS)
    sequence = st.lists(repeated, min_size=1, max_size=3).map("".join)
    alternatives = st.lists(sequence, min_size=1, max_size=3).map("|".join)
    return sequence | st.builds("{}{})".format, st.sampled_from(GROUPS), alternatives)


PATTERNS = st.lists(st.recursive(ATOMS, composed, max_leaves=6), min_size=1, max_size=3).map("|".join)


@settings(max_examples=300, deadline=None)
@given(PATTERNS, st.lists(NAMES | st.text("abcABC1-_.#~] \té", max_size=4), min_size=5, max_size=5))
def test_a_pattern_that_we_take_matches_the_names_that_javas_does(kafka: Kafka, pattern: str, names: list[str]) -> None:
    try:
        mine = compile_java(pattern)
    except LockstepError:
        reject()
    try:
        theirs = kafka.jvm.java.util.regex.Pattern.compile(pattern)
    except Py4JJavaError:
        reject()
    for name in names:
        assert (mine.fullmatch(name) is not None) == theirs.matcher(name).matches(), name
