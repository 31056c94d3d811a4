"""Offsets of consumer groups."""

from __future__ import annotations

from app.properties.keys.key import NO_REST, POLL_INTERVAL_TEXT, Acts, Key
from app.properties.value_types import BOOLEAN, integer, one_of

SYNC_GROUP_OFFSETS = Key(
    "sync.group.offsets.enabled",
    BOOLEAN,
    False,
    "MM2",
    "Commit the source's group offsets on the target, for groups without members there.",
)
SYNC_GROUP_OFFSETS_INTERVAL: Key[int | None] = Key(
    "sync.group.offsets.interval.seconds",
    integer(1, unit="seconds"),
    None,
    "MM2",
    f"{POLL_INTERVAL_TEXT} groups. {NO_REST}",
    acts=Acts.PREFIXED,
)
EMIT_CHECKPOINTS = Key(
    "emit.checkpoints.enabled",
    BOOLEAN,
    False,
    "MM2",
    "Write checkpoints as MM2 does, so that MM2's connector for them can be switched off.",
    acts=Acts.PREFIXED,
)
OFFSET_TRANSLATION = Key(
    "lockstep.offset.translation",
    one_of("matched", "conservative"),
    "matched",
    "Lockstep",
    "How source offsets become target offsets. matched finds the record itself; conservative uses MM2's "
    "offset-syncs alone, so groups read more twice.",
)
