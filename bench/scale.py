"""Ten times as large: one job with four flows, and MM2 beside it, from 500 topics on: `python -m bench.scale`.

Five clusters of one broker: four sources with the same number of topics, groups and ACLs each, and one target. First
the job makes all of the target's topics and ACLs and syncs all groups. Then another job, with all in step, is timed and
priced. Then MM2 runs alone with the same four flows.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import httpx
import typer
from confluent_kafka.admin import AdminClient

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import wait_for
from bench.costs import idle_costs, machine, peak_memory, resident, total
from bench.pair import SYNCS, PlainRecord, commit_all, intervals, job_of, make_topics, offset_sync, opened, produce_all
from bench.saved_figures import FIGURES, page_text, quantile, read, save, say, table, verdict
from bench.timed_changes import FAST, WATCHED, Changes, acl_seconds, bench_topics, grant_all, read_acl, topic_name
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import chunks
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

# bench/figures/benchmarks-scale.md, from what was measured.

PAGE: Final = FIGURES / "benchmarks-scale.md"
RESULTS: Final = FIGURES / "benchmarks-scale.json"

Size = Mapping[str, Any]
Row = tuple[str, str, Callable[[Any], float]]
"""Its name, the path to what is saved of a size, and how that is summed up."""


def _sum(by_name: Mapping[str, float]) -> float:
    return sum(by_name.values())


def _mib(found: Mapping[str, float] | float) -> float:
    return (_sum(found) if isinstance(found, Mapping) else found) / 2**20


P50, P99 = partial(quantile, share=0.5), partial(quantile, share=0.99)

SECTIONS: Final[Mapping[str, Sequence[Row]]] = {
    "Starts and full comparisons, seconds": (
        ("empty target: topics, configs and ACLs made, by the end of the first pass", "first/seconds/compared", float),
        ("empty target: all groups synced", "first/seconds/groups synced", float),
        (
            "all groups moved on, from when MM2's records and offset-syncs are there",
            "first/seconds/groups moved",
            float,
        ),
        ("all in step: topics, configs and ACLs compared", "steady/first/compared", float),
        ("all in step: all groups compared", "steady/first/groups compared", float),
        ("full comparison of one flow, after the changes, median", "steady/full_later/one", statistics.median),
        ("the slowest of four at once", "steady/full_later/all", max),
    ),
    "Changes, seconds": (
        ("Lockstep, one a second: p50", "steady/latencies/1", P50),
        ("p99", "steady/latencies/1", P99),
        (f"{FAST}, one a second: p50", "mm2/latencies/1", P50),
        ("p99", "mm2/latencies/1", P99),
        ("Lockstep, one in 5 s: p50", "steady/latencies/5", P50),
        ("p99", "steady/latencies/5", P99),
        (f"{FAST}, one in 5 s: p50", "mm2/latencies/5", P50),
        ("p99", "mm2/latencies/5", P99),
        ("Lockstep, an ACL that is granted: median", "steady/acls", statistics.median),
        ("slowest", "steady/acls", max),
    ),
    "An idle minute, CPU-seconds": (
        ("Lockstep: job", "steady/cpu/job", float),
        ("the four sources' brokers", "steady/cpu/sources", float),
        ("the target's broker", "steady/cpu/target", float),
        ("together", "steady/cpu", _sum),
        (f"{FAST}: MM2", "mm2/cpu/job", float),
        ("the four sources' brokers", "mm2/cpu/sources", float),
        ("the target's broker", "mm2/cpu/target", float),
        ("together", "mm2/cpu", _sum),
    ),
    "Memory, MiB resident": (
        ("Lockstep, after the changes: JVM", "steady/resident/jvm", _mib),
        ("Python", "steady/resident/python", _mib),
        ("at most, each process at its own moment", "steady/peak", _mib),
        ("at most while everything is made", "first/peak", _mib),
        (FAST, "mm2/resident", _mib),
    ),
}

GOALS: Final[Sequence[tuple[Row, str | None, float, str]]] = (
    (("one change in 5 s: p99, to MM2's at 1 s", "steady/latencies/5", P99), "mm2/latencies/5", 1.0, "of MM2's"),
    (("CPU of an idle minute, together, to MM2's at 1 s", "steady/cpu", _sum), "mm2/cpu", 1 / 3, "of MM2's"),
    (("one change a second: p99", "steady/latencies/1", P99), None, 5.0, "s"),
    (("most memory of the job", "steady/peak", _mib), None, 2048.0, "MiB"),
)
"""Of the largest size: a row, the path to what it is a ratio of, at most how much, and its unit."""


def page(found: Mapping[str, Any]) -> str:
    sizes = {int(count): of for count, of in sorted(found["sizes"].items(), key=lambda size: int(size[0]))}
    largest, text = max(sizes), page_text("benchmarks-scale")
    return "\n".join(
        [
            text[""].format(**found["facts"]),
            *(f"## {title}\n\n{_table(sizes, rows)}\n" for title, rows in SECTIONS.items()),
            f"## Goals at {largest:,} topics\n\n{_goals(sizes[largest])}\n",
            text["What is missed, and why"],
        ]
    )


def _table(sizes: Mapping[int, Size], rows: Sequence[Row]) -> str:
    cells = []
    for name, path, of in rows:
        values = [_value(size, path, of) for size in sizes.values()]
        first, last = values[0], values[-1]
        grows = "-" if len(sizes) < 2 or not first or last is None else f"{last / first:.1f}"
        cells.append([name, *map(_shown, values), grows])
    return table(" | ".join(["", *(f"{count:,} topics" for count in sizes), "grows by"]).strip(), cells)


def _value(size: Any, path: str, of: Callable[[Any], float]) -> float | None:
    """None: not measured."""
    for name in path.split("/"):
        if name not in size:
            return None
        size = size[name]
    return of(size)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _goals(size: Size) -> str:
    rows = []
    for (name, path, of), beside, most, unit in GOALS:
        value, one = _value(size, path, of), _value(size, beside, of) if beside else 1.0
        ratio = value / one if value is not None and one else None
        text = "not measured" if ratio is None else verdict(ratio - most, _shown(ratio - most))
        rows.append((name, f"≤ {_shown(most)} {unit}", _shown(ratio), text))
    return table("what | goal | measured |", rows)


CHANGES: Final = (1.0, 40)
SELDOM: Final = (5.0, 30)
"""Mean seconds between two changes, and how many are timed."""

SELDOM_FROM: Final = 10_000
"""Topics from which on changes that are further apart are timed as well: it takes minutes."""

MIRROR_HEAP: Final = "1g"


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of topics in all, comma separated.")] = "500,2000,10000",
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
    render: Annotated[bool, typer.Option("--render", help="Only write the page again.")] = False,
) -> None:
    """Measures, saves after each part, and writes the page."""
    found = read(out) or {"sizes": {}}
    if not render:
        found["facts"] = machine()
        for count in (int(size) for size in sizes.split(",")):
            of_size = found["sizes"].setdefault(str(count), {})
            for name, result in _measured(count):
                of_size[name] = result
                save(out, found)
    if out == RESULTS:
        PAGE.write_text(page(found))


def _measured(count: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    parts: Mapping[str, Callable[[ScaleClusters], Mapping[str, Any]]] = {
        "first": first_contact,
        "steady": steady,
        "mm2": mirrored,
    }
    with scale_clusters(count) as clusters:
        for name, part in parts.items():
            say(f"{count:,} topics: {name}")
            try:
                yield name, part(clusters)
            except (TimeoutError, LockstepError) as error:
                say(f"left out: {error}")


def mirrored(clusters: ScaleClusters) -> dict[str, Any]:
    """MM2 alone, its intervals at 1 s, the same four flows."""
    properties = mirror_properties(clusters.bootstraps, FLOWS, **intervals(1, *WATCHED))
    began = time.monotonic()
    with LocalMirror(properties, clusters.root / "mirror", heap=MIRROR_HEAP) as mirror:
        say(f"MM2's connectors started after {time.monotonic() - began:.1f} s")
        latencies = changed(clusters, seed=2)
        cpu = idle_cpu(mirror.pids, clusters)
        return {"latencies": latencies, "cpu": cpu, "resident": resident(mirror.pids)}


# One job with four flows into one target: its start, its full comparisons, its latency, its price.

WITHIN: Final = 1800.0
IDLE: Final = 60.0
SETTLED_AFTER: Final = 30.0
"""Seconds between the last change and an idle minute. After a change its topics are compared once more, and the
source's log is sampled more often."""
FULL_ROUNDS: Final = 3
ACLS: Final = 12
OWN: Final = {"lockstep.sync.group.offsets.enabled": "true", "sync.full.acl.enabled": "true"}


def first_contact(clusters: ScaleClusters) -> dict[str, Any]:
    """What a job with an empty target needs.

    Seconds from its start until every kind is in step and all groups are synced. Seconds from MM2's records and
    offset-syncs until all groups have moved on. The most memory meanwhile.
    """
    with _job(clusters, "first", "groups synced") as (job, seconds, peak):
        copy_as_mm2_would(clusters)
        copied = time.monotonic()
        moved = {"kind": "group-offset", "op": "update", "result": "applied"}
        groups = clusters.topics * len(FLOWS)
        wait_for(lambda: total(job, "lockstep_changes_total", **moved) >= groups, WITHIN, "all groups to move on")
        seconds["groups moved"] = time.monotonic() - copied
        say(f"groups moved on: {seconds['groups moved']:.1f} s after the offset-syncs were there")
    return {"seconds": seconds, "peak": peak}


def steady(clusters: ScaleClusters) -> dict[str, Any]:
    """What a job needs that finds everything in step.

    Seconds until every kind was compared, of full comparisons of one flow and of all side by side, and of changes, by
    their mean gap. The price of an idle minute. Memory.
    """
    with _job(clusters, "steady", "groups compared") as (job, first, peak):
        found: dict[str, Any] = {"first": first, "latencies": changed(clusters, seed=1), "acls": _granted(clusters)}
        say(f"{IDLE:g} s without a change")
        found |= {"cpu": idle_cpu(job.pids, clusters), "resident": resident(job.pids), "full_later": _full(job)}
    return found | {"peak": peak}


def changed(clusters: ScaleClusters, seed: int) -> dict[str, list[float]]:
    """Seconds of each change, by their mean gap. A first change arrives before: the copier is at work."""
    load = Changes(clusters.source_bootstraps, clusters.target.bootstrap, clusters.topics, seed)
    first = load.run(1, 0.1, WITHIN)
    say(f"a first change took {first[0]:.1f} s")
    found = {}
    for gap, count in [CHANGES, SELDOM] if clusters.topics * len(SOURCES) >= SELDOM_FROM else [CHANGES]:
        say(f"{count} changes, {gap:g} s apart")
        found[f"{gap:g}"] = load.run(count, gap, WITHIN)
    return found


def _granted(clusters: ScaleClusters) -> list[float]:
    """Seconds of ACLs that are granted one after the other, of new principals, on the sources in turn."""
    target, chance, seconds = AdminClient({"bootstrap.servers": clusters.target.bootstrap}), random.Random(1), []
    for number in range(ACLS):
        source = clusters.clients[SOURCES[number % len(SOURCES)]]
        acl = read_acl(f"User:granted-{number}", topic_name(number))
        seconds.append(acl_seconds(source, target, acl, pause=chance.expovariate(1 / 2)))
    say(f"ACLs granted: {min(seconds):.2f} to {max(seconds):.2f} s")
    return seconds


@contextmanager
def _job(
    clusters: ScaleClusters, name: str, groups_are: str
) -> Iterator[tuple[LocalJob, dict[str, float], dict[str, int]]]:
    """Once all is in step: the job, seconds from its start until every kind was compared and until groups were, and its
    most memory, which goes on."""
    folder, groups = clusters.root / name, clusters.topics * len(FLOWS)
    say(f"{name}: the job starts, its log is {folder}/job.log")
    began = time.monotonic()
    with job_of(mirror_properties(clusters.bootstraps, FLOWS, **OWN), folder) as job, peak_memory(job.pids) as peak:
        job.wait_until_compared()
        seconds = {"compared": time.monotonic() - began}
        synced = {"verdict": "SYNCED"}
        wait_for(lambda: total(job, "lockstep_offset_verdicts", **synced) >= groups, WITHIN, f"all {groups_are}")
        seconds[groups_are] = time.monotonic() - began
        say(f"seconds until all was in step: {seconds}")
        yield job, seconds, peak


def idle_cpu(pids: Sequence[int], clusters: ScaleClusters) -> dict[str, float]:
    """CPU seconds of an idle minute: of the `job` with these processes, or of MM2 in its place, and of the clusters."""
    idle_costs((), SETTLED_AFTER)
    price = idle_costs([pids, *clusters.pids], IDLE)
    cpu = dict(zip(("job", "sources", "target"), (one.cpu_seconds for one in price), strict=True))
    say(f"CPU of an idle minute: {cpu}")
    return cpu


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
TOPICS_OF_A_PRODUCER: Final = 250
"""librdkafka asks for all its topics again at each new one."""


@dataclass(frozen=True)
class ScaleClusters:
    """`clients`: of the sources. `topics`: of each source, which has as many groups, and `ACLS_A_TOPIC` times as many
    ACLs."""

    sources: Mapping[str, LocalCluster]
    clients: Mapping[str, KafkaCluster]
    target: LocalCluster
    topics: int
    root: Path

    @property
    def bootstraps(self) -> dict[str, str]:
        return self.source_bootstraps | {TARGET: self.target.bootstrap}

    @property
    def source_bootstraps(self) -> dict[str, str]:
        return {alias: one.bootstrap for alias, one in self.sources.items()}

    @property
    def pids(self) -> tuple[list[int], list[int]]:
        return [pid for one in self.sources.values() for pid in one.pids], self.target.pids


@contextmanager
def scale_clusters(topics: int) -> Iterator[ScaleClusters]:
    """They run, with `topics` in all on the sources."""
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-scale-") as folder, ExitStack() as stack:
        root = Path(folder)
        sources = {alias: stack.enter_context(LocalCluster(alias, root / alias)) for alias in SOURCES}
        target = stack.enter_context(LocalCluster(TARGET, root / TARGET, heap="1g"))
        clients = {alias: opened(stack, one) for alias, one in sources.items()}
        clusters = ScaleClusters(sources, clients, target, topics // len(SOURCES), root)
        for alias in SOURCES:
            say(f"{clusters.topics:,} topics, as many groups and their ACLs on {alias}")
            source, made = clients[alias], bench_topics(clusters.topics)
            make_topics(source, made)
            source.create_log(SYNCS, 1, {"cleanup.policy": "compact"})
            one_record_each(sources[alias].bootstrap, [*made])
            grant_all(source, [read_acl(f"User:app-{n}", name) for name in made for n in range(ACLS_A_TOPIC)])
            groups = {f"{alias}-group-{number:05d}": name for number, name in enumerate(made)}
            commit_all(source, {group: {TopicPartition(name, 0): 1} for group, name in groups.items()})
        yield clusters


def one_record_each(bootstrap: str, topics: Sequence[str]) -> None:
    """One record in the only partition of each topic. Raises LockstepError when one is not written."""
    for some in chunks(topics, TOPICS_OF_A_PRODUCER):
        produce_all(bootstrap, (PlainRecord(name, None, b"one") for name in some))


def copy_as_mm2_would(clusters: ScaleClusters) -> None:
    """The sources' records in the topics of the target, which are there, and the offset-syncs of all partitions."""
    names = [topic_name(number) for number in range(clusters.topics)]
    one_record_each(clusters.target.bootstrap, [f"{alias}.{name}" for alias in clusters.sources for name in names])
    for bootstrap in clusters.source_bootstraps.values():
        syncs = (PlainRecord(SYNCS, *offset_sync(TopicPartition(name, 0), 0)) for name in names)
        produce_all(bootstrap, syncs)


if __name__ == "__main__":
    typer.run(main)
