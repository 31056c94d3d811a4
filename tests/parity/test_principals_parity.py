"""The same names made of principals by our mapping and by Kafka's `SslPrincipalMapper`, over generated rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, example, given, reject, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from sinks.model.principals import PrincipalMapping
from streaming.errors import LockstepError
from tests.parity.kafka_classes import Kafka

NAMES = st.sampled_from(["", "al", "Al", "CN=al,OU=x", "al@EXAMPLE", "a/b", "*"]) | st.text("abAB=,@/", max_size=5)
PATTERNS = st.sampled_from(
    [".*", "^.*$", "(.*)@EXAMPLE", "CN=(.*?),OU=(.*)", "(a)|(b)", "(?<who>.+)", r"(.+)\/b", "[^a]*", "(", "a,b", ""]
) | st.text(r"ab.*()\$", max_size=4)
REPLACEMENTS = st.sampled_from(
    ["", "x", "$1", "$1-$2", "$2$1", "$0", "$12", "$3", "${who}", "${no}", r"\$1", r"\/", r"a\\", "$", "$x"]
) | st.text(r"ab$12\{}", max_size=4)
RULES = st.builds("RULE:{}/{}/{}".format, PATTERNS, REPLACEMENTS, st.sampled_from(["", "L", "U", "X", "L "]))
TEXTS = st.lists(RULES | st.sampled_from(["DEFAULT", "", "default", "RULE:a/b"]), min_size=1, max_size=3).flatmap(
    lambda rules: st.sampled_from([",", ", ", " ,\t"]).map(lambda comma: comma.join(rules))
)


def of_kafka(kafka: Kafka, rules: str, name: str) -> str | None:
    """What Kafka makes of a name. Raises Py4JJavaError for rules that are wrong, or that fail with this name."""
    mapper: Any = kafka.jvm.org.apache.kafka.common.security.ssl.SslPrincipalMapper.fromRules(rules)
    try:
        return str(mapper.getName(name))
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() == "NoMatchingRule":
            return None
        raise


def ours(mapping: PrincipalMapping, name: str) -> str | None:
    """What the first rule that matches makes of a name."""
    return next((new for rule in mapping.rules if (new := rule.apply(name)) is not None), None)


@example("RULE:(.)(.)/$2$1$12$3/, DEFAULT", "ab")
@example("RULE:.*/x/", "ab")
@example("RULE:^CN=(.*?),OU=.*$/$1/L,DEFAULT", "CN=Al,OU=x")
@given(TEXTS, NAMES)
@settings(max_examples=250, deadline=None)
def test_rules_make_the_names_that_kafka_makes_or_are_refused(kafka: Kafka, rules: str, name: str) -> None:
    try:
        expected = of_kafka(kafka, rules, name)
    except Py4JJavaError:
        reject()
    try:
        mapping = PrincipalMapping.parse(rules)
    except LockstepError:
        reject()
    event("no rule matches" if expected is None else "mapped")
    assert ours(mapping, name) == expected


WRONG = st.sampled_from(["alice", "default", "RULE:a/b", "RULE:(/b/", "RULE:a/b/X", "DEFAULT x", "RULE:[/x/L"])


@given(WRONG, st.sampled_from(["{}", "DEFAULT, {}", "{}, RULE:a/b/"]))
@settings(max_examples=30, deadline=None)
def test_rules_that_kafka_refuses_are_refused(kafka: Kafka, wrong: str, place: str) -> None:
    rules = place.format(wrong)
    with pytest.raises(Py4JJavaError):
        of_kafka(kafka, rules, "")
    with pytest.raises(LockstepError, match="the rule"):
        PrincipalMapping.parse(rules)
