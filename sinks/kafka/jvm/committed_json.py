"""Committed offsets of many groups as JSON that the JVM writes: one text over the gateway instead of a call for each.

What a client wrote beside an offset, its metadata, is any text of up to 4 KB, and no business of ours: it stays there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sinks.kafka.ports.groups import Offsets
from streaming.mm2.records import MAX_INT64, TopicPartition

LEFT_OUT = {"org.apache.kafka.clients.consumer.OffsetAndMetadata": ("metadata", "leaderEpoch")}


def offsets_of(committed: Mapping[str, Any]) -> dict[str, Offsets]:
    """Of each group `{"topic-partition": {"offset": …}}`, a partition without an offset being null.

    A group whose offsets have another shape is left out."""
    places: dict[str, TopicPartition] = {}
    found: dict[str, Offsets] = {}
    for group, entries in committed.items():
        offsets: dict[TopicPartition, int] = {}
        try:
            for name, entry in entries.items():
                if entry is not None and 0 <= (offset := _whole(entry["offset"])) <= MAX_INT64:
                    # Groups share partitions, and checking each name once more would take longer than all the rest.
                    where = places.get(name)
                    if where is None:
                        topic, _, partition = name.rpartition("-")
                        where = places[name] = TopicPartition(topic, int(partition))
                    offsets[where] = offset
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # of another version of Kafka's client
        found[group] = offsets
    return found


def _whole(value: object) -> int:
    if type(value) is not int:
        raise ValueError(value)
    return value
