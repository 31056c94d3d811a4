"""Where the job keeps what is its own, listens and logs."""

from __future__ import annotations

from pathlib import Path

from app.properties.keys.key import Key, KeyScope, Live
from app.properties.value_types import FOLDER, TEXT, TOKEN, integer, one_of

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
