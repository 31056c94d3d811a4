"""What a job and other processes cost: CPU and memory by the operating system's accounts, requests by `/metrics`."""

from __future__ import annotations

import platform
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from app.local.local_job import JOB_READY_WITHIN, LocalJob
from app.local.waiting import wait_for
from bench.pair import running

LOOK_EVERY = 0.2
"""Seconds between two looks at the memory: a shorter peak than this can be missed."""


def machine() -> dict[str, Any]:
    memory = round(psutil.virtual_memory().total / 2**30)
    return {"cores": psutil.cpu_count(), "memory_gib": memory, "python": platform.python_version()}


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds used so far, and resident bytes now by kind of process: `jvm`, `python`, `other`."""

    cpu_seconds: float
    memory: Counter[str]


def cost(pids: Iterable[int]) -> Cost:
    """Of these processes and all their descendants."""
    cpu, memory = 0.0, Counter({"jvm": 0, "python": 0, "other": 0})
    for process in family(pids):
        with suppress(psutil.NoSuchProcess):
            times, name = process.cpu_times(), process.name()
            cpu += times.user + times.system
            kind = "jvm" if name.startswith("java") else "python" if name.startswith("python") else "other"
            memory[kind] += process.memory_info().rss
    return Cost(cpu, memory)


def family(pids: Iterable[int]) -> set[psutil.Process]:
    found: set[psutil.Process] = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            found |= {process, *process.children(recursive=True)}
    return found


def idle_costs(groups: Sequence[Sequence[int]], seconds: float) -> list[Cost]:
    """Of these processes by group, left alone for so long: CPU seconds a minute, memory at the end."""
    before, start = [cost(group) for group in groups], time.monotonic()
    # The price is that of a time, not of anything that could be waited for.
    time.sleep(seconds)
    after, minutes = [cost(group) for group in groups], (time.monotonic() - start) / 60
    return [
        Cost((now.cpu_seconds - then.cpu_seconds) / minutes, now.memory)
        for now, then in zip(after, before, strict=True)
    ]


def resident(pids: Iterable[int]) -> dict[str, int]:
    """Bytes now: `jvm`, and `python` all together."""
    memory = cost(pids).memory
    return {name: memory[name] for name in ("jvm", "python")}


@contextmanager
def peak_memory(pids: list[int]) -> Iterator[dict[str, int]]:
    """The most of what `resident` gives, each kind at its own moment, while the block runs."""
    peak = {"jvm": 0, "python": 0}

    def look(stop: threading.Event) -> None:
        while not stop.wait(LOOK_EVERY):
            now = resident(pids)
            peak.update({name: max(peak[name], now[name]) for name in peak})

    with running(look):
        yield peak


def samples(job: LocalJob) -> list[Sample]:
    """What the job's `/metrics` say; nothing while it is not up."""
    try:
        text = httpx.get(f"{job.address}/metrics", timeout=5).text
    except httpx.HTTPError:
        return []
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def total(job: LocalJob, name: str, **labels: str) -> float:
    """The sum of the samples of this name with these labels. Raises LockstepError where the job has ended."""
    job.check()
    return sum(one.value for one in samples(job) if one.name == name and labels.items() <= one.labels.items())


def first_comparison(job: LocalJob) -> float:
    """Seconds that the first pass took to observe and compare everything."""

    def first_pass() -> float:
        observed, planned = (total(job, "lockstep_reconcile_seconds_sum", phase=one) for one in ("observe", "plan"))
        return observed + planned if planned else 0.0

    return wait_for(first_pass, JOB_READY_WITHIN, "the job's first pass")


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
