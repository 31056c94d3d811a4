"""What some work costs a running job: requests by name, micro-batches, and the most memory its processes took."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from prometheus_client.samples import Sample

from app.local.local_job import LocalJob
from bench.cost import family
from bench.scenario import Meter

LOOK_EVERY = 0.2
"""Seconds between two looks at the memory: a shorter peak than this can be missed."""


def pass_cost(job: LocalJob, work: Callable[[], float], idle: float) -> dict[str, Any]:
    """`work` gives its own seconds; then the job is left alone for `idle` seconds, whose price is told per batch.

    Gives `seconds`, `requests` of the work by API, `peak` in bytes (`jvm`, `python`), and of an idle batch
    `batch_seconds` and `batch_requests`.
    """
    meter = Meter(job)
    with peak_memory(job.pids) as peak:
        before = counted(meter.samples())
        seconds = work()
        after = counted(meter.samples())
        threading.Event().wait(idle)
        later = counted(meter.samples())
    job.check()
    batches = later["batches"] - after["batches"]
    return {
        "seconds": seconds,
        "requests": since(after, before),
        "peak": peak,
        "batch_seconds": (later["batch seconds"] - after["batch seconds"]) / batches if batches else None,
        "batch_requests": sum(since(later, after).values()) / batches if batches else None,
    }


def counted(samples: Iterable[Sample]) -> Counter[str]:
    """Requests by API, besides `batches` and `batch seconds` so far."""
    names = {"lockstep_batch_seconds_count": "batches", "lockstep_batch_seconds_sum": "batch seconds"}
    found: Counter[str] = Counter()
    for sample in samples:
        name = sample.labels["api"] if sample.name == "lockstep_admin_requests_total" else names.get(sample.name)
        if name is not None:
            found[name] += sample.value  # type: ignore[assignment]  # a Counter may count in parts; its type says int
    return found


def since(after: Counter[str], before: Counter[str]) -> dict[str, float]:
    """Requests in between by API; those that there were none of are left out."""
    apis = after.keys() - {"batches", "batch seconds"}
    return {api: after[api] - before[api] for api in sorted(apis) if after[api] > before[api]}


@contextmanager
def peak_memory(pids: list[int]) -> Iterator[dict[str, int]]:
    """The most resident bytes of the JVM, and of the Python processes together, while the block runs."""
    peak, stop = {"jvm": 0, "python": 0}, threading.Event()

    def look() -> None:
        while not stop.wait(LOOK_EVERY):
            now = resident(pids)
            peak.update({name: max(peak[name], now[name]) for name in peak})

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        stop.set()
        watcher.join()


def resident(pids: Iterable[int]) -> Counter[str]:
    """Bytes now: `jvm`, and `python` all together."""
    now = Counter({"jvm": 0, "python": 0})
    for process in family(pids):
        now.update(_resident(process))
    return now


def _resident(process: psutil.Process) -> dict[str, int]:
    try:
        name, resident = process.name(), process.memory_info().rss
    except psutil.NoSuchProcess:
        return {}
    kind = "jvm" if name.startswith("java") else "python" if name.startswith("python") else None
    return {kind: resident} if kind else {}
