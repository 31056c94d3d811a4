"""How often and how much is polled, read and compared."""

from __future__ import annotations

from app.properties.keys.key import Key, KeyScope, Live
from app.properties.value_types import DURATION_SECONDS, integer, number

TRIGGER_INTERVAL = Key(
    "lockstep.trigger.interval",
    DURATION_SECONDS,
    10.0,
    "Lockstep",
    "Longest time that a micro-batch lasts, and so until MM2's records are read. Passes do not wait for it.",
    KeyScope.JOB,
    live=Live.BATCH,
)
PASS_MIN_INTERVAL = Key(
    "lockstep.pass.min.interval",
    DURATION_SECONDS,
    0.2,
    "Lockstep",
    "Shortest time between two passes of a flow.",
    KeyScope.JOB,
    live=Live.BATCH,
)
OBSERVE_SHARE = Key(
    "lockstep.observe.share",
    number(0.001, 1),
    0.1,
    "Lockstep",
    "Share of the time that a flow may spend on polling the source's topic configs (0.1: a tenth). Unused "
    "time is saved, up to 30 seconds.",
)
OBSERVE_RATE = Key(
    "lockstep.observe.rate",
    integer(0, unit="topics a second"),
    0,
    "Lockstep",
    "Most topics whose configs a flow polls per second, whatever lockstep.observe.share allows. 0: no limit.",
)
FULL_COMPARISON_INTERVAL = Key(
    "lockstep.full.comparison.interval",
    DURATION_SECONDS,
    60.0,
    "Lockstep",
    "Time between two comparisons of everything on both sides. The flows of a job take turns and wait "
    "half an interval at most.",
)
SHARD_TOPICS = Key(
    "lockstep.shard.topics",
    integer(1, unit="topics"),
    2000,
    "Lockstep",
    "Most topics in one request for configs.",
)
HEARTBEAT_TIMEOUT = Key(
    "lockstep.heartbeat.timeout",
    DURATION_SECONDS,
    30.0,
    "Lockstep",
    "Age of MM2's newest heartbeat above which a flow is `STALE`.",
)
