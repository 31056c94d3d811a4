"""One way of replicating configs: started, left idle for its price, then changed for its latency."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from app.local.local_cluster import LocalCluster
from app.local.local_job import JOB_READY_WITHIN, LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import wait_for
from bench.topic_changes import Changes, create_topics, job_of, topic_name, wait_for_topics

IDLE = 45.0
"""Seconds without a change over which the price is taken."""

MEAN_GAP = 1.0
"""Seconds between two changes on average; the gaps are distributed exponentially."""

SETTLED_AFTER = 60.0
"""Seconds for which a way without changes is left alone before its price is taken."""

STARTING = 10
"""Changes that are timed by themselves, as soon as a first one has arrived: everything has only just started."""

REST = 30.0
"""Seconds without a change between those and the others, and between the last one and the price."""

START_WITHIN = 300.0
WRITES = frozenset(
    {"IncrementalAlterConfigs", "AlterConfigs", "CreateTopics", "CreatePartitions", "DeleteTopics", "CreateAcls"}
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`mirror`: MM2's own interval in seconds, or None for its defaults with Lockstep beside it.

    `own`: further lines of Lockstep's file. `timed`: False where only the idle price is of interest.
    """

    name: str
    mirror: int | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    timed: bool = True

    @property
    def is_lockstep(self) -> bool:
        """Whether the job runs."""
        return self.mirror is None


DEFAULT = "Lockstep, default"

SCENARIOS = (
    Scenario(DEFAULT),
    Scenario(
        "Lockstep, a trigger every 30 seconds",
        own={"lockstep.trigger.interval": "30 seconds", "lockstep.heartbeat.timeout": "90 seconds"},
    ),
    Scenario("MM2 alone, at its defaults", mirror=600, timed=False),
    Scenario("MM2, intervals of 1 s", mirror=1),
)


@dataclass
class Result:
    """One way of replicating configs at one number of topics. Seconds; CPU in seconds an idle minute; bytes.

    `starting`: of the first changes after a start, which are not among the `latencies`."""

    name: str
    topics: int
    latencies: list[float]
    cpu_job: float
    cpu_source: float
    cpu_target: float
    resident: int
    requests: dict[str, float] = field(default_factory=dict)
    first_comparison: float | None = None
    starting: list[float] = field(default_factory=list)

    @property
    def cpu_all(self) -> float:
        """Job and both brokers together."""
        return self.cpu_job + self.cpu_source + self.cpu_target


@dataclass(frozen=True)
class Bench:
    """Both clusters with their topics on them."""

    source: LocalCluster
    target: LocalCluster
    topics: int
    folder: Path


@contextmanager
def bench_of(topics: int) -> Iterator[Bench]:
    """New clusters, with as many topics on the source."""
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder, ExitStack() as stack:
        root = Path(folder)
        source, target = (stack.enter_context(LocalCluster(alias, root / alias, heap="768m")) for alias in "ab")
        create_topics(source.bootstrap, topics)
        wait_for_topics(source.bootstrap, {topic_name(number) for number in range(topics)}, 120)
        yield Bench(source, target, topics, root)


def measure(bench: Bench, scenario: Scenario, changes: int, seed: int) -> Result:
    """Starts it, waits for a first change to arrive, measures, stops it."""
    with ExitStack() as stack:
        mirror = stack.enter_context(mirror_of(bench, scenario))
        job = stack.enter_context(started_job(bench, scenario)) if scenario.is_lockstep else None
        pids = job.pids if job else mirror.pids
        meter = Meter(job) if job else None
        first = meter.first_comparison() if meter else None
        starting, latencies = _changed(bench, scenario, changes, seed)
        price = _idle(bench, pids, meter, IDLE)
    return Result(scenario.name, bench.topics, latencies, *price, first_comparison=first, starting=starting)


@contextmanager
def started(bench: Bench, scenario: Scenario) -> Iterator[LocalJob | LocalMirror]:
    """MM2, or the job with an MM2 beside it: who replicates configs."""
    with ExitStack() as stack:
        mirror = stack.enter_context(mirror_of(bench, scenario))
        yield stack.enter_context(started_job(bench, scenario)) if scenario.is_lockstep else mirror


def _changed(bench: Bench, scenario: Scenario, changes: int, seed: int) -> tuple[list[float], list[float]]:
    """Right after the start, and later. They come before the price, so that it is that of a JVM that has settled."""
    if not scenario.timed:
        idle_costs((), SETTLED_AFTER)
        return [], []
    load = Changes({"a": bench.source.bootstrap}, bench.target.bootstrap, bench.topics, seed)
    slowest = 3.0 * (scenario.mirror or 1) + START_WITHIN
    load.run(1, 0.1, slowest)
    starting = load.run(STARTING, MEAN_GAP, slowest)
    idle_costs((), REST)
    latencies = load.run(changes, MEAN_GAP, slowest)
    idle_costs((), REST)
    return starting, latencies


def _idle(
    bench: Bench, pids: list[int], meter: Meter | None, seconds: float
) -> tuple[float, float, float, int, dict[str, float]]:
    groups = (pids, bench.source.pids, bench.target.pids)
    requests = meter.requests() if meter else {}
    start = time.monotonic()
    after = idle_costs(groups, seconds)
    per_minute = 60 / (time.monotonic() - start)
    counted = {name: (value - requests[name]) * per_minute for name, value in meter.requests().items()} if meter else {}
    cpu = [row.cpu_seconds for row in after]
    return cpu[0], cpu[1], cpu[2], after[0].resident, counted


@contextmanager
def mirror_of(bench: Bench, scenario: Scenario) -> Iterator[LocalMirror]:
    bootstraps = {"a": bench.source.bootstrap, "b": bench.target.bootstrap}
    overrides = {"b->a.emit.heartbeats.enabled": "true"}
    if scenario.mirror is not None:
        names = ("sync.topic.configs", "sync.topic.acls", "refresh.topics")
        overrides |= {f"{name}.interval.seconds": str(scenario.mirror) for name in names}
    properties = mirror_properties(bootstraps, ["a->b"], **overrides)
    with LocalMirror(properties, bench.folder / f"mirror-{time.monotonic_ns()}") as mirror:
        yield mirror


class Meter:
    """What the running job's `/metrics` say."""

    def __init__(self, job: LocalJob) -> None:
        self._job = job

    def samples(self) -> list[Sample]:
        """Every sample; none while the job is not up."""
        try:
            text = httpx.get(f"{self._job.address}/metrics", timeout=5).text
        except httpx.HTTPError:
            return []
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def requests(self) -> dict[str, float]:
        """Admin requests so far: all, and those that write."""
        rows = [(s.labels["api"], s.value) for s in self.samples() if s.name == "lockstep_admin_requests_total"]
        return {"all": sum(n for _, n in rows), "write": sum(n for api, n in rows if api in WRITES)}

    def first_comparison(self) -> float:
        """Seconds that the first pass took to observe and compare everything."""
        return wait_for(self._first_pass, JOB_READY_WITHIN, "the job's first pass")

    def _first_pass(self) -> float:
        self._job.check()
        phases = {s.labels["phase"]: s.value for s in self.samples() if s.name == "lockstep_reconcile_seconds_sum"}
        return phases["observe"] + phases["plan"] if "plan" in phases else 0.0


def started_job(bench: Bench, scenario: Scenario) -> AbstractContextManager[LocalJob]:
    """The job of a scenario, beside an MM2 that runs."""
    clusters = {"a": bench.source.bootstrap, "b": bench.target.bootstrap}
    properties = mirror_properties(clusters, ["a->b"], **scenario.own)
    return job_of(properties, bench.folder / f"job-{time.monotonic_ns()}")


# What processes cost: CPU seconds and resident memory, by the operating system's own accounts.


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds used so far and resident bytes now, of some processes together."""

    cpu_seconds: float
    resident: int

    def since(self, before: Cost) -> Cost:
        """CPU used in between, memory as it is now."""
        return Cost(self.cpu_seconds - before.cpu_seconds, self.resident)


def cost(pids: Iterable[int]) -> Cost:
    """Of these processes and all their descendants."""
    cpu, resident = 0.0, 0
    for process in family(pids):
        try:
            times = process.cpu_times()
            cpu += times.user + times.system
            resident += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return Cost(cpu, resident)


def idle_costs(groups: Sequence[Sequence[int]], seconds: float) -> list[Cost]:
    """Of these processes by group, left alone for so long: CPU seconds a minute, resident bytes at the end."""
    before, start = [cost(group) for group in groups], time.monotonic()
    # The price is that of a time, not of anything that could be waited for.
    while time.monotonic() - start < seconds:
        time.sleep(0.1)
    used = [cost(group).since(earlier) for group, earlier in zip(groups, before, strict=True)]
    per_minute = 60 / (time.monotonic() - start)
    return [replace(one, cpu_seconds=one.cpu_seconds * per_minute) for one in used]


def family(pids: Iterable[int]) -> set[psutil.Process]:
    """The processes and everything below them."""
    found: set[psutil.Process] = set()
    for pid in pids:
        try:
            process = psutil.Process(pid)
            found |= {process, *process.children(recursive=True)}
        except psutil.NoSuchProcess:
            continue
    return found


# What some work costs a running job: requests by name, micro-batches, and the most memory its processes took.


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
