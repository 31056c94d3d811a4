"""The failover: what makes a flow ready for it, how a fence is proven, and who is notified."""

from __future__ import annotations

from app.properties.keys.key import Key
from app.properties.value_types import CLASS, DURATION_SECONDS, TEXT, integer

FAILOVER_MAX_LOSS: Key[int | None] = Key(
    "lockstep.failover.max.loss.records",
    integer(0),
    0,
    "Lockstep",
    "Up to how many records that are not copied yet, in all topics together, `preflight` calls the flow ready.",
)
FAILOVER_MAX_LOSS_AGE = Key(
    "lockstep.failover.max.loss.age",
    DURATION_SECONDS,
    60.0,
    "Lockstep",
    "With more than lockstep.failover.max.loss.records, `preflight` still calls the flow ready if none of "
    "them is older than this: a busy flow always has some on their way.",
)
FAILOVER_MAX_DRIFT: Key[int | None] = Key(
    "lockstep.failover.max.drift",
    integer(0),
    0,
    "Lockstep",
    "Up to how many differences of a kind that are not mended yet `preflight` and the page call the flow ready.",
)
FAILOVER_MAX_GROUPS_SKIPPING: Key[int | None] = Key(
    "lockstep.failover.max.groups.skipping",
    integer(0),
    0,
    "Lockstep",
    "Up to how many partitions of consumer groups may skip records on the target, while `preflight` still calls the "
    "flow ready. A group may skip where it has no safe offset there, or is further on than is safe.",
)
FAILOVER_FENCE_PROOF = Key(
    "lockstep.failover.fence.proof",
    DURATION_SECONDS,
    10.0,
    "Lockstep",
    "For how long the fenced topics on the source must get no record, so that the fence counts as proven.",
)
FAILOVER_ENDS_INTERVAL = Key(
    "lockstep.failover.ends.interval",
    DURATION_SECONDS,
    5.0,
    "Lockstep",
    "The least time between two readings of where the source's partitions end. The ledger keeps the last one: "
    "from it a failover without the source knows its loss. A reading is part of a pass, and there is a pass "
    "in every lockstep.trigger.interval at least.",
)
FAILOVER_PREFLIGHT_INTERVAL: Key[int | None] = Key(
    "lockstep.failover.preflight.interval.seconds",
    integer(0),
    60,
    "Lockstep",
    "Seconds between two preflights that a running job makes beside its passes; 0: none. Where one takes more than a "
    "tenth of that, they come ten times as far apart as one takes.",
)
FAILOVER_LISTENER = Key(
    "lockstep.failover.listener.class",
    CLASS,
    "lockstep.listeners:DefaultFailoverListener",
    "Lockstep",
    "The class that is called with each state that a command of the failover reaches, for instance to switch "
    "clients over (failover.md).",
)
FAILOVER_PROGRAM: Key[str | None] = Key(
    "lockstep.failover.program.path",
    TEXT,
    None,
    "Lockstep",
    "A program that a command of the failover starts, on its own machine, for each state that it reaches; it "
    "gets the state as JSON on its standard input (failover.md).",
)
