"""How often and how much is polled, read and compared."""

from __future__ import annotations

from app.properties.keys.key import Key, KeyScope, Live
from app.properties.value_types import DURATION_SECONDS, integer, number

TRIGGER_INTERVAL = Key(
    "lockstep.trigger.interval",
    DURATION_SECONDS,
    10.0,
    "Lockstep",
    "How long a micro-batch of Spark's query lasts at most, and so after how long at most what MM2 wrote is "
    "read. Passes do not wait for it: each has a reason of its own (ARCHITECTURE.md).",
    KeyScope.JOB,
    live=Live.BATCH,
)
PASS_MIN_INTERVAL = Key(
    "lockstep.pass.min.interval",
    DURATION_SECONDS,
    0.2,
    "Lockstep",
    "The least time between two passes of a flow, however many reasons there are.",
    KeyScope.JOB,
    live=Live.BATCH,
)
OBSERVE_SHARE = Key(
    "lockstep.observe.share",
    number(0.001, 1),
    0.1,
    "Lockstep",
    "How much of the time a flow may spend on polling the configs of the source's topics (0.1: a tenth). Time "
    "that was not needed is saved for the next change, up to 30 seconds.",
)
OBSERVE_RATE = Key(
    "lockstep.observe.rate",
    integer(0, unit="topics a second"),
    0,
    "Lockstep",
    "How many topics' configs a flow polls on the source in a second at most, whatever lockstep.observe.share "
    "allows; 0: no limit.",
)
FULL_COMPARISON_INTERVAL = Key(
    "lockstep.full.comparison.interval",
    DURATION_SECONDS,
    60.0,
    "Lockstep",
    "Time between two comparisons of everything on both sides, also of kinds with an `…interval.seconds` of their own. "
    "The flows of a job take turns: one that has to wait for another has it half an interval later at the most.",
)
SHARD_TOPICS = Key(
    "lockstep.shard.topics",
    integer(1, unit="topics"),
    2000,
    "Lockstep",
    "How many topics one request for configs names at most.",
)
HEARTBEAT_TIMEOUT = Key(
    "lockstep.heartbeat.timeout",
    DURATION_SECONDS,
    30.0,
    "Lockstep",
    "How old the newest of MM2's heartbeats may be; a flow whose newest is older is `STALE`.",
)
