"""What is refused beforehand for Kafka 4 is what Kafka's own LogConfig refuses, and nothing that it takes."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from sinks.kinds.refused_configs import BEFORE_4, LEAST_VALUES, REMOVED_CONFIGS, why_refused
from tests.parity.kafka_classes import Kafka


def log_config(kafka: Kafka) -> Any:
    return kafka.jvm.org.apache.kafka.storage.internals.log.LogConfig


def known(kafka: Kafka) -> frozenset[str]:
    return frozenset(str(name) for name in log_config(kafka).configNames())


def takes(kafka: Kafka, name: str, value: str) -> bool:
    properties = kafka.jvm.java.util.Properties()
    properties.setProperty(name, value)
    try:
        log_config(kafka).validate(properties)
    except Py4JJavaError as error:
        assert "config" in str(error.java_exception.toString()).lower()
        return False
    return True


def test_kafka_4_knows_none_of_the_configs_that_are_gone(kafka: Kafka) -> None:
    assert not known(kafka) & {*REMOVED_CONFIGS, BEFORE_4}
    assert {"retention.ms", "segment.bytes"} <= known(kafka)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "1") for name in REMOVED_CONFIGS),
        ("no.such.config", "1"),
        ("segment.bytes", str(LEAST_VALUES["segment.bytes"] - 1)),
        ("segment.bytes", str(LEAST_VALUES["segment.bytes"])),
        ("retention.ms", "1"),
    ],
)
def test_kafkas_own_class_takes_what_is_not_refused(kafka: Kafka, name: str, value: str) -> None:
    assert takes(kafka, name, value) is (why_refused(name, value, known(kafka), "b") is None)
