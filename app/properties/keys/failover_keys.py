"""The failover: what makes a flow ready for it, how a fence is proven, and who is notified."""

from __future__ import annotations

from app.properties.keys.key import Key
from app.properties.value_types import CLASS, DURATION_SECONDS, TEXT, integer

FAILOVER_MAX_LOSS: Key[int | None] = Key(
    "lockstep.failover.max.loss.records",
    integer(0),
    0,
    "Lockstep",
    "`preflight` calls a flow ready while no more records than this are not copied yet, in all topics together.",
)
FAILOVER_MAX_LOSS_AGE = Key(
    "lockstep.failover.max.loss.age",
    DURATION_SECONDS,
    60.0,
    "Lockstep",
    "`preflight` also calls a flow ready while no uncopied record is older than this. A busy flow always "
    "has some under way.",
)
FAILOVER_MAX_DRIFT: Key[int | None] = Key(
    "lockstep.failover.max.drift",
    integer(0),
    0,
    "Lockstep",
    "`preflight` and the page call a flow ready while no kind has more differences than this.",
)
FAILOVER_MAX_GROUPS_SKIPPING: Key[int | None] = Key(
    "lockstep.failover.max.groups.skipping",
    integer(0),
    0,
    "Lockstep",
    "`preflight` calls a flow ready while no more partitions of groups than this may skip records on the target.",
)
FAILOVER_FENCE_PROOF = Key(
    "lockstep.failover.fence.proof",
    DURATION_SECONDS,
    10.0,
    "Lockstep",
    "Time for which fenced topics must get no record until the fence counts as proven.",
)
FAILOVER_ENDS_INTERVAL = Key(
    "lockstep.failover.ends.interval",
    DURATION_SECONDS,
    5.0,
    "Lockstep",
    "Shortest time between two readings of the source's ends. A failover without the source predicts its "
    "loss from the last one.",
)
FAILOVER_PREFLIGHT_INTERVAL: Key[int | None] = Key(
    "lockstep.failover.preflight.interval.seconds",
    integer(0),
    60,
    "Lockstep",
    "Seconds between two preflights of a running job. 0: none. They take a tenth of the time at most.",
)
FAILOVER_LISTENER = Key(
    "lockstep.failover.listener.class",
    CLASS,
    "lockstep.listeners:DefaultFailoverListener",
    "Lockstep",
    "Class that a failover command calls with each state it reaches, to switch clients over for instance "
    "(failover.md).",
)
FAILOVER_PROGRAM: Key[str | None] = Key(
    "lockstep.failover.program.path",
    TEXT,
    None,
    "Lockstep",
    "Program that a failover command starts for each state it reaches, with the state as JSON on standard "
    "input (failover.md).",
)
