"""Single-object encoding, checked against the specification's own fingerprint algorithm."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime, timedelta, timezone
from typing import Any

import fastavro
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinks.ledger.avro import HEADER, SCHEMAS, SingleObject
from streaming.errors import LockstepError
from tests.sinks.builders import NOON

ENTRY, EVENT = SingleObject("ledger-entry"), SingleObject("audit-event")
EXAMPLE = {"entry": "OWNED", "key": ["topic", "a.t"], "value": "", "since": NOON}
EMPTY = 0xC15D213AA4D7A795


def _step(value: int) -> int:
    return (value >> 1) ^ (EMPTY if value & 1 else 0)


def crc_64_avro(data: bytes) -> int:
    """Avro specification 1.11, "Schema Fingerprints": the CRC-64-AVRO of these bytes."""
    table = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = _step(value)
        table.append(value)
    fingerprint = EMPTY
    for byte in data:
        fingerprint = (fingerprint >> 8) ^ table[(fingerprint ^ byte) & 0xFF]
    return fingerprint


LEDGER_CANONICAL = (
    '{"name":"lockstep.LedgerEntry","type":"record","fields":['
    '{"name":"entry","type":"string"},'
    '{"name":"key","type":{"type":"array","items":"string"}},'
    '{"name":"value","type":"string"},'
    '{"name":"since","type":"long"}]}'
)
"""The schema's Parsing Canonical Form, written by hand by the specification's rules."""


def test_fingerprint_algorithm_is_the_specifications() -> None:
    assert crc_64_avro(b'"null"') == 0x63DD24E7CC258F8A


def test_header_is_marker_and_little_endian_fingerprint_of_the_canonical_schema() -> None:
    expected = b"\xc3\x01" + crc_64_avro(LEDGER_CANONICAL.encode()).to_bytes(8, "little")
    assert ENTRY.encode(EXAMPLE)[:HEADER] == expected


def test_value_follows_the_header_as_avro_writes_it() -> None:
    millis = round(NOON.timestamp() * 1000)
    zigzag, varint = millis << 1, bytearray()
    while zigzag > 0x7F:
        varint.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    varint.append(zigzag)
    assert ENTRY.encode(EXAMPLE)[HEADER:] == b"\x0aOWNED" + b"\x04\x0atopic\x06a.t\x00" + b"\x00" + bytes(varint)


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.avsc")), ids=lambda path: path.stem)
def test_every_schema_file_parses_and_is_named_after_its_record(path: Any) -> None:
    schema = orjson.loads(path.read_bytes())
    fastavro.parse_schema(schema)
    assert re.sub(r"(?<!^)(?=[A-Z])", "-", schema["name"]).lower() == path.stem
    assert schema["doc"]


MILLIS = st.integers(0, 4_000_000_000_000).map(
    lambda millis: datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=millis)
)
TEXT = st.text(max_size=20)
ENTRIES = st.fixed_dictionaries(
    {
        "entry": st.sampled_from(["CLUSTER_ID", "OWNED", "PAUSED"]),
        "key": st.lists(TEXT, max_size=3),
        "value": TEXT,
        "since": MILLIS,
    }
)
EVENTS = st.fixed_dictionaries(
    dict.fromkeys(("source", "target", "who", "kind", "op", "digest"), TEXT)
    | dict.fromkeys(("before", "after", "error"), st.none() | TEXT)
    | {
        "at": MILLIS,
        "key": st.lists(TEXT, max_size=3),
        "result": st.sampled_from(["applied", "failed", "refused"]),
    }
)


@given(ENTRIES)
@settings(max_examples=50, deadline=None)
def test_entries_come_back_as_they_went(entry: dict[str, Any]) -> None:
    assert ENTRY.decode(ENTRY.encode(entry)) == entry


@given(EVENTS)
@settings(max_examples=50, deadline=None)
def test_events_come_back_as_they_went(event: dict[str, Any]) -> None:
    assert EVENT.decode(EVENT.encode(event)) == event


@given(st.binary(max_size=40))
@settings(max_examples=50, deadline=None)
def test_bytes_of_no_schema_are_refused_with_both_headers(data: bytes) -> None:
    with pytest.raises(LockstepError, match="ledger-entry of this version"):
        ENTRY.decode(data)


def test_value_of_another_schema_is_refused() -> None:
    with pytest.raises(LockstepError, match="audit-event of this version"):
        EVENT.decode(ENTRY.encode(EXAMPLE))


@pytest.mark.parametrize("length", range(HEADER, len(ENTRY.encode(EXAMPLE))))
def test_truncated_value_is_refused(length: int) -> None:
    with pytest.raises(LockstepError):
        ENTRY.decode(ENTRY.encode(EXAMPLE)[:length])


@given(st.integers(HEADER, len(ENTRY.encode(EXAMPLE))), st.binary(min_size=1, max_size=12))
@settings(max_examples=300, deadline=None)
@example(HEADER + 1, b"\xff\xff\xff\xff\x1f")
@example(len(ENTRY.encode(EXAMPLE)) - 6, b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
def test_damage_behind_the_header_is_a_lockstep_error_or_another_value(at: int, damage: bytes) -> None:
    data = ENTRY.encode(EXAMPLE)
    with contextlib.suppress(LockstepError):
        assert ENTRY.decode(data[:at] + damage + data[at + len(damage) :]).keys() == EXAMPLE.keys()


def test_bytes_behind_the_value_are_damage() -> None:
    with pytest.raises(LockstepError, match="2 bytes follow the value"):
        ENTRY.decode(ENTRY.encode(EXAMPLE) + b"\x00\x00")


@pytest.mark.parametrize("value", [{}, EXAMPLE | {"entry": 1}, EXAMPLE | {"more": 1}, EXAMPLE | {"value": 1}])
def test_value_that_does_not_fit_the_schema_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        ENTRY.encode(value)
