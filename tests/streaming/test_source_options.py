"""The options that a cluster's Kafka source is opened with."""

from __future__ import annotations

import pytest

from streaming.mm2.internal_topic_names import TopicRole
from streaming.mm2.records import RecordKind
from streaming.query_plan import ClusterSource
from streaming.source import MAX_OFFSETS, SPARKS_OWN, source_options


def options(**client: str) -> dict[str, str]:
    properties = {"bootstrap.servers": "h:1", **{name.replace("_", "."): value for name, value in client.items()}}
    source = ClusterSource("a", properties, {"heartbeats": TopicRole(RecordKind.HEARTBEAT)})
    return source_options(source)


def test_client_properties_keep_their_java_names_behind_sparks_prefix() -> None:
    found = options(security_protocol="SASL_SSL")
    assert found["kafka.bootstrap.servers"] == "h:1"
    assert found["kafka.security.protocol"] == "SASL_SSL"


def test_topics_are_a_pattern_read_from_the_start_and_a_loss_is_no_failure() -> None:
    found = options()
    assert found["subscribePattern"] == r"^(?:\Qheartbeats\E)$"
    assert (found["startingOffsets"], found["failOnDataLoss"]) == ("earliest", "false")


def test_what_the_file_says_of_a_client_holds_over_our_default() -> None:
    assert options()["kafka.fetch.max.wait.ms"] == "20"
    assert options(fetch_max_wait_ms="100")["kafka.fetch.max.wait.ms"] == "100"


@pytest.mark.parametrize("name", sorted(SPARKS_OWN))
def test_what_spark_refuses_to_be_given_is_left_out(name: str) -> None:
    assert f"kafka.{name}" not in options(**{name.replace(".", "_"): "x"})


def test_a_batch_is_limited_so_that_what_it_says_fits_into_the_driver() -> None:
    assert options()["maxOffsetsPerTrigger"] == str(MAX_OFFSETS)
