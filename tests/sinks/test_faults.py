"""What is said of a fault: no broker internals, and the right that is missing."""

from __future__ import annotations

import pytest

from sinks.faults import ItemFault, broker_text

REQUEST = (
    "Request Request(processor=1, connectionId=127.0.0.1:9092-127.0.0.1:51142-0-10, session=Session(User:restricted,"
    "/127.0.0.1), listenerName=ListenerName(SASL), securityProtocol=SASL_PLAINTEXT, buffer=null) is not authorized."
)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (REQUEST, ""),
        (None, ""),
        ("null", ""),
        (
            "org.apache.kafka.common.errors.PolicyViolationException: no more than 10 partitions",
            "no more than 10 partitions",
        ),
        ("java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.TimeoutException: late", "late"),
        (
            "Invalid value org.apache.kafka.common.config.ConfigException: value should be at least half for x",
            "Invalid value value should be at least half for x",
        ),
        ("Invalid value -5 for configuration retention.ms", "Invalid value -5 for configuration retention.ms"),
        ("Topic 'a.b' collides with existing topics: a_b", "Topic 'a.b' collides with existing topics: a_b"),
    ],
)
def test_broker_s_words_lose_its_internals(said: str | None, shown: str) -> None:
    assert broker_text(said) == shown


def test_denied_fault_names_the_right_and_other_faults_stay_as_they_are() -> None:
    denied = ItemFault("TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed.")
    named = denied.needing("ALTER_CONFIGS", "TOPIC", "a.orders")
    assert str(named) == "TOPIC_AUTHORIZATION_FAILED: ALTER_CONFIGS on TOPIC a.orders is missing"
    assert named.is_denied
    other = ItemFault("POLICY_VIOLATION", "no")
    assert other.needing("CREATE", "TOPIC", "x") == other
