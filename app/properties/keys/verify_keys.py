"""Comparing the records of both sides while the job runs."""

from __future__ import annotations

from app.properties.keys.key import Key
from app.properties.value_types import BOOLEAN, integer

VERIFY_ENABLED = Key(
    "lockstep.verify.enabled",
    BOOLEAN,
    False,
    "Lockstep",
    "Whether the job compares the records of both sides: what arrived last first, then what was there before "
    "(verify.md). Needs READ on the topics of both sides.",
)
VERIFY_RATE = Key(
    "lockstep.verify.rate",
    integer(1024, unit="bytes a second"),
    1024 * 1024,
    "Lockstep",
    "How much the comparison of records reads on each side, on average: bytes of keys, values and headers "
    "without compression. At most what a minute allows is read at once.",
)
