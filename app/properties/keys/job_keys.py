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
    "Folder of Spark's checkpoint and of the local copy of the clusters' ids (safety.md).",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_HOST = Key(
    "lockstep.http.host",
    TEXT,
    "127.0.0.1",
    "Lockstep",
    "Address of the job's page, API and metrics (http.md).",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_PORT = Key(
    "lockstep.http.port",
    integer(0, 65535),
    9464,
    "Lockstep",
    "Port of the page, the API and the metrics. 0: a free one.",
    KeyScope.JOB,
    live=Live.JOB,
)
HTTP_TOKEN: Key[str | None] = Key(
    "lockstep.http.token",
    TOKEN,
    None,
    "Lockstep",
    "Token that every request must carry (`Authorization: Bearer`). Required unless lockstep.http.host is "
    "a loopback address.",
    KeyScope.JOB,
    live=Live.JOB,
)
LOG_FORMAT = Key(
    "lockstep.log.format",
    one_of("text", "json"),
    "text",
    "Lockstep",
    "Format of log lines on stderr. json: an object a line, with flow and pass.",
    KeyScope.JOB,
    live=Live.JOB,
)
