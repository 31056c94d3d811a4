"""Keeps one target's query alive: waits for clusters, restarts what broke off, ends it between two batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from app.settings import Settings
from app.wiring import connect
from streaming.errors import LockstepError
from streaming.mm2.topic_roles import roles_by_cluster, roles_of_flow
from streaming.query import start, stop_gently, why_it_ended
from streaming.query_plan import ClusterSource, QueryPlan
from streaming.restarts import Restarts

log = logging.getLogger(__name__)

PROBE_INTERVAL = 10.0
"""Seconds between looks at a cluster that the query goes on without."""

STOP_WITHIN = 60.0
"""Seconds that the running batch may take to end."""


class QuerySupervisor:
    """The query of one target cluster. Clusters that do not answer are left out of it, and taken in when they do.

    Their flows still walk in every batch, and say in their status why nothing can be seen.
    """

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession,
        target: str,
        sink: Callable[[DataFrame, int], None],
        once: bool,
    ) -> None:
        self._settings, self._spark, self._target, self._sink, self._once = settings, spark, target, sink, once
        self._plan = self._whole_plan()
        self._query: StreamingQuery | None = None
        self._silent: frozenset[str] = frozenset()
        self._probe_at = 0.0
        self._start_at = 0.0
        self._started_at = 0.0
        self._restarts = Restarts()

    def _whole_plan(self) -> QueryPlan:
        flows = [flow for flow in self._settings.flows if flow.flow.target == self._target]
        topics = roles_by_cluster(roles_of_flow(flow.flow, flow.policy, flow.internal) for flow in flows)
        sources = tuple(
            ClusterSource(alias, self._settings.clusters[alias].consumer, topics[alias]) for alias in sorted(topics)
        )
        job = self._settings.job
        return QueryPlan(self._target, sources, job.trigger_interval, job.checkpoint_dir)

    def renew(self, settings: Settings) -> None:
        """Goes on with these settings; the query is restarted where it is made of anything else then."""
        self._settings = settings
        plan = self._whole_plan()
        if plan == self._plan:
            return
        log.info("%s: the query is restarted with other settings", plan.name)
        self.end()
        self._plan, self._start_at, self._silent = plan, 0.0, frozenset()

    def tend(self) -> None:
        """Called twice a second: starts, restarts, or takes a cluster in that answers again."""
        now = time.monotonic()
        if self._query is not None and not self._query.isActive:
            self._broke_off(self._query, now)
        if self._query is None and now >= self._start_at:
            self._start(now)
        elif self._silent and now >= self._probe_at:
            self._probe(now)

    def _broke_off(self, query: StreamingQuery, now: float) -> None:
        wait = self._restarts.delay(now - self._started_at)
        self._start_at, self._query = now + wait, None
        reason = why_it_ended(query)
        log.warning("%s: the query broke off, started again in %.0f s: %s", self._plan.name, wait, reason)

    def _start(self, now: float) -> None:
        silent = self._silent_clusters()
        for alias in sorted(silent - self._silent):
            log.warning("%s: the cluster %s does not answer; the query goes on without it", self._plan.name, alias)
        self._silent, self._probe_at = silent, now + PROBE_INTERVAL
        plan = self._plan
        for alias in silent:
            plan = plan.without(alias)
        self._started_at = now
        self._query = start(self._spark, plan, self._sink, once=self._once)

    def _silent_clusters(self) -> frozenset[str]:
        silent = set()
        for source in self._plan.sources:
            cluster = connect(self._settings, source.alias)
            try:
                cluster.ping()
            except LockstepError:
                silent.add(source.alias)
            finally:
                cluster.close()
        return frozenset(silent)

    def _probe(self, now: float) -> None:
        silent = self._silent_clusters()
        self._probe_at = now + PROBE_INTERVAL
        if silent >= self._silent or self._query is None:
            return
        log.info("%s: %s answers again", self._plan.name, ", ".join(sorted(self._silent - silent)))
        stop_gently(self._query, STOP_WITHIN)
        self._query, self._start_at = None, now

    def drain(self, stop: Event) -> None:
        """For `--once`: reads what there is and returns, or when `stop` is set."""
        self._start(time.monotonic())
        # Not awaitTermination: it raises what the query broke off with.
        while self._query is not None and self._query.isActive and not stop.wait(0.1):
            pass
        if self._query is not None and (reason := why_it_ended(self._query)):
            log.warning("%s: MM2's topics were not read to the end: %s", self._plan.name, reason)

    def end(self) -> None:
        """Lets the running batch end, then stops the query."""
        if self._query is not None and self._query.isActive:
            stop_gently(self._query, STOP_WITHIN)
        self._query = None
