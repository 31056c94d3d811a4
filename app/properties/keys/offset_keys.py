"""Offsets of consumer groups."""

from __future__ import annotations

from app.properties.keys.key import NO_REST, POLL_INTERVAL_TEXT, Acts, Key
from app.properties.value_types import BOOLEAN, integer, one_of

SYNC_GROUP_OFFSETS = Key(
    "sync.group.offsets.enabled",
    BOOLEAN,
    False,
    "MM2",
    "Whether what groups committed on the source is committed for them on the target, as offsets of the "
    "remote topics, while they have no members there.",
)
SYNC_GROUP_OFFSETS_INTERVAL: Key[int | None] = Key(
    "sync.group.offsets.interval.seconds",
    integer(1, unit="seconds"),
    None,
    "MM2",
    f"{POLL_INTERVAL_TEXT} groups; {NO_REST}",
    acts=Acts.PREFIXED,
)
EMIT_CHECKPOINTS = Key(
    "emit.checkpoints.enabled",
    BOOLEAN,
    False,
    "MM2",
    "Whether Lockstep writes checkpoints as MM2 does, so that MM2's connector for them can be switched off.",
    acts=Acts.PREFIXED,
)
OFFSET_TRANSLATION = Key(
    "lockstep.offset.translation",
    one_of("matched", "conservative"),
    "matched",
    "Lockstep",
    "How an offset of the source becomes one of the target: matched looks for the record itself on the "
    "target; conservative goes by MM2's offset-syncs alone, as MM2 does, and lets groups read more twice.",
)
