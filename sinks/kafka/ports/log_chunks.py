"""How a log that is too long to be held at once is divided. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sinks.kafka.ports.cluster import CHUNK, CHUNK_BYTES, Placed


def in_chunks(records: Iterable[Placed]) -> Iterator[list[Placed]]:
    """All of them in their order, at most `CHUNK` records and `CHUNK_BYTES` bytes at a time; a record that has more
    bytes comes alone. An empty chunk where there are none. Raises as `records` does."""
    chunk: list[Placed] = []
    held = 0
    for record in records:
        size = len(record.key) + len(record.value or b"")
        if chunk and (len(chunk) == CHUNK or held + size > CHUNK_BYTES):
            yield chunk
            chunk, held = [], 0
        chunk.append(record)
        held += size
    yield chunk
