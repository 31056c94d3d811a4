"""JSON that is kept takes the memory of its bytes."""

from __future__ import annotations

import tracemalloc

import orjson

from sinks.model.changes import compact_json

KEPT = 1000


def test_what_is_kept_takes_little_more_memory_than_its_bytes() -> None:
    compact_json([])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [compact_json(["acl", "TOPIC", str(number)]) for number in range(KEPT)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(kept) < 200


def test_it_is_spelt_as_orjson_spells_it() -> None:
    value = {"b": [1, "ä"], "a": None}
    assert compact_json(value) == orjson.dumps(value)
