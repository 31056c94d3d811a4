"""The failover: what makes a flow ready for it, how a fence is proven, and who is notified."""

from __future__ import annotations

from app.properties.keys.key import Key
from app.properties.value_types import CLASS, DURATION_SECONDS, TEXT, integer

FAILOVER_MAX_LOSS: Key[int | None] = Key(
    "lockstep.failover.max.loss.records",
    integer(0),
    0,
    "Lockstep",
    "Records not copied yet that `preflight` still calls ready, in all topics together.",
)
FAILOVER_MAX_LOSS_AGE = Key(
    "lockstep.failover.max.loss.age",
    DURATION_SECONDS,
    60.0,
    "Lockstep",
    "How old the oldest of them may be; a busy flow has always some that are younger.",
)
FAILOVER_MAX_DRIFT: Key[int | None] = Key(
    "lockstep.failover.max.drift",
    integer(0),
    0,
    "Lockstep",
    "Differences of a kind that `preflight` still calls ready.",
)
FAILOVER_FENCE_PROOF = Key(
    "lockstep.failover.fence.proof",
    DURATION_SECONDS,
    10.0,
    "Lockstep",
    "How long the ends of fenced topics must stand still.",
)
FAILOVER_ENDS_INTERVAL = Key(
    "lockstep.failover.ends.interval",
    DURATION_SECONDS,
    5.0,
    "Lockstep",
    "Time between two readings of the source's ends at least, which the ledger keeps: what a failover without the "
    "source knows of its loss. A reading is part of a pass, and there is one in every lockstep.trigger.interval at "
    "least.",
)
FAILOVER_PREFLIGHT_INTERVAL: Key[int | None] = Key(
    "lockstep.failover.preflight.interval.seconds",
    integer(0),
    60,
    "Lockstep",
    "Seconds between two preflights that a running job makes beside its passes; 0: none.",
)
FAILOVER_LISTENER = Key(
    "lockstep.failover.listener.class",
    CLASS,
    "lockstep.listeners:DefaultFailoverListener",
    "Lockstep",
    "The class that a command of the failover tells each state, so that it switches clients over.",
)
FAILOVER_PROGRAM: Key[str | None] = Key(
    "lockstep.failover.program.path",
    TEXT,
    None,
    "Lockstep",
    "A program on the machine of the command that gets each state as JSON on its standard input.",
)
