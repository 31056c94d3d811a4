"""What of a query's sources can be read now: clusters that answer, topics that the client may READ."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

from app.wiring import open_cluster
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.jvm_rights import ask_allowed
from streaming.errors import LockstepError
from streaming.query_plan import ClusterSource, QueryPlan

log = logging.getLogger(__name__)

READ = "READ"


@dataclass(frozen=True, slots=True)
class Readable:
    """As much of a plan as can be read, and for what is left out of it, why."""

    plan: QueryPlan
    reasons: tuple[str, ...] = ()


SourceProbe = Callable[[ClusterSource], tuple[ClusterSource | None, str | None]]
"""What can be read of a source, None where that is nothing, and why something cannot. May take some seconds."""


def probe_source(source: ClusterSource) -> tuple[ClusterSource | None, str | None]:
    """Asks the cluster, with the client settings of the source itself."""
    try:
        with closing(open_cluster(source.alias, source.options)) as cluster:
            cluster.ping()
            denied = _denied(source, cluster.admin)
    except LockstepError as error:
        return None, str(error)
    if not denied:
        return source, None
    left = {topic: role for topic, role in source.topics.items() if topic not in denied}
    reason = f"READ is missing on {', '.join(sorted(denied))} of the cluster {source.alias}: grant it"
    return (replace(source, topics=left) if left else None), reason


def _denied(source: ClusterSource, admin: JavaAdmin) -> frozenset[str]:
    """Topics that the client sees and may not read (KIP-430); none where the cluster does not say."""
    try:
        allowed = ask_allowed(admin, source.topics.keys(), ())
    except LockstepError:
        return frozenset()
    # A topic that cannot be seen has an error's name instead of operations.
    seen = {topic: words for topic, words in allowed.topics.items() if not isinstance(words, str)}
    return frozenset(topic for topic, words in seen.items() if words and READ not in words)


def readable(plan: QueryPlan, probe: SourceProbe) -> Readable:
    """Probes every source of a plan. Raises nothing: without an answer no query would ever start."""
    found = [_probed(source, probe) for source in plan.sources]
    sources = tuple(sorted((one for one, _ in found if one), key=lambda one: (one.alias, one.pattern)))
    return Readable(replace(plan, sources=sources), tuple(dict.fromkeys(reason for _, reason in found if reason)))


def _probed(source: ClusterSource, probe: SourceProbe) -> tuple[ClusterSource | None, str | None]:
    try:
        return probe(source)
    except Exception as error:
        log.exception("what can be read of %s is not known: a defect of Lockstep's, please report it", source.alias)
        return None, f"what can be read of {source.alias} is not known: {type(error).__name__}"


Run = Callable[[Callable[[], None]], None]


def in_a_thread(call: Callable[[], None]) -> None:
    """Runs it in a daemon thread: nobody who ends the job waits for a cluster that is silent."""
    threading.Thread(target=call, name="probe", daemon=True).start()


class BackgroundProbe:
    """Probes in the background: `ask` begins, `take` has the answer once it is there."""

    def __init__(self, probe: SourceProbe = probe_source, run: Run = in_a_thread) -> None:
        self._probe, self._run = probe, run
        self._asked: QueryPlan | None = None
        self._answers: SimpleQueue[tuple[QueryPlan, Readable]] = SimpleQueue()

    def ask(self, plan: QueryPlan) -> None:
        """Does nothing while the same question is open."""
        if self._asked is not plan:
            self._asked = plan
            self._run(lambda: self._answers.put((plan, readable(plan, self._probe))))

    def take(self) -> Readable | None:
        """The answer to the last question, once; None while it is open."""
        while True:
            try:
                plan, answer = self._answers.get_nowait()
            except Empty:
                return None
            if plan is self._asked:
                self._asked = None
                return answer
