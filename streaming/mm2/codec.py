"""Encodes and decodes MM2's records, in plain Python.

Big-endian, after the SCHEMA constants of Kafka's Heartbeat, Checkpoint and OffsetSync classes. A STRING is an INT16
length, then that many bytes of UTF-8. A version before a value is an INT16; 0 is the only one known.

`streaming/decode.py` reads the same bytes with Spark's columns from the same `LAYOUTS` and gives the same verdict.
Tests compare it with this module, which also writes records for tests and for the demo.

This codec is stricter than MM2, which ignores bytes after the last field and does not limit names. No known MM2 writes
such bytes, and a wrong guess at their meaning would end up in group offsets.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, Final, NamedTuple

from streaming.errors import MalformedRecord
from streaming.mm2.records import Checkpoint, Heartbeat, OffsetSync, RecordKind, TopicPartition

RECORD_VERSION = 0
VERSION_SIZE = 2


class Width(Enum):
    """How a field is written. The value is its size in bytes; for STRING the size of its length."""

    STRING = 2
    INT32 = 4
    INT64 = 8


_FORMATS: Mapping[Width, struct.Struct] = {
    Width.STRING: struct.Struct(">h"),
    Width.INT32: struct.Struct(">i"),
    Width.INT64: struct.Struct(">q"),
}
_VERSION_FORMAT = struct.Struct(">h")


class FieldLayout(NamedTuple):
    """One field of a key or a value, by the name that the decoded row gives it."""

    name: str
    width: Width


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a record in order. `versioned`: an INT16 version precedes the value's fields."""

    key: tuple[FieldLayout, ...]
    value: tuple[FieldLayout, ...]
    versioned: bool


LAYOUTS: Mapping[RecordKind, Layout] = {
    RecordKind.HEARTBEAT: Layout(
        key=(FieldLayout("source", Width.STRING), FieldLayout("target", Width.STRING)),
        value=(FieldLayout("timestamp_ms", Width.INT64),),
        versioned=True,
    ),
    RecordKind.CHECKPOINT: Layout(
        key=(
            FieldLayout("group", Width.STRING),
            FieldLayout("subject_topic", Width.STRING),
            FieldLayout("subject_partition", Width.INT32),
        ),
        value=(
            FieldLayout("upstream_offset", Width.INT64),
            FieldLayout("downstream_offset", Width.INT64),
            FieldLayout("metadata", Width.STRING),
        ),
        versioned=True,
    ),
    RecordKind.OFFSET_SYNC: Layout(
        key=(FieldLayout("subject_topic", Width.STRING), FieldLayout("subject_partition", Width.INT32)),
        value=(FieldLayout("upstream_offset", Width.INT64), FieldLayout("downstream_offset", Width.INT64)),
        versioned=False,
    ),
}
"""The bytes of each record (KIP-382; Kafka 2.4 to 4.3 write the same)."""

Fields = dict[str, int | bytes]


_ATTRIBUTES = {
    "timestamp_ms": "timestamp",
    "subject_topic": "topic_partition.topic",
    "subject_partition": "topic_partition.partition",
}
"""The attribute of a record for each field whose name differs."""

_KINDS = {
    Heartbeat: RecordKind.HEARTBEAT,
    Checkpoint: RecordKind.CHECKPOINT,
    OffsetSync: RecordKind.OFFSET_SYNC,
}


def encode_record(record: Heartbeat | Checkpoint | OffsetSync) -> tuple[bytes, bytes]:
    """Returns key and value as MirrorHeartbeatTask, MirrorCheckpointTask and MirrorSourceTask write them."""
    layout = LAYOUTS[_KINDS[type(record)]]
    version = _VERSION_FORMAT.pack(RECORD_VERSION) if layout.versioned else b""
    return _write(layout.key, record), version + _write(layout.value, record)


def _write(layouts: tuple[FieldLayout, ...], record: object) -> bytes:
    written = bytearray()
    for name, width in layouts:
        field = attrgetter(_ATTRIBUTES.get(name, name))(record)
        if isinstance(field, str):
            text = field.encode("utf-8")
            written += _FORMATS[width].pack(len(text)) + text
        else:
            written += _FORMATS[width].pack(field)
    return bytes(written)


def _read(layouts: tuple[FieldLayout, ...], data: bytes, start: int, short: str, long: str) -> Fields:
    """Returns the fields of `data` from byte `start` on, strings still as bytes.

    Raises MalformedRecord: with `short` as its reason if bytes are missing, with `long` if there are too many.
    """
    fields: Fields = {}
    at = start
    for name, width in layouts:
        if at + width.value > len(data):
            raise MalformedRecord(short)
        (number,) = _FORMATS[width].unpack_from(data, at)
        at += width.value
        fields[name] = number
        if width is Width.STRING:
            if number < 0:
                raise MalformedRecord(NEGATIVE)
            if at + number > len(data):
                raise MalformedRecord(short)
            fields[name] = data[at : at + number]
            at += number
    if at < len(data):
        raise MalformedRecord(long)
    return fields


def _check_version(value: bytes) -> None:
    if len(value) < VERSION_SIZE:
        raise MalformedRecord(SHORT_VALUE)
    if _VERSION_FORMAT.unpack_from(value) != (RECORD_VERSION,):
        raise MalformedRecord(UNKNOWN_VERSION)


def _decode(kind: RecordKind, key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """Returns a record's texts and numbers by the names of their fields."""
    layout = LAYOUTS[kind]
    if value is None:
        raise MalformedRecord(TOMBSTONE)
    if key is None:
        raise MalformedRecord(NO_KEY)
    fields = _read(layout.key, key, 0, SHORT_KEY, LONG_KEY)
    if layout.versioned:
        _check_version(value)
    start = VERSION_SIZE if layout.versioned else 0
    names = [field for field in fields.values() if isinstance(field, bytes)]
    fields.update(_read(layout.value, value, start, SHORT_VALUE, LONG_VALUE))
    try:
        decoded = {name: field.decode() if isinstance(field, bytes) else field for name, field in fields.items()}
    except UnicodeDecodeError as error:
        raise MalformedRecord(NOT_UTF8) from error
    if any(isinstance(field, int) and field < 0 for field in fields.values()):
        raise MalformedRecord(NEGATIVE)
    if any(len(name) > LONGEST_NAME for name in names):
        raise MalformedRecord(LONG_NAME)
    return decoded


def decode_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat:
    """Decode a heartbeat. Raises only MalformedRecord, with one of `REASONS`."""
    fields = _decode(RecordKind.HEARTBEAT, key, value)
    return Heartbeat(fields["source"], fields["target"], fields["timestamp_ms"])


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint:
    """Decode a checkpoint. Raises only MalformedRecord, with one of `REASONS`."""
    fields = _decode(RecordKind.CHECKPOINT, key, value)
    return Checkpoint(
        fields["group"],
        TopicPartition(fields["subject_topic"], fields["subject_partition"]),
        fields["upstream_offset"],
        fields["downstream_offset"],
        fields["metadata"],
    )


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """Decode an offset-sync. Raises only MalformedRecord, with one of `REASONS`."""
    fields = _decode(RecordKind.OFFSET_SYNC, key, value)
    return OffsetSync(
        TopicPartition(fields["subject_topic"], fields["subject_partition"]),
        fields["upstream_offset"],
        fields["downstream_offset"],
    )


LONGEST_NAME: Final = 512
"""Most bytes of a name in a key. Kafka limits a topic's name to 249 characters, and a group's not at all. A micro-batch
of records with names of 32 KB would take more memory than the driver has."""

REASONS: Final = (
    "tombstone",
    "no key",
    "short key",
    "long key",
    "short value",
    "long value",
    "unknown version",
    "not UTF-8",
    "negative",
    "long name",
)
"""Why bytes are no record. The first fault found counts.

The order of the checks: a null value, a null key, the key's bytes from first to last, the value's bytes. Then text
that is not UTF-8, a partition, offset or timestamp below zero, a name in the key beyond `LONGEST_NAME`. A string's
length below zero is `negative` too, found where it stands.
"""

TOMBSTONE, NO_KEY, SHORT_KEY, LONG_KEY, SHORT_VALUE, LONG_VALUE, UNKNOWN_VERSION, NOT_UTF8, NEGATIVE, LONG_NAME = (
    REASONS
)
