"""Why bytes in one of MM2's topics are no record, the same for `codec` and for Spark's columns."""

from __future__ import annotations

from typing import Final

TOMBSTONE: Final = "tombstone"
NO_KEY: Final = "no key"
SHORT_KEY: Final = "short key"
LONG_KEY: Final = "long key"
SHORT_VALUE: Final = "short value"
LONG_VALUE: Final = "long value"
UNKNOWN_VERSION: Final = "unknown version"
NOT_UTF8: Final = "not UTF-8"
NEGATIVE: Final = "negative"
LONG_NAME: Final = "long name"

LONGEST_NAME: Final = 512
"""Bytes of a name in a key. Kafka takes 249 of a topic and any number of a group; a micro-batch of records whose names
have 32 KB each would take more memory than the driver has."""

REASONS: Final = (
    TOMBSTONE,
    NO_KEY,
    SHORT_KEY,
    LONG_KEY,
    SHORT_VALUE,
    LONG_VALUE,
    UNKNOWN_VERSION,
    NOT_UTF8,
    NEGATIVE,
    LONG_NAME,
)
"""Why bytes are no record. The first fault met is the verdict: a null value, a null key, the bytes of the key from
first to last, those of the value, then text that is not UTF-8, then a partition, offset or timestamp below zero, then a
name in the key beyond `LONGEST_NAME`. A string's length below zero is `negative` too, met where it stands.
"""
