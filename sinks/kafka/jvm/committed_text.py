"""Committed offsets of many groups as Java prints them: one string over the gateway instead of a call for each. Pure.

`Map.values().toString()` of what `Admin.listConsumerGroupOffsets` answers. The grammar is read whole or not at all:
metadata is any text of whoever committed, and one that could be taken for something else makes the answer unreadable.
"""

from __future__ import annotations

import re

from sinks.kafka.ports.groups import Offsets
from streaming.mm2.records import TopicPartition

_TOPIC = r"[a-zA-Z0-9._-]+"
_OFFSET = r"OffsetAndMetadata\{offset=(-?\d+), leaderEpoch=(?:null|-?\d+), metadata='[^'{}\[\]]*'\}"
_ENTRY = re.compile(rf"({_TOPIC})-(\d+)=(?:null|{_OFFSET})")


def offsets_of(text: str, count: int) -> list[Offsets] | None:
    """The offsets of each of so many groups, in order; None where the text is not understood."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    found: list[Offsets] = []
    places: dict[tuple[str, str], TopicPartition] = {}
    position, end = 1, len(text) - 1
    while position < end:
        if found:
            if not text.startswith(", ", position):
                return None
            position += 2
        taken = _map_at(text, position, places)
        if taken is None:
            return None
        offsets, position = taken
        found.append(offsets)
    return found if len(found) == count else None


def _map_at(text: str, position: int, places: dict[tuple[str, str], TopicPartition]) -> tuple[Offsets, int] | None:
    """One group's map, which begins here, and where it ends. `places`: partitions that were met before."""
    if not text.startswith("{", position):
        return None
    position += 1
    offsets: dict[TopicPartition, int] = {}
    if text.startswith("}", position):
        return offsets, position + 1
    while (entry := _ENTRY.match(text, position)) is not None:
        topic, partition, offset = entry.groups()
        if offset is not None and int(offset) >= 0:
            where = places.get((topic, partition))
            if where is None:
                # Groups share partitions, and checking each name once more would take longer than all the rest.
                where = places[topic, partition] = TopicPartition(topic, int(partition))
            offsets[where] = int(offset)
        position = entry.end()
        if text.startswith("}", position):
            return offsets, position + 1
        if not text.startswith(", ", position):
            return None
        position += 2
    return None


def names_of(text: str, requested: frozenset[str]) -> list[str] | None:
    """The keys of such a map in order (`keySet().toString()`); None unless they are those that were asked for."""
    names = text[1:-1].split(", ") if len(text) > 2 else []
    return names if len(names) == len(requested) and requested == set(names) else None
