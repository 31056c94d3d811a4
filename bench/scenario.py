"""One way of replicating configs: started, left idle for its price, then changed for its latency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror
from bench.costs import counted, first_comparison, idle_costs, samples, since
from bench.pair import HEARTBEATS, BenchPair, intervals, make_topics, pair_of
from bench.topic_changes import Changes, bench_topics

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
WATCHED = ("sync.topic.configs", "sync.topic.acls", "refresh.topics")
"""Whose interval is a way of MM2."""

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
FAST = "MM2, intervals of 1 s"
"""What goals are ratios of, in the same run."""

SCENARIOS = (
    Scenario(DEFAULT),
    Scenario(
        "Lockstep, a trigger every 30 seconds",
        own={"lockstep.trigger.interval": "30 seconds", "lockstep.heartbeat.timeout": "90 seconds"},
    ),
    Scenario("MM2 alone, at its defaults", mirror=600, timed=False),
    Scenario(FAST, mirror=1),
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
    requests: dict[str, float]
    first_comparison: float | None
    starting: list[float]

    @property
    def cpu_all(self) -> float:
        """Job and both brokers together."""
        return self.cpu_job + self.cpu_source + self.cpu_target


@contextmanager
def bench_of(topics: int) -> Iterator[BenchPair]:
    """New clusters, with as many topics on the source."""
    with pair_of("bench") as pair:
        make_topics(pair.source, bench_topics(topics))
        yield pair


def measure(pair: BenchPair, scenario: Scenario, topics: int, changes: int, seed: int) -> Result:
    """Starts it, waits for a first change to arrive, measures, stops it."""
    with started(pair, scenario) as runs:
        job = runs if isinstance(runs, LocalJob) else None
        first = first_comparison(job) if job else None
        starting, latencies = _changed(pair, scenario, topics, changes, seed)
        before = counted(samples(job)) if job else Counter()
        price, source, target = idle_costs((runs.pids, pair.a.pids, pair.b.pids), IDLE)
        asked = since(counted(samples(job)), before) if job else {}
    requests = {"all": sum(asked.values()), "write": sum(asked.get(api, 0) for api in WRITES)} if job else {}
    return Result(
        scenario.name,
        topics,
        latencies,
        price.cpu_seconds,
        source.cpu_seconds,
        target.cpu_seconds,
        price.memory.total(),
        requests={name: count * 60 / IDLE for name, count in requests.items()},
        first_comparison=first,
        starting=starting,
    )


@contextmanager
def started(pair: BenchPair, scenario: Scenario) -> Iterator[LocalJob | LocalMirror]:
    """MM2, or the job with an MM2 beside it: who replicates configs."""
    keys = {} if scenario.mirror is None else intervals(scenario.mirror, *WATCHED)
    with ExitStack() as stack:
        mirror = stack.enter_context(pair.mirror(**keys, **HEARTBEATS))
        yield stack.enter_context(pair.job(**scenario.own)) if scenario.is_lockstep else mirror


def _changed(
    pair: BenchPair, scenario: Scenario, topics: int, changes: int, seed: int
) -> tuple[list[float], list[float]]:
    """Right after the start, and later. They come before the price, so that it is that of a JVM that has settled."""
    if not scenario.timed:
        idle_costs((), SETTLED_AFTER)
        return [], []
    load = Changes({"a": pair.a.bootstrap}, pair.b.bootstrap, topics, seed)
    slowest = 3.0 * (scenario.mirror or 1) + START_WITHIN
    load.run(1, 0.1, slowest)
    starting = load.run(STARTING, MEAN_GAP, slowest)
    idle_costs((), REST)
    latencies = load.run(changes, MEAN_GAP, slowest)
    idle_costs((), REST)
    return starting, latencies
