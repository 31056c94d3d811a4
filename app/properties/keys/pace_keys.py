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
    "How long a micro-batch of Spark's query lasts at most, and so after how long at most what MM2 wrote is "
    "read. Passes do not wait for it: each has a reason of its own (ARCHITECTURE.md).",
    KeyScope.JOB,
    live=Live.QUERY,
)
PASS_MIN_INTERVAL = Key(
    "lockstep.pass.min.interval",
    DURATION_SECONDS,
    0.2,
    "Lockstep",
    "The least time between two passes of a flow, however many reasons there are.",
    KeyScope.JOB,
    live=Live.QUERY,
)
CHECKPOINT_DIR = Key(
    "lockstep.checkpoint.dir",
    FOLDER,
    Path(".lockstep/checkpoints"),
    "Lockstep",
    "The folder, relative to the working directory, in which Spark keeps how far its queries have read, and "
    "Lockstep a copy of the clusters' ids (safety.md).",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_HOST = Key(
    "lockstep.http.host",
    TEXT,
    "127.0.0.1",
    "Lockstep",
    "The address at which the job serves its page, its API and its metrics (http.md).",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_PORT = Key(
    "lockstep.http.port",
    integer(0, 65535),
    9464,
    "Lockstep",
    "The port for the page, the API and the metrics; 0: a free one.",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_TOKEN: Key[str | None] = Key(
    "lockstep.http.token",
    TOKEN,
    None,
    "Lockstep",
    "What every request to the job's HTTP server must carry (`Authorization: Bearer`); needed unless "
    "lockstep.http.host is a loopback address.",
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
    "Time between two comparisons of everything on both sides, also of kinds with an `…interval.seconds` of their own.",
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
MAX_DELETE_PERCENT = Key(
    "lockstep.limits.max.delete.percent",
    number(0, 100),
    30.0,
    "Lockstep",
    "How many percent of what Lockstep owns of a kind one plan may delete; more is refused, unless `lockstep "
    "apply --force` writes it.",
)
MAX_DELETE_MINIMUM = Key(
    "lockstep.limits.max.delete.minimum",
    integer(0, unit="items"),
    10,
    "Lockstep",
    "Where Lockstep owns fewer items of a kind than this, those percent are taken of this number: with 10 and "
    "30 percent, up to 3 items may be deleted at once.",
)
