"""One job with four flows into one target: its start, its full comparisons, its latency, its price."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import httpx
from confluent_kafka.admin import AdminClient

from app.local.local_job import LocalJob
from app.local.local_mirror import mirror_properties
from app.local.waiting import wait_for
from app.wiring import open_cluster
from bench.acl_scenario import acl_arrives, read_acl
from bench.cost import idle_costs
from bench.job_file import job_of
from bench.pass_cost import peak_memory, resident
from bench.saved_figures import say
from bench.scale_clusters import FLOWS, ScaleClusters, copy_as_mm2_would
from bench.scenario import Meter
from bench.topic_changes import Changes, topic_name

WITHIN: Final = 1800.0
IDLE: Final = 60.0
SETTLED_AFTER: Final = 30.0
"""Seconds between the last change and an idle minute. After a change its topics are compared once more, and the
source's log is sampled more often."""
FULL_ROUNDS: Final = 3
ACLS: Final = 12
KINDS: Final = ("topic", "topic-config", "acl", "group-offset")
OWN: Final = {"lockstep.sync.group.offsets.enabled": "true", "sync.full.acl.enabled": "true"}


def first_contact(clusters: ScaleClusters) -> dict[str, Any]:
    """What a job with an empty target needs.

    Seconds from its start until each kind is in step and all groups are synced. Seconds from MM2's records and
    offset-syncs until all groups have moved on. The most memory meanwhile. Seconds from SIGTERM to the job's end.
    """
    with _job(clusters, "first") as (job, began), peak_memory(job.pids) as peak:
        seconds = _compared(job, began)
        groups = clusters.topics * len(FLOWS)
        wait_for(lambda: _synced(job) >= groups, WITHIN, "all groups to be synced")
        seconds["groups synced"] = time.monotonic() - began
        say(f"all groups synced after {seconds['groups synced']:.1f} s")
        copy_as_mm2_would(clusters)
        copied = time.monotonic()
        wait_for(lambda: _moved(job) >= groups, WITHIN, "all groups to move on")
        seconds["groups moved"] = time.monotonic() - copied
        say(f"groups moved on: {seconds['groups moved']:.1f} s after the offset-syncs were there")
        ends = time.monotonic()
        job.stop()
    return {"seconds": seconds, "peak": peak, "stop": time.monotonic() - ends}


def steady(clusters: ScaleClusters, timed: Sequence[tuple[float, int]], seed: int) -> dict[str, Any]:
    """What a job needs that finds everything in step.

    Seconds until each kind was compared, of full comparisons of one flow and of all side by side, and of changes, by
    their mean gap (`timed`: gap and count). The price of an idle minute. Memory.
    """
    with _job(clusters, "steady") as (job, began), peak_memory(job.pids) as peak:
        first = _compared(job, began)
        wait_for(lambda: _synced(job) >= clusters.topics * len(FLOWS), WITHIN, "all groups to be compared")
        first["groups compared"] = time.monotonic() - began
        full = _full(job)
        latencies = changed(clusters, timed, seed)
        acls = _granted(clusters)
        say(f"{IDLE:g} s without a change")
        cpu = idle_cpu(job.pids, clusters)
        settled = dict(resident(job.pids))
        again = _full(job)
    return {"first": first, "full": full, "full_later": again, "latencies": latencies, "acls": acls, "cpu": cpu} | {
        "resident": settled,
        "peak": peak,
    }


def changed(clusters: ScaleClusters, timed: Sequence[tuple[float, int]], seed: int) -> dict[str, list[float]]:
    """Seconds of each change, by their mean gap. A first change arrives before: the copier is at work."""
    load = Changes(clusters.source_bootstraps, clusters.target.bootstrap, clusters.topics, seed)
    first = load.run(1, 0.1, WITHIN)
    say(f"a first change took {first[0]:.1f} s")
    found = {}
    for gap, count in timed:
        say(f"{count} changes, {gap:g} s apart")
        found[f"{gap:g}"] = load.run(count, gap, WITHIN)
    return found


def _granted(clusters: ScaleClusters) -> list[float]:
    """Seconds of ACLs that are granted one after the other, of new principals, on the sources in turn."""
    target, seconds = AdminClient({"bootstrap.servers": clusters.target.bootstrap}), list[float]()
    chance, pause = random.Random(1), threading.Event()
    sources = {
        alias: open_cluster(alias, {"bootstrap.servers": at}) for alias, at in clusters.source_bootstraps.items()
    }
    try:
        for number in range(ACLS):
            alias = [*sources][number % len(sources)]
            # At any moment of the passes: a matter of time, not of a condition.
            pause.wait(chance.expovariate(1 / 2))
            acl = read_acl(f"User:granted-{time.time_ns()}", topic_name(number))
            sources[alias].acls.create([acl])
            seconds.append(acl_arrives(target, acl, there=True, source=alias))
    finally:
        for one in sources.values():
            one.close()
    say(f"ACLs granted: {min(seconds):.2f} to {max(seconds):.2f} s")
    return seconds


@contextmanager
def _job(clusters: ScaleClusters, name: str) -> Iterator[tuple[LocalJob, float]]:
    folder = clusters.root / f"{name}-{time.monotonic_ns()}"
    say(f"{name}: the job starts, its log is {folder}/job.log")
    began = time.monotonic()
    with job_of(mirror_properties(clusters.bootstraps, FLOWS, **OWN), folder) as job:
        yield job, began


def idle_cpu(pids: Sequence[int], clusters: ScaleClusters) -> dict[str, float]:
    """CPU seconds of an idle minute: of the `job` with these processes, or of MM2 in its place, and of the clusters."""
    idle_costs((), SETTLED_AFTER)
    price = idle_costs([pids, *clusters.pids], IDLE)
    cpu = dict(zip(("job", "sources", "target"), (one.cpu_seconds for one in price), strict=True))
    say(f"CPU of an idle minute: {cpu}")
    return cpu


def _compared(job: LocalJob, began: float) -> dict[str, float]:
    """Seconds by kind until every flow has compared it and left nothing to do."""
    seconds: dict[str, float] = {}

    def done() -> bool:
        job.check()
        kinds = [flow["kinds"] for flow in job.status().get("flows", [])]
        for name in KINDS:
            if name not in seconds and len(kinds) == len(FLOWS) and all(one[name]["last_success"] for one in kinds):
                seconds[name] = time.monotonic() - began
                say(f"{name}: compared after {seconds[name]:.1f} s")
        return len(seconds) == len(KINDS)

    wait_for(done, WITHIN, "every kind to be compared")
    return seconds


def _synced(job: LocalJob) -> float:
    job.check()
    verdicts = (one for one in Meter(job).samples() if one.name == "lockstep_offset_verdicts")
    return sum(one.value for one in verdicts if one.labels["verdict"] == "SYNCED")


def _moved(job: LocalJob) -> float:
    job.check()
    changes = (one for one in Meter(job).samples() if one.name == "lockstep_changes_total")
    moved = ("group-offset", "update", "applied")
    return sum(one.value for one in changes if tuple(one.labels[name] for name in ("kind", "op", "result")) == moved)


def _full(job: LocalJob) -> Mapping[str, list[float]]:
    """Seconds of full comparisons: of one flow after the other, and of all at once."""
    one = [_look(job, flow) for _ in range(FULL_ROUNDS) for flow in FLOWS]
    with ThreadPoolExecutor(len(FLOWS)) as pool:
        together = [seconds for _ in range(FULL_ROUNDS) for seconds in pool.map(lambda flow: _look(job, flow), FLOWS)]
    say(f"full comparisons: one flow {min(one):.2f} to {max(one):.2f} s, all at once up to {max(together):.2f} s")
    return {"one": one, "all": together}


def _look(job: LocalJob, flow: str) -> float:
    start = time.monotonic()
    body = {"topics": [], "flows": [flow], "wait_seconds": 300}
    answer = httpx.post(f"{job.address}/look", json=body, timeout=330).json()
    if not answer["looked"][flow]:
        raise TimeoutError(f"no full comparison of {flow} within 300 s: {answer}")
    return time.monotonic() - start
