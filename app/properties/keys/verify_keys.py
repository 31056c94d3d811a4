"""Comparing the records of both sides while the job runs."""

from __future__ import annotations

from app.properties.keys.key import Key
from app.properties.value_types import BOOLEAN, integer

VERIFY_ENABLED = Key(
    "lockstep.verify.enabled",
    BOOLEAN,
    False,
    "Lockstep",
    "Compare the records of both sides while the job runs (verify.md). Needs READ on the topics of both sides.",
)
VERIFY_RATE = Key(
    "lockstep.verify.rate",
    integer(1024, unit="bytes a second"),
    1024 * 1024,
    "Lockstep",
    "Average bytes per second that this comparison reads on each side, without compression.",
)
