"""What the stream of `__consumer_offsets` says, on its way from the query's thread to the passes of one flow."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from sinks.flow_settings import OffsetsSource
from streaming.commits.commit_record import CommitBatch
from streaming.mm2.records import TopicPartition

MANY = 2000
"""Groups beyond which `auto` takes them from the stream: more than one poll reads."""


class NewCommits(NamedTuple):
    """What came since the last time. `session` counts the starts of the stream: another one means that something may
    have been missed; None: there is no stream now."""

    session: int | None
    commits: Mapping[str, Mapping[TopicPartition, int | None]]
    unread: frozenset[str]


class CommitFeed:
    """Thread-safe. The query's side begins, puts and ends; the flow's side says what it wants, and takes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions = 0
        self._live, self._has_commits = False, False
        self._wanted = False
        self._reason: str | None = None
        self._commits: dict[str, dict[TopicPartition, int | None]] = {}
        self._unread: set[str] = set()

    def want(self, source: OffsetsSource, groups: int) -> None:
        """Says whether a flow with so many groups is to be served from the stream."""
        many = source is OffsetsSource.AUTO and groups > MANY
        self._wanted = source is OffsetsSource.STREAM or many or (self._wanted and source is OffsetsSource.AUTO)

    @property
    def wanted(self) -> bool:
        """Whether a query should run for it."""
        return self._wanted

    @property
    def live(self) -> bool:
        """Whether every commit comes."""
        return self._live

    @property
    def reason(self) -> str | None:
        """Why there is no stream although one is wanted."""
        return self._reason if self._wanted and not self._live else None

    def begin(self) -> None:
        """From now on every commit comes; what was before is to be read once."""
        with self._lock:
            self._sessions += 1
            self._live, self._has_commits, self._reason = True, False, None
            self._commits, self._unread = {}, set()

    def put(self, batch: CommitBatch) -> None:
        """What a micro-batch brought. Only the last of each partition is kept, so that it needs no bound."""
        with self._lock:
            self._has_commits = True
            for group, offsets in batch.commits.items() if self._live else ():
                self._commits.setdefault(group, {}).update(offsets)
            if self._live:
                self._unread |= batch.unread

    def end(self, reason: str | None) -> None:
        """No more comes, and why."""
        with self._lock:
            self._live, self._reason = False, reason
            self._commits, self._unread = {}, set()

    def take(self) -> NewCommits:
        """What came since the last time. A stream counts from its first micro-batch on: it may be long in starting."""
        with self._lock:
            new = NewCommits(
                self._sessions if self._live and self._has_commits else None, self._commits, frozenset(self._unread)
            )
            self._commits, self._unread = {}, set()
            return new
