"""The partition of `__consumer_offsets` that has a group's commits, as Kafka computes it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinks.kinds.offsets.polled_groups import commit_partition
from tests.parity.kafka_classes import Kafka

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=150, deadline=None)
@given(NAMES, st.integers(1, 200))
@example("polygenelubricants", 50)
def test_a_group_has_the_partition_that_kafka_computes(kafka: Kafka, group: str, partitions: int) -> None:
    """The example has the hash code -2147483648, which has no absolute value."""
    utils = kafka.jvm.org.apache.kafka.common.utils.Utils
    code = kafka.jvm.java.util.Objects.hashCode(group)
    assert commit_partition(group, partitions) == utils.abs(code) % partitions
