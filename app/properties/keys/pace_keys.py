"""How often and how much is polled, what a plan may delete, and where the job listens."""

from __future__ import annotations

from pathlib import Path

from app.properties.keys.key import Key, KeyScope, Live
from app.properties.value_types import DURATION_SECONDS, FOLDER, TEXT, TOKEN, integer, number, one_of

TRIGGER_INTERVAL = Key(
    "lockstep.trigger.interval",
    DURATION_SECONDS,
    10.0,
    "Lockstep",
    "How long a micro-batch stays at most, and so how often Spark's query brings what MM2 wrote at least. A pass does "
    "not wait for it: each has a reason of its own (ARCHITECTURE.md).",
    KeyScope.JOB,
    live=Live.QUERY,
)
PASS_MIN_INTERVAL = Key(
    "lockstep.pass.min.interval",
    DURATION_SECONDS,
    0.2,
    "Lockstep",
    "Time between two passes of a flow at least, however many reasons there are.",
    KeyScope.JOB,
    live=Live.QUERY,
)
CHECKPOINT_DIR = Key(
    "lockstep.checkpoint.dir",
    FOLDER,
    Path(".lockstep/checkpoints"),
    "Lockstep",
    "Where Spark keeps the queries' offsets, relative to the working directory, and Lockstep a copy of the "
    "clusters' ids (safety.md).",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_HOST = Key(
    "lockstep.http.host",
    TEXT,
    "127.0.0.1",
    "Lockstep",
    "The address of the job's server: metrics, status.",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_PORT = Key(
    "lockstep.http.port",
    integer(0, 65535),
    9464,
    "Lockstep",
    "The port of that server; 0: a free one.",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_TOKEN: Key[str | None] = Key(
    "lockstep.http.token",
    TOKEN,
    None,
    "Lockstep",
    "What every request to that server must carry (`Authorization: Bearer`); needed unless its address is loopback.",
    KeyScope.JOB,
    live=Live.JOB,
)
LOG_FORMAT = Key(
    "lockstep.log.format",
    one_of("text", "json"),
    "text",
    "Lockstep",
    "How the job's log lines look on stderr; `json`: an object a line, with flow and pass (operations.md).",
    KeyScope.JOB,
    live=Live.JOB,
)
OBSERVE_SHARE = Key(
    "lockstep.observe.share",
    number(0.001, 1),
    0.1,
    "Lockstep",
    "The share of the time in which topics' configs are polled on the source, per flow, measured from what polls took; "
    "what is not needed is saved for the next change, up to 30 seconds' worth.",
)
OBSERVE_RATE = Key(
    "lockstep.observe.rate",
    integer(0, unit="topics a second"),
    0,
    "Lockstep",
    "How many topics' configs are polled on the source at most, per flow, whatever the share allows; 0: no limit.",
)
FULL_COMPARISON_INTERVAL = Key(
    "lockstep.full.comparison.interval",
    DURATION_SECONDS,
    60.0,
    "Lockstep",
    "Time between comparisons of everything, also of kinds that rest for an interval of their own.",
)
SHARD_TOPICS = Key(
    "lockstep.shard.topics",
    integer(1, unit="topics"),
    2000,
    "Lockstep",
    "How many topics one request asks about at most.",
)
HEARTBEAT_TIMEOUT = Key(
    "lockstep.heartbeat.timeout", DURATION_SECONDS, 30.0, "Lockstep", "The age from which on a heartbeat is stale."
)
MAX_DELETE_PERCENT = Key(
    "lockstep.limits.max.delete.percent",
    number(0, 100),
    30.0,
    "Lockstep",
    "The percentage of a kind that a plan may delete without --force.",
)
MAX_DELETE_MINIMUM = Key(
    "lockstep.limits.max.delete.minimum",
    integer(0, unit="items"),
    10,
    "Lockstep",
    "Fewer items of a kind than this count as this many: with 10 and 30 percent, at most 3 of up to 10 are deleted.",
)
