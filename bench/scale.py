"""Ten times as large: one job with four flows, and MM2 beside it, from 500 topics on: `python -m bench.scale`.

Five clusters of one broker: four sources with the same number of topics, groups and ACLs each, and one target. First
the job makes all of the target's topics and ACLs and syncs all groups. Then another job, with all in step, is timed and
priced. Then MM2 runs alone with the same four flows.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import httpx
import typer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import wait_for
from app.wiring import open_cluster
from bench.acl_scenario import acl_arrives, grant_all, read_acl
from bench.group_scenario import commit_all
from bench.saved_figures import FIGURES, MIB, machine, quantile, read, save, say, table, verdict
from bench.scenario import Meter, idle_costs, peak_memory, resident
from bench.topic_changes import (
    SYNCS,
    Changes,
    PlainRecord,
    create_topics,
    job_of,
    produce_all,
    topic_name,
    wait_for_topics,
)
from streaming.errors import LockstepError
from streaming.mm2.codec import encode_offset_sync
from streaming.mm2.records import OffsetSync, TopicPartition

# bench/figures/benchmarks-scale.md, from what was measured.


PAGE: Final = FIGURES / "benchmarks-scale.md"
RESULTS: Final = FIGURES / "benchmarks-scale.json"
NOTES: Final = FIGURES / "benchmarks-scale-notes.md"

FAST: Final = "MM2, intervals of 1 s"
EVERY_SECOND, EVERY_FIVE = "1", "5"
"""Mean seconds between two changes, as the results name them."""

INTRO: Final = """# 10,000 topics in four flows

`python -m bench.scale` writes this page and `benchmarks-scale.json`. One job has four flows into one target: five clusters of one broker. Topics have one partition and one record each, five ACLs, and a group that has read them.

1. The target is empty, and the job makes everything.
2. Another job finds all in step: its start, full comparisons (`POST /look`), and changes of `retention.ms` at random topics. Each change is timed until `DescribeConfigs` on the target shows it. Then a minute without a change.
3. MM2 runs alone with the same four flows, `sync.topic.configs`, `sync.topic.acls` and `refresh.topics` at 1 s, and syncs no group offsets.

{cores} cores and {memory_gib} GiB for five brokers, MM2 or Spark together, Python {python}: compare rows of one column, not machines.
"""

Row = tuple[str, Callable[[Mapping[str, Any]], float]]


def _time(part: str, gap: str, share: float) -> Callable[[Mapping[str, Any]], float]:
    return lambda size: quantile(size[part]["latencies"][gap], share)


def _together(part: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda size: sum(size[part]["cpu"].values())


def _memory(part: str, name: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda size: sum(size[part][name].values()) / MIB


SECTIONS: Final[Sequence[tuple[str, Sequence[Row]]]] = (
    (
        "Starts and full comparisons, seconds",
        (
            (
                "empty target: topics and configs made, by the end of the first pass",
                lambda size: size["first"]["seconds"]["topic-config"],
            ),
            ("empty target: ACLs made, by the end of the same pass", lambda size: size["first"]["seconds"]["acl"]),
            ("empty target: all groups synced", lambda size: size["first"]["seconds"]["groups synced"]),
            (
                "all groups moved on, from when MM2's records and offset-syncs are there",
                lambda size: size["first"]["seconds"]["groups moved"],
            ),
            ("all in step: topics and configs compared", lambda size: size["steady"]["first"]["topic-config"]),
            ("all in step: ACLs compared", lambda size: size["steady"]["first"]["acl"]),
            ("all in step: all groups compared", lambda size: size["steady"]["first"]["groups compared"]),
            (
                "full comparison of one flow, after the changes, median",
                lambda size: statistics.median(size["steady"]["full_later"]["one"]),
            ),
            ("the slowest of four at once", lambda size: max(size["steady"]["full_later"]["all"])),
        ),
    ),
    (
        "Changes, seconds",
        (
            ("Lockstep, one a second: p50", _time("steady", EVERY_SECOND, 0.5)),
            ("p99", _time("steady", EVERY_SECOND, 0.99)),
            (f"{FAST}, one a second: p50", _time("mm2", EVERY_SECOND, 0.5)),
            ("p99", _time("mm2", EVERY_SECOND, 0.99)),
            ("Lockstep, one in 5 s: p50", _time("steady", EVERY_FIVE, 0.5)),
            ("p99", _time("steady", EVERY_FIVE, 0.99)),
            (f"{FAST}, one in 5 s: p50", _time("mm2", EVERY_FIVE, 0.5)),
            ("p99", _time("mm2", EVERY_FIVE, 0.99)),
            ("Lockstep, an ACL that is granted: median", lambda size: statistics.median(size["steady"]["acls"])),
            ("slowest", lambda size: max(size["steady"]["acls"])),
        ),
    ),
    (
        "An idle minute, CPU-seconds",
        (
            ("Lockstep: job", lambda size: size["steady"]["cpu"]["job"]),
            ("the four sources' brokers", lambda size: size["steady"]["cpu"]["sources"]),
            ("the target's broker", lambda size: size["steady"]["cpu"]["target"]),
            ("together", _together("steady")),
            (f"{FAST}: MM2", lambda size: size["mm2"]["cpu"]["job"]),
            ("the four sources' brokers", lambda size: size["mm2"]["cpu"]["sources"]),
            ("the target's broker", lambda size: size["mm2"]["cpu"]["target"]),
            ("together", _together("mm2")),
        ),
    ),
    (
        "Memory, MiB resident",
        (
            ("Lockstep, after the changes: JVM", lambda size: size["steady"]["resident"]["jvm"] / MIB),
            ("Python", lambda size: size["steady"]["resident"]["python"] / MIB),
            ("at most, each process at its own moment", _memory("steady", "peak")),
            ("at most while everything is made", _memory("first", "peak")),
            (FAST, _memory("mm2", "resident")),
        ),
    ),
)

GOALS: Final[Sequence[tuple[str, float, str, Callable[[Mapping[str, Any]], float]]]] = (
    (
        "one change in 5 s: p99, to MM2's at 1 s",
        1.0,
        "of MM2's",
        lambda size: _time("steady", EVERY_FIVE, 0.99)(size) / _time("mm2", EVERY_FIVE, 0.99)(size),
    ),
    (
        "CPU of an idle minute, together, to MM2's at 1 s",
        1 / 3,
        "of MM2's",
        lambda size: _together("steady")(size) / _together("mm2")(size),
    ),
    ("one change a second: p99", 5.0, "s", _time("steady", EVERY_SECOND, 0.99)),
    ("most memory of the job", 2048.0, "MiB", _memory("steady", "peak")),
)
"""Of the largest size: what, at most, its unit, and how to read it."""


def page(found: Mapping[str, Any]) -> str:
    """The whole page."""
    sizes = {int(count): of for count, of in found["sizes"].items()}
    parts = [INTRO.format(**found["facts"])]
    for title, rows in SECTIONS:
        parts.append(f"## {title}\n\n{_table(sizes, rows)}\n")
    parts.append(_goals(sizes))
    if NOTES.exists():
        parts.append(NOTES.read_text())
    return "\n".join(parts)


def _table(sizes: Mapping[int, Mapping[str, Any]], rows: Sequence[Row]) -> str:
    counts = sorted(sizes)
    cells = []
    for name, figure in rows:
        values = [_value(sizes[count], figure) for count in counts]
        first, last = values[0], values[-1]
        grows = "-" if len(counts) < 2 or not first or last is None else f"{last / first:.1f}"
        cells.append([name, *map(_shown, values), grows])
    return table(("", *(f"{count:,} topics" for count in counts), "grows by"), cells)


def _value(size: Mapping[str, Any], read: Callable[[Mapping[str, Any]], float]) -> float | None:
    """None: not measured."""
    try:
        return read(size)
    except KeyError:
        return None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _goals(sizes: Mapping[int, Mapping[str, Any]]) -> str:
    count, rows = max(sizes), []
    for name, most, unit, figure in GOALS:
        value = _value(sizes[count], figure)
        text = "not measured" if value is None else verdict(value - most, _shown(value - most))
        rows.append((name, f"≤ {_shown(most)} {unit}", _shown(value), text))
    return f"## Goals at {count:,} topics\n\n" + table(("what", "goal", "measured", ""), rows) + "\n"


CHANGES: Final = (1.0, 40)
SELDOM: Final = (5.0, 30)
"""Mean seconds between two changes, and how many are timed."""

SELDOM_FROM: Final = 10_000
"""Topics from which on changes that are further apart are timed as well: it takes minutes."""

MIRROR_HEAP: Final = "1g"
INTERVALS: Final = ("sync.topic.configs", "sync.topic.acls", "refresh.topics")
PARTS: Final = ("first", "steady", "mm2")


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of topics in all, comma separated.")] = "500,2000,10000",
    parts: Annotated[str, typer.Option(help="What is measured; `steady` needs what `first` made.")] = ",".join(PARTS),
    keep: Annotated[Path | None, typer.Option(help="Clusters stay in this folder, for another run.")] = None,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
    render: Annotated[bool, typer.Option("--render", help="Only write the page again.")] = False,
) -> None:
    """Measures, saves after each part, and writes the page."""
    found = read(out) or {"sizes": {}}
    if not render:
        found["facts"] = machine()
        for count in (int(size) for size in sizes.split(",")):
            timed = [CHANGES, *([SELDOM] if count >= SELDOM_FROM else [])]
            of_size = found["sizes"].setdefault(str(count), {})
            for name, result in _measured(count, parts.split(","), timed, keep):
                of_size[name] = result
                save(out, found)
    if out == RESULTS:
        PAGE.write_text(page(found))


def _measured(
    count: int, parts: Sequence[str], timed: Sequence[tuple[float, int]], keep: Path | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with _folder(keep, count) as root, scale_clusters(root, count) as clusters:
        for part in parts:
            say(f"{count:,} topics: {part}")
            try:
                if part == "first":
                    yield part, first_contact(clusters)
                elif part == "steady":
                    yield part, steady(clusters, timed, seed=1)
                else:
                    yield part, mirrored(clusters, timed, seed=2)
            except (TimeoutError, LockstepError) as error:
                say(f"left out: {error}")


@contextmanager
def _folder(keep: Path | None, count: int) -> Iterator[Path]:
    if keep is not None:
        root = keep / str(count)
        root.mkdir(parents=True, exist_ok=True)
        yield root
    else:
        with tempfile.TemporaryDirectory(prefix="lockstep-bench-scale-") as folder:
            yield Path(folder)


def mirrored(clusters: ScaleClusters, timed: Sequence[tuple[float, int]], seed: int) -> dict[str, Any]:
    """MM2 alone, its intervals at 1 s, the same four flows."""
    intervals = {f"{name}.interval.seconds": "1" for name in INTERVALS}
    properties = mirror_properties(clusters.bootstraps, FLOWS, **intervals)
    folder = clusters.root / f"mirror-{time.monotonic_ns()}"
    began = time.monotonic()
    with LocalMirror(properties, folder, heap=MIRROR_HEAP) as mirror:
        say(f"MM2's connectors started after {time.monotonic() - began:.1f} s")
        latencies = changed(clusters, timed, seed)
        cpu = idle_cpu(mirror.pids, clusters)
        return {"latencies": latencies, "cpu": cpu, "resident": dict(resident(mirror.pids)), "way": FAST}


# One job with four flows into one target: its start, its full comparisons, its latency, its price.


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


# Four source clusters and one target, with as many topics, ACLs and groups on the sources as a size says.


SOURCES: Final = ("a", "c", "d", "e")
TARGET: Final = "b"
FLOWS: Final = tuple(f"{alias}->{TARGET}" for alias in SOURCES)
ACLS_A_TOPIC: Final = 5
FILLED_WITHIN: Final = 900.0
TOPICS_OF_A_PRODUCER: Final = 250
"""librdkafka asks for all its topics again at each new one."""


@dataclass(frozen=True)
class ScaleClusters:
    """`topics`: of each source; every source has as many groups, and `ACLS_A_TOPIC` times as many ACLs."""

    sources: Mapping[str, LocalCluster]
    target: LocalCluster
    topics: int
    root: Path

    @property
    def bootstraps(self) -> dict[str, str]:
        """Of all, by alias."""
        return self.source_bootstraps | {TARGET: self.target.bootstrap}

    @property
    def source_bootstraps(self) -> dict[str, str]:
        """Of the sources, by alias."""
        return {alias: one.bootstrap for alias, one in self.sources.items()}

    @property
    def pids(self) -> tuple[list[int], list[int]]:
        """Of the sources' brokers, and of the target's."""
        return [pid for one in self.sources.values() for pid in one.pids], self.target.pids


@contextmanager
def scale_clusters(root: Path, topics: int) -> Iterator[ScaleClusters]:
    """They run, with `topics` in all on the sources; on folders of an earlier run all is there already."""
    with ExitStack() as stack:
        sources = {alias: stack.enter_context(LocalCluster(alias, root / alias)) for alias in SOURCES}
        target = stack.enter_context(LocalCluster(TARGET, root / TARGET, heap="1g"))
        clusters = ScaleClusters(sources, target, topics // len(SOURCES), root)
        filled = root / "filled"
        if not filled.exists():
            for alias in SOURCES:
                say(f"{clusters.topics:,} topics, as many groups and their ACLs on {alias}")
                _fill(alias, clusters.sources[alias].bootstrap, clusters.topics)
            filled.touch()
        yield clusters


def _fill(alias: str, bootstrap: str, topics: int) -> None:
    names = [topic_name(number) for number in range(topics)]
    create_topics(bootstrap, topics)
    wait_for_topics(bootstrap, {*names}, FILLED_WITHIN)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(SYNCS, 1, 1, config={"cleanup.policy": "compact"})])[SYNCS].result()
    one_record_each(bootstrap, names)
    cluster = open_cluster(alias, {"bootstrap.servers": bootstrap})
    try:
        grant_all(cluster, [read_acl(f"User:app-{n}", name) for name in names for n in range(ACLS_A_TOPIC)])
        commit_all(
            cluster,
            {f"{alias}-group-{number:05d}": {TopicPartition(name, 0): 1} for number, name in enumerate(names)},
        )
    finally:
        cluster.close()


def one_record_each(bootstrap: str, topics: Sequence[str]) -> None:
    """One record in the only partition of each topic. Raises LockstepError when one is not written."""
    for start in range(0, len(topics), TOPICS_OF_A_PRODUCER):
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
        for name in topics[start : start + TOPICS_OF_A_PRODUCER]:
            producer.produce(name, b"one", partition=0)
        if left := producer.flush(FILLED_WITHIN):
            raise LockstepError(f"{left} records could not be written within {FILLED_WITHIN:g} s")


def copy_as_mm2_would(clusters: ScaleClusters) -> None:
    """The sources' records in the topics of the target, which are there, and the offset-syncs of all partitions."""
    copied = clusters.root / "copied"
    if copied.exists():
        return
    names = [topic_name(number) for number in range(clusters.topics)]
    one_record_each(clusters.target.bootstrap, [f"{alias}.{name}" for alias in clusters.sources for name in names])
    syncs = [PlainRecord(*encode_offset_sync(OffsetSync(TopicPartition(name, 0), 0, 0))) for name in names]
    for bootstrap in clusters.source_bootstraps.values():
        produce_all(bootstrap, SYNCS, syncs)
    copied.touch()


if __name__ == "__main__":
    typer.run(main)
