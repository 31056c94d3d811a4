"""Decodes MM2's records to rows with Spark's column expressions, so that no record passes through Python.

A record becomes one row of `DECODED_SCHEMA`. Bytes that are no record become a row as well, with one of `codec.REASONS`
in `error` and nothing else decoded. Spark 4 is ANSI by default and fails a query at the first bad cast, so no
expression here may fail. `substring` past the end returns less, `conv` of at most eight bytes cannot overflow, and
`is_valid_utf8` checks a text before its use. `codec` defines the layout of the bytes and the order of the checks.

The same few expressions read all kinds; `codec.LAYOUTS` says what differs between them. A chain of expressions for each
kind compiles to a method beyond the 8,000 bytes that the JVM's just-in-time compiler accepts, and was eight times
slower.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType

from streaming.mm2 import codec
from streaming.mm2.codec import LAYOUTS, VERSION_SIZE, Layout, Width
from streaming.mm2.records import MAX_INT32, MAX_STRING_BYTES, RecordKind

DECODED_SCHEMA = StructType(
    [
        StructField("cluster", StringType()),
        StructField("topic", StringType()),
        StructField("record", StringType()),
        StructField("source", StringType()),
        StructField("target", StringType()),
        StructField("replicated", BooleanType()),
        StructField("group", StringType()),
        StructField("subject_topic", StringType()),
        StructField("subject_partition", IntegerType()),
        StructField("upstream_offset", LongType()),
        StructField("downstream_offset", LongType()),
        StructField("timestamp_ms", LongType()),
        StructField("metadata", StringType()),
        StructField("appended_ms", LongType()),
        StructField("position", LongType()),
        StructField("error", StringType()),
    ]
)
"""A decoded row.

`cluster`, `topic`: where the record was read. `record`: a RecordKind. `source`, `target`: the flow that it is about.
`replicated`: whether it is a heartbeat that MM2 copied (see `streaming.hints`). `subject_topic`, `subject_partition`:
what a checkpoint or an offset-sync is about. `timestamp_ms`: the heartbeat's own timestamp. `appended_ms`: the
timestamp of the Kafka record that carries it, `position` its offset there. `error`: one of `codec.REASONS`, or null.
"""

_KINDS = tuple(RecordKind)
_HEARTBEAT = _KINDS.index(RecordKind.HEARTBEAT)
_ABSENT = -Width.STRING.value
"""The length of a string field that a kind lacks. With the two bytes of a length it adds up to nothing."""


def _count(layout: Layout, region: str, width: Width) -> int:
    parts = layout.key if region == "key" else layout.value
    return sum(part.width is width for part in parts)


def _version_size(layout: Layout) -> int:
    return VERSION_SIZE if layout.versioned else 0


def _least_value_size(layout: Layout) -> int:
    return _version_size(layout) + sum(part.width.value for part in layout.value)


def _by_kind(number: Callable[[Layout], int]) -> Column:
    """Returns a column that depends only on the row's kind."""
    first, *others = (number(LAYOUTS[kind]) for kind in _KINDS)
    chain = F.when(F.col("_kind") == 0, first)
    for index, other in enumerate(others, 1):
        chain = chain.when(F.col("_kind") == index, other)
    return chain


def _has(region: str, width: Width, number: int = 1) -> Column:
    """Returns whether a record of the row's kind has at least `number` fields of this width. `region`: `key` or
    `value`."""
    kinds = [index for index, kind in enumerate(_KINDS) if _count(LAYOUTS[kind], region, width) >= number]
    return F.col("_kind").isin(kinds)


def _integer(data: str, at: Column, size: int) -> Column:
    """Returns the big-endian integer of `size` bytes from byte `at`: two's complement for eight bytes, else
    unsigned."""
    return F.conv(F.hex(F.substring(F.col(data), at + 1, F.lit(size))), 16, -10).cast(LongType())


def _string_length(data: str, at: Column) -> Column:
    """Returns a STRING's length, unsigned. A length beyond `MAX_STRING_BYTES` was negative."""
    return _integer(data, at, Width.STRING.value).cast(IntegerType())


def _text(data: str, at: Column, length: str) -> Column:
    """Returns the text of the STRING at byte `at`. It may be invalid UTF-8."""
    return F.substring(F.col(data), at + Width.STRING.value + 1, F.col(length)).cast(StringType())


def _with_lengths(frame: DataFrame) -> DataFrame:
    """Add the lengths of the strings, and the byte where the numbers start. All fields' places follow from them."""
    second_length = _string_length("key", F.col("_length1") + Width.STRING.value)
    metadata_length = _string_length("value", F.col("_least_value_size") - Width.STRING.value)
    return (
        frame.withColumns(
            {
                "_kind": F.col("role.kind"),
                "_length1": _string_length("key", F.lit(0)),
            }
        )
        .withColumns(
            {
                "_length2": F.when(_has("key", Width.STRING, 2), second_length).otherwise(_ABSENT),
                "_version_size": _by_kind(_version_size),
                "_least_value_size": _by_kind(_least_value_size),
            }
        )
        .withColumns(
            {
                "_text_end": F.col("_length1") + F.col("_length2") + 2 * Width.STRING.value,
                "_metadata_length": F.when(_has("value", Width.STRING), metadata_length).otherwise(0),
            }
        )
    )


def _with_fields(frame: DataFrame) -> DataFrame:
    """Add every field as it is in the bytes, valid or not. A kind without such a field gets whatever bytes are
    there."""
    second = F.col("_length1") + Width.STRING.value
    numbers = F.col("_version_size")
    return frame.withColumns(
        {
            "_text1": _text("key", F.lit(0), "_length1"),
            "_text2": _text("key", second, "_length2"),
            "_partition": F.when(_has("key", Width.INT32), _integer("key", F.col("_text_end"), Width.INT32.value)),
            "_number1": _integer("value", numbers, Width.INT64.value),
            "_number2": F.when(_has("value", Width.INT64, 2), _integer("value", numbers + Width.INT64.value, 8)),
            "_metadata": _text("value", F.col("_least_value_size") - Width.STRING.value, "_metadata_length"),
        }
    )


def _key_faults() -> list[tuple[Column, str]]:
    size = F.length("key")
    second = F.when(_has("key", Width.STRING, 2), Width.STRING.value).otherwise(0)
    end = F.col("_text_end") + F.when(_has("key", Width.INT32), Width.INT32.value).otherwise(0)
    return [
        (size < Width.STRING.value, codec.SHORT_KEY),
        (F.col("_length1") > MAX_STRING_BYTES, codec.NEGATIVE),
        (size < F.col("_length1") + Width.STRING.value + second, codec.SHORT_KEY),
        (F.col("_length2") > MAX_STRING_BYTES, codec.NEGATIVE),
        (size < end, codec.SHORT_KEY),
        (size > end, codec.LONG_KEY),
    ]


def _value_faults() -> list[tuple[Column, str]]:
    size = F.length("value")
    version = F.substring(F.col("value"), F.lit(1), F.col("_version_size"))
    known = F.lit(codec.RECORD_VERSION.to_bytes(VERSION_SIZE, "big"))
    end = F.col("_least_value_size") + F.col("_metadata_length")
    return [
        (size < F.col("_version_size"), codec.SHORT_VALUE),
        ((F.col("_version_size") > 0) & (version != known), codec.UNKNOWN_VERSION),
        (size < F.col("_least_value_size"), codec.SHORT_VALUE),
        (F.col("_metadata_length") > MAX_STRING_BYTES, codec.NEGATIVE),
        (size < end, codec.SHORT_VALUE),
        (size > end, codec.LONG_VALUE),
    ]


def _content_faults() -> list[tuple[Column, str]]:
    sound_texts = F.is_valid_utf8("_text1") & F.is_valid_utf8("_text2") & F.is_valid_utf8("_metadata")
    negative = (F.col("_number1") < 0) | (F.col("_number2") < 0) | (F.col("_partition") > MAX_INT32)
    long = F.greatest("_length1", "_length2") > codec.LONGEST_NAME
    return [(~sound_texts, codec.NOT_UTF8), (negative, codec.NEGATIVE), (long, codec.LONG_NAME)]


def _error() -> Column:
    """Returns the first fault of a record (`codec.REASONS`), or null."""
    faults = [
        (F.col("value").isNull(), codec.TOMBSTONE),
        (F.col("key").isNull(), codec.NO_KEY),
        *_key_faults(),
        *_value_faults(),
        *_content_faults(),
    ]
    first, *others = faults
    return reduce(lambda chain, fault: chain.when(*fault), others, F.when(*first))


def _field_columns() -> dict[str, Column]:
    """Returns each field of the row by name, taken from where a record of its kind has it; null if the kind has
    none."""
    chains: dict[str, Column] = {}
    for index, kind in enumerate(_KINDS):
        own = F.col("_error").isNull() & (F.col("_kind") == index)
        texts, numbers = iter(("_text1", "_text2")), iter(("_number1", "_number2"))
        at_key = {Width.STRING: texts, Width.INT32: iter(("_partition",))}
        at_value = {Width.INT64: numbers, Width.STRING: iter(("_metadata",))}
        for parts, columns in ((LAYOUTS[kind].key, at_key), (LAYOUTS[kind].value, at_value)):
            for part in parts:
                column = F.col(next(columns[part.width]))
                chains[part.name] = chains[part.name].when(own, column) if part.name in chains else F.when(own, column)
    return chains


def _row() -> list[Column]:
    fields = _field_columns()
    kind = F.col("_kind")
    columns = {
        **fields,
        "cluster": F.col("cluster"),
        "topic": F.col("topic"),
        "record": F.get(F.array(*[F.lit(str(name)) for name in _KINDS]), kind),
        "source": F.coalesce(F.col("role.source"), fields["source"]),
        "target": F.coalesce(F.col("role.target"), fields["target"]),
        "replicated": (kind == _HEARTBEAT) & F.col("role.source").isNotNull(),
        "appended_ms": F.unix_millis("timestamp"),
        "position": F.col("offset"),
        "error": F.col("_error"),
    }
    return [columns[field.name].cast(field.dataType).alias(field.name) for field in DECODED_SCHEMA]


def decode(frame: DataFrame) -> DataFrame:
    """Returns rows of `DECODED_SCHEMA`, one for each row of `source.RAW`."""
    return _with_fields(_with_lengths(frame)).withColumn("_error", _error()).select(*_row())
