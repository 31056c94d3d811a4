"""The key under which groups' offsets, checkpoints and answers are stored."""

from __future__ import annotations

from streaming.mm2.records import TopicPartition

GroupPartition = tuple[str, TopicPartition]
"""A consumer group and one of its partitions, on the cluster that the use of it says."""
