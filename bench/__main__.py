"""`make bench`: Lockstep beside MM2 on the same clusters; writes bench/figures/benchmarks.md.

The ways of replicating configs are each started, changed for their latency, then left idle for their price. And how soon
an ACL that is granted or revoked on the source is so on the target, with many ACLs there.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import typer
from confluent_kafka.admin import AdminClient

from app.local.jars import PROJECT
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror
from bench import bounces, chaos, group_scenario
from bench.costs import counted, first_comparison, idle_costs, machine, samples, since
from bench.pair import HEARTBEATS, BenchPair, intervals
from bench.saved_figures import FIGURES, lines, p99_verdict, page_text, quantile, quantiles, read, save, say, verdict
from bench.timed_changes import FAST, WATCHED, Changes, acl_seconds, bench_of, grant_all, read_acl, topic_name
from streaming.errors import LockstepError

RESULTS: Final = FIGURES / "benchmarks.json"


def main(
    topics: Annotated[str, typer.Option(help="Numbers of topics, comma separated.")] = "2000,5000,500",
    acls: Annotated[bool, typer.Option(help="Whether ACLs are measured as well.")] = True,
    render: Annotated[
        bool, typer.Option("--render", help="Write the page from bench/figures/benchmarks.json.")
    ] = False,
) -> None:
    """Measures, saves after each way, and writes the page."""
    saved = read(RESULTS)
    results, facts = saved.get("results", []), saved.get("facts", {})
    if not render:
        # Otherwise ways that are no longer measured would stand beside ways of another run.
        results = [row for row in results if row["name"] in {scenario.name for scenario in SCENARIOS}]
        run = subprocess.run([sys.executable, "-m", "bench.decoding"], cwd=PROJECT, check=True, stdout=subprocess.PIPE)
        facts |= machine() | {"decoding": json.loads(run.stdout)}
        if acls:
            say("ACLs")
            facts["acls"] = measure_acls()
            save(RESULTS, {"facts": facts, "results": results})
        for count in (int(text) for text in topics.split(",") if text):
            for result in _measure(count):
                others = [row for row in results if (row["name"], row["topics"]) != (result["name"], result["topics"])]
                results = [*others, result]
                save(RESULTS, {"facts": facts, "results": results})
    (FIGURES / "benchmarks.md").write_text(page(results, facts))


def _measure(topics: int) -> Iterator[Result]:
    """One result after the other, so that what was measured is kept when a later way fails."""
    with bench_of(topics) as pair:
        for seed, scenario in enumerate(SCENARIOS):
            say(f"{topics} topics: {scenario.name}")
            try:
                yield measure(pair, scenario, topics, seed)
            except (TimeoutError, LockstepError) as error:
                say(f"left out: {error}")


# A way of replicating configs.

IDLE = 45.0
"""Seconds without a change over which the price is taken."""

MEAN_GAP = 1.0
"""Seconds between two changes on average; the gaps are distributed exponentially."""

SETTLED_AFTER = 60.0
"""Seconds for which a way without changes is left alone before its price is taken."""

CHANGES = 50
"""That are timed in each way."""

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
        return self.mirror is None


DEFAULT = "Lockstep, default"

SCENARIOS = (
    Scenario(DEFAULT),
    Scenario(
        "Lockstep, a trigger every 30 seconds",
        own={"lockstep.trigger.interval": "30 seconds", "lockstep.heartbeat.timeout": "90 seconds"},
    ),
    Scenario("MM2 alone, at its defaults", mirror=600, timed=False),
    Scenario(FAST, mirror=1),
)


Result = Mapping[str, Any]
"""One way of replicating configs at one number of topics. Seconds; CPU in seconds an idle minute; bytes.

`starting`: of the first changes after a start, which are not among the `latencies`."""


def measure(pair: BenchPair, scenario: Scenario, topics: int, seed: int) -> Result:
    """Starts it, waits for a first change to arrive, measures, stops it."""
    with started(pair, scenario) as runs:
        job = runs if isinstance(runs, LocalJob) else None
        first = first_comparison(job) if job else None
        starting, latencies = _changed(pair, scenario, topics, seed)
        before = counted(samples(job)) if job else Counter()
        price, source, target = idle_costs((runs.pids, pair.a.pids, pair.b.pids), IDLE)
        asked = since(counted(samples(job)), before) if job else {}
    requests = {"all": sum(asked.values()), "write": sum(asked.get(api, 0) for api in WRITES)} if job else {}
    return {
        "name": scenario.name,
        "topics": topics,
        "latencies": latencies,
        "cpu_job": price.cpu_seconds,
        "cpu_source": source.cpu_seconds,
        "cpu_target": target.cpu_seconds,
        "resident": price.memory.total(),
        "requests": {name: count * 60 / IDLE for name, count in requests.items()},
        "first_comparison": first,
        "starting": starting,
    }


@contextmanager
def started(pair: BenchPair, scenario: Scenario) -> Iterator[LocalJob | LocalMirror]:
    """MM2, or the job with an MM2 beside it: who replicates configs."""
    keys = {} if scenario.mirror is None else intervals(scenario.mirror, *WATCHED)
    with ExitStack() as stack:
        mirror = stack.enter_context(pair.mirror(**keys, **HEARTBEATS))
        yield stack.enter_context(pair.job(**scenario.own)) if scenario.is_lockstep else mirror


def _changed(pair: BenchPair, scenario: Scenario, topics: int, seed: int) -> tuple[list[float], list[float]]:
    """Right after the start, and later. They come before the price, so that it is that of a JVM that has settled."""
    if not scenario.timed:
        idle_costs((), SETTLED_AFTER)
        return [], []
    load = Changes({"a": pair.a.bootstrap}, pair.b.bootstrap, topics, seed)
    slowest = 3.0 * (scenario.mirror or 1) + START_WITHIN
    load.run(1, 0.1, slowest)
    starting = load.run(STARTING, MEAN_GAP, slowest)
    idle_costs((), REST)
    latencies = load.run(CHANGES, MEAN_GAP, slowest)
    idle_costs((), REST)
    return starting, latencies


# ACLs.

ACL_TOPICS = 500
ACLS = 10_000

ACL_WAYS = (
    Scenario("Lockstep, default", own={"sync.full.acl.enabled": "true"}),
    Scenario("MM2, intervals of 5 s", mirror=5),
)


def measure_acls() -> dict[str, dict[str, list[float]]]:
    """By way, by `granted` and `revoked`: seconds from the answer on the source until the target had it."""
    measured = {}
    with bench_of(ACL_TOPICS) as pair:
        grant_all(pair.source, [read_acl(f"User:app-{n}", topic_name(n % ACL_TOPICS)) for n in range(ACLS)])
        for way in ACL_WAYS:
            with started(pair, way):
                measured[way.name] = _acl_changes(pair, way)
    return measured


def _acl_changes(pair: BenchPair, way: Scenario) -> dict[str, list[float]]:
    target, chance = AdminClient({"bootstrap.servers": pair.b.bootstrap}), random.Random(1)
    name = "lockstep" if way.is_lockstep else "mm2"
    acl_seconds(pair.source, target, read_acl(f"User:{name}-first", topic_name(0)), pause=0.0)
    seconds: dict[str, list[float]] = {"granted": [], "revoked": []}
    for number in range(CHANGES):
        one = read_acl(f"User:{name}-{number}", topic_name(chance.randrange(ACL_TOPICS)))
        seconds["granted"].append(acl_seconds(pair.source, target, one, chance.expovariate(1.0)))
        # MM2 revokes nothing, so there is nothing to wait for.
        if way.is_lockstep:
            seconds["revoked"].append(acl_seconds(pair.source, target, one, chance.expovariate(1.0), revoke=True))
    return seconds


# bench/figures/benchmarks.md, from what was measured.


def _cpu(row: Result) -> float:
    return float(row["cpu_job"] + row["cpu_source"] + row["cpu_target"])


GOALS = (
    ("p50", 2000, 0.5, lambda row: quantile(row["latencies"], 0.5)),
    ("p99", 2000, 0.6, lambda row: quantile(row["latencies"], 0.99)),
    ("CPU of an idle minute, together", 2000, 0.3, _cpu),
    ("CPU of an idle minute, the job alone", 2000, 0.4, lambda row: row["cpu_job"]),
    ("resident memory", 2000, 1.5, lambda row: row["resident"] / 2**20),
    ("CPU of an idle minute, together", 500, 0.7, _cpu),
)
"""What was set out to be reached by the default: what, topics, ratio to MM2 at 1 s, and how to read it of a result."""


def page(results: Sequence[Result], facts: Mapping[str, Any]) -> str:
    text, slower = page_text("benchmarks"), 1_000_000 - facts["decoding"]["records_per_second"]
    most = max((len(result["latencies"]) for result in results), default=0)
    parts = [text[""].format(changes=most, **facts)]
    for count in sorted({result["topics"] for result in results}):
        rows = lines(_row(result) for result in results if result["topics"] == count)
        parts.append(text["{topics:,} topics"].format(topics=count, rows=rows))
    parts.append(text["Goals"].format(rows=lines(_goals(results))))
    parts.append(text["Decoding"].format(decoded=verdict(slower, f"{slower:,.0f}"), **facts))
    if acls := facts.get("acls"):
        changes = max(len(times["granted"]) for times in acls.values())
        parts.append(text["ACLs"].format(granted=ACLS, topics=ACL_TOPICS, changes=changes, rows=lines(_acls(acls))))
    # Each of these has a bench and a file of its own.
    parts += [bench.section(found) for bench in (group_scenario, bounces, chaos) if (found := read(bench.RESULTS))]
    notes = ("What is missed, and why", "What a command costs before it does anything")
    return "\n".join([*parts, *(text[note] for note in notes)])


def _row(result: Result) -> list[str]:
    costs = (result["cpu_job"], result["cpu_source"], result["cpu_target"], _cpu(result))
    return [
        result["name"],
        *quantiles(result["latencies"]),
        f"{max(result['starting']):.2f}" if result["starting"] else "-",
        *(f"{cost:.1f}" for cost in costs),
        *(f"{result['requests'][name]:.0f}" if result["requests"] else "not counted" for name in ("all", "write")),
        f"{result['resident'] / 2**20:.0f}",
        "-" if result["first_comparison"] is None else f"{result['first_comparison']:.1f} s",
    ]


def _goals(results: Sequence[Result]) -> Iterator[Sequence[str]]:
    found = {(row["name"], row["topics"]): row for row in results}
    for what, topics, goal, value in GOALS:
        ours, theirs = found.get((DEFAULT, topics)), found.get((FAST, topics))
        if ours is not None and theirs is not None:
            ratio = value(ours) / value(theirs)
            figures = f"{ratio:.2f} ({value(ours):.2f} against {value(theirs):.2f})"
            text = verdict(ratio - goal, f"{ratio - goal:.2f}")
            yield what, f"{topics:,}", f"≤ {goal} of MM2's at 1 s", figures, text
    if writes := [row["requests"]["write"] for row in results if row["requests"]]:
        reached = "reached" if max(writes) == 0 else "missed"
        yield "write requests of an idle minute", "all", "0", f"{max(writes):.0f}", reached


ACL_GOAL = 3.0


def _acls(seconds: Mapping[str, Mapping[str, list[float]]]) -> Iterator[list[str]]:
    for name, by_change in seconds.items():
        for what, times in by_change.items():
            if times:
                goal = p99_verdict(times, ACL_GOAL) if name.startswith("Lockstep") else "-"
                yield [f"{name}: {what}", str(len(times)), *quantiles(times), goal]


if __name__ == "__main__":
    typer.run(main)
