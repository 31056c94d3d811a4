"""The codec against itself and against bytes that no MM2 wrote."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import MalformedRecord
from streaming.mm2 import codec
from streaming.mm2.codec import LAYOUTS, REASONS
from streaming.mm2.records import MAX_INT32, MAX_INT64, Checkpoint, Heartbeat, OffsetSync, RecordKind, TopicPartition

Encoded = tuple[bytes, bytes]
Decode = Callable[[bytes | None, bytes | None], object]

texts = st.text(st.characters(codec="utf-8"), max_size=40)
longs = st.integers(0, MAX_INT64)
topic_partitions = st.builds(TopicPartition, texts, st.integers(0, MAX_INT32))
heartbeats = st.builds(Heartbeat, texts, texts, longs)
checkpoints = st.builds(Checkpoint, texts, topic_partitions, longs, longs, texts)
offset_syncs = st.builds(OffsetSync, topic_partitions, longs, longs)

DECODERS: dict[RecordKind, Decode] = {
    RecordKind.HEARTBEAT: codec.decode_heartbeat,
    RecordKind.CHECKPOINT: codec.decode_checkpoint,
    RecordKind.OFFSET_SYNC: codec.decode_offset_sync,
}
ENCODERS: dict[RecordKind, Callable[..., Encoded]] = {
    RecordKind.HEARTBEAT: codec.encode_record,
    RecordKind.CHECKPOINT: codec.encode_record,
    RecordKind.OFFSET_SYNC: codec.encode_record,
}
encoded_records = st.one_of(
    st.tuples(st.just(RecordKind.HEARTBEAT), heartbeats.map(codec.encode_record)),
    st.tuples(st.just(RecordKind.CHECKPOINT), checkpoints.map(codec.encode_record)),
    st.tuples(st.just(RecordKind.OFFSET_SYNC), offset_syncs.map(codec.encode_record)),
)


def verdict(kind: RecordKind, key: bytes | None, value: bytes | None) -> str | None:
    """The reason, or None for a record; any other exception fails the test."""
    try:
        DECODERS[kind](key, value)
    except MalformedRecord as malformed:
        return malformed.reason
    return None


def is_record_or_has_reason(kind: RecordKind, key: bytes | None, value: bytes | None) -> bool:
    """A record is one whose bytes it gives back; a reason is one of the codec's."""
    try:
        record = DECODERS[kind](key, value)
    except MalformedRecord as malformed:
        return malformed.reason in REASONS
    return ENCODERS[kind](record) == (key, value)


@given(heartbeats)
def test_a_heartbeat_is_what_its_bytes_say(heartbeat: Heartbeat) -> None:
    assert codec.decode_heartbeat(*codec.encode_record(heartbeat)) == heartbeat


@given(checkpoints)
def test_a_checkpoint_is_what_its_bytes_say(checkpoint: Checkpoint) -> None:
    assert codec.decode_checkpoint(*codec.encode_record(checkpoint)) == checkpoint


@given(offset_syncs)
def test_an_offset_sync_is_what_its_bytes_say(sync: OffsetSync) -> None:
    assert codec.decode_offset_sync(*codec.encode_record(sync)) == sync


def test_the_bytes_are_those_of_kafkas_schemas() -> None:
    assert codec.encode_record(Heartbeat("a", "bé", 258)) == (
        b"\0\x01a\0\x03b\xc3\xa9",
        b"\0\0" + b"\0" * 6 + b"\1\2",
    )
    checkpoint = Checkpoint("g", TopicPartition("a.t", 3), 256, 7, "m")
    assert codec.encode_record(checkpoint) == (
        b"\0\x01g\0\x03a.t\0\0\0\x03",
        b"\0\0" + b"\0" * 6 + b"\1\0" + b"\0" * 7 + b"\x07" + b"\0\x01m",
    )
    assert codec.encode_record(OffsetSync(TopicPartition("t", 3), 256, 7)) == (
        b"\0\x01t\0\0\0\x03",
        b"\0" * 6 + b"\1\0" + b"\0" * 7 + b"\x07",
    )


@given(encoded_records, st.data())
def test_bytes_cut_off_anywhere_are_short(record: tuple[RecordKind, Encoded], data: st.DataObject) -> None:
    kind, (key, value) = record
    cut = data.draw(st.integers(0, len(key) - 1))
    assert verdict(kind, key[:cut], value) == codec.SHORT_KEY
    cut = data.draw(st.integers(0, len(value) - 1))
    assert verdict(kind, key, value[:cut]) == codec.SHORT_VALUE


@given(encoded_records, st.binary(min_size=1, max_size=20))
def test_bytes_after_the_last_field_are_too_many(record: tuple[RecordKind, Encoded], more: bytes) -> None:
    kind, (key, value) = record
    assert verdict(kind, key + more, value) == codec.LONG_KEY
    assert verdict(kind, key, value + more) == codec.LONG_VALUE


@given(encoded_records, st.data())
def test_mangled_bytes_are_a_record_or_have_a_reason(record: tuple[RecordKind, Encoded], data: st.DataObject) -> None:
    kind, encoded = record
    mangled = []
    for part in encoded:
        at = data.draw(st.integers(0, len(part) - 1))
        mangled.append(part[:at] + data.draw(st.binary(min_size=1, max_size=3)) + part[at + 1 :])
    assert is_record_or_has_reason(kind, *mangled)


@given(st.sampled_from(RecordKind), st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_record_or_have_a_reason(kind: RecordKind, key: bytes | None, value: bytes | None) -> None:
    assert is_record_or_has_reason(kind, key, value)


@given(encoded_records)
def test_a_null_value_is_a_tombstone_and_a_null_key_is_none(record: tuple[RecordKind, Encoded]) -> None:
    kind, (key, value) = record
    assert verdict(kind, key, None) == codec.TOMBSTONE
    assert verdict(kind, None, None) == codec.TOMBSTONE
    assert verdict(kind, None, value) == codec.NO_KEY


@given(encoded_records.filter(lambda record: LAYOUTS[record[0]].versioned), st.integers(1, 2**16 - 1))
def test_only_version_0_is_known(record: tuple[RecordKind, Encoded], version: int) -> None:
    kind, (key, value) = record
    assert verdict(kind, key, version.to_bytes(2, "big") + value[2:]) == codec.UNKNOWN_VERSION


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (codec.encode_record(Checkpoint("é" * 256, TopicPartition("t" * 512, 0), 1, 1, "m" * 32_000)), None),
        (codec.encode_record(Checkpoint("é" * 257, TopicPartition("t", 0), 1, 1, "")), codec.LONG_NAME),
        (codec.encode_record(Checkpoint("g", TopicPartition("t" * 513, 0), 1, 1, "")), codec.LONG_NAME),
    ],
)
def test_names_in_a_key_have_512_bytes_at_most(record: Encoded, reason: str | None) -> None:
    assert verdict(RecordKind.CHECKPOINT, *record) == reason


@pytest.mark.parametrize("text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"a\xc3"])
def test_text_that_is_not_utf8_has_its_own_reason(text: bytes) -> None:
    key = len(text).to_bytes(2, "big") + text + b"\0\0\0\0"
    assert verdict(RecordKind.OFFSET_SYNC, key, b"\0" * 16) == codec.NOT_UTF8


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\x01t\xff\xff\xff\xff", b"\0" * 16),
        (b"\0\x01t\0\0\0\0", b"\x80" + b"\0" * 15),
        (b"\0\x01t\0\0\0\0", b"\0" * 8 + b"\xff" * 8),
        (b"\xff\xfft\0\0\0\0", b"\0" * 16),
    ],
    ids=["partition", "upstream offset", "downstream offset", "length"],
)
def test_what_lies_below_zero_is_negative(key: bytes, value: bytes) -> None:
    assert verdict(RecordKind.OFFSET_SYNC, key, value) == codec.NEGATIVE


def test_every_layout_is_of_the_form_that_the_columns_read() -> None:
    """`streaming.decode` reads one or two strings and perhaps an INT32, then INT64s and perhaps one string."""
    for layout in LAYOUTS.values():
        key, value = ([part.width.name for part in parts] for parts in (layout.key, layout.value))
        assert key in (["STRING"] * 2, ["STRING", "INT32"], ["STRING", "STRING", "INT32"])
        assert value in (["INT64"], ["INT64"] * 2, ["INT64", "INT64", "STRING"])
