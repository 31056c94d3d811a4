"""The same reading of `sasl.jaas.config` by ours and by Kafka's own JaasContext."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from sinks.kafka.security.jaas import parse_jaas
from streaming.errors import LockstepError
from tests.parity.kafka_classes import Kafka

Read = tuple[str, str, dict[str, str]]

WORDS = st.sampled_from(["a.B", "required", "Optional", "x", "user_1", "-", "5", "$y", "é", "ü.1"])
QUOTED = st.builds(
    lambda mark, body: f"{mark}{body}{mark}",
    st.sampled_from(["'", '"']),
    st.text("ab 0\\=;'\"n7/*é€", max_size=6),
)
MARKS = st.sampled_from(["=", ";", " ", "\n", "//", "/", "/*", "*/", "#", ","])
PIECES = st.lists(WORDS | QUOTED | MARKS | st.just(" "), max_size=12).map(" ".join)
ENTRIES = st.lists(st.tuples(WORDS, WORDS | QUOTED), max_size=4).map(
    lambda pairs: "a.Module required " + " ".join(f"{name} = {value}" for name, value in pairs) + " ;"
)


def ours(config: str) -> Read | None:
    """Module, flag and options; None where it is refused."""
    try:
        module = parse_jaas(config)
    except LockstepError:
        return None
    return module.name, module.flag, dict(module.options)


def theirs(kafka: Kafka, config: str) -> Read | None:
    """What Kafka's client makes of it."""
    security = kafka.jvm.org.apache.kafka.common
    try:
        password: Any = security.config.types.Password(config)
        context = security.security.JaasContext.loadClientContext({"sasl.jaas.config": password})
    except Py4JJavaError:
        return None
    entry = context.configurationEntries()[0]
    # Its text ends with the flag's name.
    flag = str(entry.getControlFlag().toString()).rpartition(" ")[2].upper()
    return str(entry.getLoginModuleName()), flag, dict(entry.getOptions())


def is_half_quoted(config: str) -> bool:
    """Where a line ends inside quotes Kafka closes them silently. No author means that, so ours refuses it."""
    try:
        parse_jaas(config)
    except LockstepError as error:
        return "not closed" in str(error)
    return False


def has_number_as_name(config: str) -> bool:
    """Kafka takes a number for an option without a name."""
    try:
        parse_jaas(config)
    except LockstepError as error:
        return "has no name" in str(error)
    return False


def test_kafka_reads_an_entry_of_every_kind_of_word_as_ours_does(kafka: Kafka) -> None:
    config = "a.B Optional /* who */ x='1\\'\\\\' \"y z\"=word-1 // the end\n;"
    assert theirs(kafka, config) == ours(config) == ("a.B", "OPTIONAL", {"x": "1'\\", "y z": "word-1"})


@settings(max_examples=150, deadline=None)
@given(ENTRIES)
def test_the_same_module_flag_and_options(kafka: Kafka, config: str) -> None:
    assume(not is_half_quoted(config) and not has_number_as_name(config))
    assert ours(config) == theirs(kafka, config)


@settings(max_examples=150, deadline=None)
@given(PIECES)
def test_what_one_refuses_the_other_does_too(kafka: Kafka, config: str) -> None:
    assume(not is_half_quoted(config) and not has_number_as_name(config))
    assert ours(config) == theirs(kafka, config)
