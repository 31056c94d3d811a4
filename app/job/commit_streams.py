"""The queries of `__consumer_offsets`, one for each source cluster whose groups a flow wants from the stream.

A query that cannot run costs nothing but latency: its flows poll their groups meanwhile, and say why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from queue import Empty, SimpleQueue
from typing import Protocol

from app.job.cluster_probe import in_a_thread
from app.job.commit_probe import CommitProbe, probe_commits
from app.settings import Settings
from sinks.kinds.offsets.commit_feed import CommitFeed
from streaming.commits.commit_query import CommitSource, TakeCommits
from streaming.commits.commit_record import COMMITS_TOPIC, CommitBatch
from streaming.flow import Flow
from streaming.query import STOP_WITHIN, QueryRefused, RunningQuery
from streaming.restarts import Restarts

log = logging.getLogger(__name__)

PAUSE_RATIO = 2.0
"""How many times as long as it read a micro-batch rests, while groups go on committing: it costs the same for one
commit as for a thousand, and as much again around the reading."""

LONGEST_PAUSE = 2.0
"""Seconds of such a rest at most."""

RIGHT_PROBE_INTERVAL = 10.0
"""Seconds until a topic that may not be read is asked for again."""

Wake = Callable[[Flow], None]
"""Called with a flow that something came for; from any thread."""

CountUndecodable = Callable[[Mapping[tuple[str, str], int]], None]
"""Called with records that are not understood, by topic and reason."""


class Starter(Protocol):
    """`streaming.commits.commit_query.CommitQueries`."""

    def start(self, source: CommitSource, take_in: TakeCommits) -> RunningQuery:
        """Raises QueryRefused."""


class CommitStream:
    """The query of one cluster, for these flows. `tend` and `end` are called by one thread."""

    def __init__(
        self,
        alias: str,
        options: Mapping[str, str],
        feeds: Mapping[Flow, CommitFeed],
        queries: Starter,
        wake: Wake,
        undecodable: CountUndecodable = lambda counts: None,
        *,
        probe: CommitProbe = probe_commits,
        run: Callable[[Callable[[], None]], None] = in_a_thread,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`options`: Java client properties of the cluster; `run`: runs a probe, which may take some seconds."""
        self.alias, self.options, self.feeds = alias, options, feeds
        self._queries, self._wake, self._undecodable = queries, wake, undecodable
        self._probe, self._run, self._clock = probe, run, clock
        self._answers: SimpleQueue[CommitSource | str] = SimpleQueue()
        self._asked = False
        self._query: RunningQuery | None = None
        self._start_at = self._started_at = 0.0
        self._restarts = Restarts()
        self._stopping = threading.Event()
        self._reason: str | None = None

    def tend(self) -> None:
        """Called twice a second: starts, restarts or stops the query. Waits for no cluster."""
        now = self._clock()
        if self._query is not None and not self._query.is_active():
            self._failed(self._query.trace() or "it was stopped", now)
        wanted = any(feed.wanted for feed in self.feeds.values())
        if not wanted and self._query is not None:
            self._stop(None)
        elif wanted and self._query is None and now >= self._start_at:
            self._try_to_start(now)

    def _try_to_start(self, now: float) -> None:
        if not self._asked:
            self._asked = True
            self._run(lambda: self._answers.put(self._probed()))
        try:
            found = self._answers.get_nowait()
        except Empty:
            return
        self._asked = False
        if isinstance(found, str):
            self._start_at = now + RIGHT_PROBE_INTERVAL
            self._tell(found)
            return
        self._started_at = now
        self._stopping.clear()
        # All that is committed from here on comes: what was before is read after this.
        for feed in self.feeds.values():
            feed.begin()
        try:
            self._query = self._queries.start(found, self._take_in)
        except QueryRefused as refused:
            self._failed(str(refused), now)
            return
        self._reason = None
        log.info("%s of %s is read as a stream", COMMITS_TOPIC, self.alias)
        self._wake_all()

    def _probed(self) -> CommitSource | str:
        try:
            return self._probe(self.alias, self.options)
        except Exception as error:
            # Without an answer nobody would ask again.
            log.exception("%s of %s: a defect of Lockstep's, please report it", COMMITS_TOPIC, self.alias)
            return f"whether {COMMITS_TOPIC} of {self.alias} can be read is not known: {type(error).__name__}"

    def _failed(self, trace: str, now: float) -> None:
        failure = self._restarts.diagnose(trace)
        wait = self._restarts.delay(now - self._started_at)
        self._query, self._start_at = None, now + wait
        self._tell(f"the stream of {COMMITS_TOPIC} of {self.alias} failed: {failure.reason}")

    def _tell(self, reason: str) -> None:
        """There is no stream now, and why: flows poll."""
        if reason != self._reason:
            log.warning("groups of %s are polled: %s", self.alias, reason)
        self._reason = reason
        self._end_feeds(reason)

    def _end_feeds(self, reason: str | None) -> None:
        for feed in self.feeds.values():
            feed.end(reason)
        self._wake_all()

    def _wake_all(self) -> None:
        for flow in self.feeds:
            self._wake(flow)

    def _take_in(self, batch: CommitBatch) -> None:
        """In the query's thread."""
        if self._stopping.is_set():
            return
        for flow, feed in self.feeds.items():
            feed.put(batch)
            if batch.commits or batch.unread:
                self._wake(flow)
        if batch.undecodable:
            self._undecodable({(COMMITS_TOPIC, reason): count for reason, count in batch.undecodable.items()})
        self._stopping.wait(min(LONGEST_PAUSE, PAUSE_RATIO * batch.seconds))

    def _stop(self, reason: str | None) -> None:
        self._stopping.set()
        if self._query is not None and self._query.is_active():
            self._query.stop(STOP_WITHIN)
        self._query = None
        self._end_feeds(reason)

    def end(self) -> None:
        """Stops the query; its flows poll."""
        self._stop(None)


class CommitStreams:
    """The streams of a job: a feed for each flow, and a query for each cluster and set of client settings."""

    def __init__(
        self, settings: Settings, queries: Starter, wake: Wake, undecodable: CountUndecodable = lambda counts: None
    ) -> None:
        self._queries, self._wake, self._undecodable = queries, wake, undecodable
        self._feeds = {flow.flow: CommitFeed() for flow in settings.flows}
        self._streams: list[CommitStream] = []
        self.renew(settings)

    def feed(self, flow: Flow) -> CommitFeed:
        """What the flow listens to; the same one for as long as the job runs."""
        return self._feeds.setdefault(flow, CommitFeed())

    def renew(self, settings: Settings) -> None:
        """Goes on with these settings; a query with other client settings ends."""
        flows: dict[tuple[str, frozenset[tuple[str, str]]], list[Flow]] = {}
        for one in settings.flows:
            options = settings.cluster(one.flow.source, one.flow).consumer
            flows.setdefault((one.flow.source, frozenset(options.items())), []).append(one.flow)
        streams = {_identity(stream): stream for stream in self._streams}
        found = {(*key, frozenset(of)): key for key, of in flows.items()}
        for identity, stream in streams.items():
            if identity not in found:
                stream.end()
        self._streams = [streams.get(identity) or self._stream(*key, flows[key]) for identity, key in found.items()]

    def _stream(self, alias: str, options: Collection[tuple[str, str]], flows: Collection[Flow]) -> CommitStream:
        feeds = {flow: self.feed(flow) for flow in flows}
        return CommitStream(alias, dict(options), feeds, self._queries, self._wake, self._undecodable)

    def tend(self) -> None:
        """Called twice a second."""
        for stream in self._streams:
            stream.tend()

    def end(self) -> None:
        """Stops all queries."""
        for stream in self._streams:
            stream.end()


def _identity(stream: CommitStream) -> tuple[str, frozenset[tuple[str, str]], frozenset[Flow]]:
    return stream.alias, frozenset(stream.options.items()), frozenset(stream.feeds)
