"""ACLs that the JVM wrote as JSON are those that Kafka's client has, and nothing is guessed."""

from __future__ import annotations

import pytest

from sinks.kafka.jvm.jvm_acls import bindings_of
from sinks.kafka.ports.acl_binding import AclBinding
from tests.sinks.kinds.acls.acl_builders import acl

ONE = """[{"pattern": {"resourceType": "%s", "name": "grüße \\"x\\"", "patternType": "PREFIXED"},
"entry": {"data": {"principal": "User:CN=al,OU=x y", "host": "10.0.0.1", "operation": "%s",
"permissionType": "DENY"}}}]"""


def test_each_word_comes_over_as_it_is() -> None:
    expected = AclBinding("TOPIC", 'grüße "x"', "PREFIXED", "User:CN=al,OU=x y", "10.0.0.1", "DESCRIBE_CONFIGS", "DENY")
    assert bindings_of(ONE % ("TOPIC", "DESCRIBE_CONFIGS")) == {expected}


def test_a_word_of_a_newer_kafka_is_unknown_so_that_it_is_never_written() -> None:
    (found,) = bindings_of(ONE % ("TOPIC", "TELEPORT"))
    assert not found.is_known
    (found,) = bindings_of(ONE % ("SPACESHIP", "READ"))
    assert not found.is_known


@pytest.mark.parametrize("text", ['[{"pattern": {}}]', '[{"resource": 1}]', "[1]", '{"a": 1}', "x"])
def test_what_is_told_in_another_way_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        bindings_of(text)


def test_words_are_kept_once_however_many_acls_have_them() -> None:
    first, second = bindings_of(f"[{ONE[1:-1] % ('TOPIC', 'READ')},{ONE[1:-1] % ('TOPIC', 'WRITE')}]")
    assert first.principal is second.principal
    assert acl("ALLOW READ User:al TOPIC x") not in {first, second}
