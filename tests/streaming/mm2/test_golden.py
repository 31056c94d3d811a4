"""Bytes that a real MM2 wrote, kept in `tests/golden/`: the codec reads them as Kafka's classes do, and writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from streaming.mm2 import codec
from streaming.mm2.records import Checkpoint, Heartbeat, OffsetSync, RecordKind, TopicPartition

GOLDEN = Path(__file__).resolve().parent.parent.parent / "golden"

DECODE: Mapping[RecordKind, Callable[[bytes, bytes], object]] = {
    RecordKind.HEARTBEAT: codec.decode_heartbeat,
    RecordKind.CHECKPOINT: codec.decode_checkpoint,
    RecordKind.OFFSET_SYNC: codec.decode_offset_sync,
}
ENCODE: Mapping[RecordKind, Callable[..., tuple[bytes, bytes]]] = {
    RecordKind.HEARTBEAT: codec.encode_record,
    RecordKind.CHECKPOINT: codec.encode_record,
    RecordKind.OFFSET_SYNC: codec.encode_record,
}
CLASSES = {RecordKind.HEARTBEAT: Heartbeat, RecordKind.CHECKPOINT: Checkpoint, RecordKind.OFFSET_SYNC: OffsetSync}


def golden() -> list[Any]:
    """Kind, key, value and record of each row, named by what Kafka's own class said of it."""
    found = []
    for kind in RecordKind:
        for row in json.loads((GOLDEN / f"{kind}.json").read_text(encoding="utf-8"))["records"]:
            fields = row["fields"]
            if "topic_partition" in fields:
                fields["topic_partition"] = TopicPartition(**fields["topic_partition"])
            record = CLASSES[kind](**fields)
            key, value = bytes.fromhex(row["key"]), bytes.fromhex(row["value"])
            found.append(pytest.param(kind, key, value, record, id=row["kafka"]))
    return found


@pytest.mark.parametrize(("kind", "key", "value", "record"), golden())
def test_a_record_of_mm2s_is_read_as_kafkas_own_class_read_it(
    kind: RecordKind, key: bytes, value: bytes, record: object
) -> None:
    assert DECODE[kind](key, value) == record


@pytest.mark.parametrize(("kind", "key", "value", "record"), golden())
def test_a_record_is_written_in_the_bytes_that_mm2_wrote(
    kind: RecordKind, key: bytes, value: bytes, record: object
) -> None:
    assert ENCODE[kind](record) == (key, value)
