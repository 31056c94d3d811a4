"""What becomes of librdkafka's errors that concern a whole request."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kafka.records.error_codes import NO_COORDINATOR, UNREACHABLE, raised


@pytest.mark.parametrize("code", sorted(UNREACHABLE | NO_COORDINATOR))
def test_what_passes_by_itself_is_waited_for_as_a_cluster_that_is_away(code: int) -> None:
    assert isinstance(raised("a", "ListGroups", KafkaError(code)), ClusterUnreachable)


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError.CLUSTER_AUTHORIZATION_FAILED])
def test_what_somebody_must_grant_is_a_missing_right(code: int) -> None:
    assert isinstance(raised("a", "ListGroups", KafkaError(code)), RightsMissing)


def test_a_partition_without_a_leader_is_no_cluster_that_is_away() -> None:
    error = raised("a", "reading t", KafkaError(KafkaError._UNKNOWN_PARTITION))
    assert not isinstance(error, ClusterUnreachable)
    assert "the partition has no leader: see that its brokers on a run" in str(error)
