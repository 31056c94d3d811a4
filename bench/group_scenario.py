"""How old a synced offset is, beside MM2's own sync; and what a pass over many groups costs the job."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from app.local.local_job import LocalJob
from app.local.waiting import wait_for
from bench.costs import cost, counted, peak_memory, samples, since
from bench.pair import HEARTBEATS, BenchPair, commit_all, intervals, opened, pair_of, remote, running
from bench.saved_figures import FIGURES, lines, p99_verdict, page_text, quantiles, save, say, verdict
from bench.timed_changes import Arrivals
from streaming.mm2.records import TopicPartition

RESULTS: Final = FIGURES / "benchmarks-groups.json"
GOAL, MANY_GOAL = 1.0, 10.0
"""Seconds: p99 with 1,000 groups, and until the last of 10,000 is there."""

LOCKSTEP, MM2 = WAYS = ("lockstep", "mm2")
"""Who commits on the target: never both."""

NAMES: Final = {LOCKSTEP: "Lockstep, default", MM2: "MM2's own sync, every second"}

PASS: Final = "{name}, all of {groups:,} groups commit at once: {seconds:.1f} s until the target has the last of their offsets (goal: ≤ {goal:g} s, {verdict}). The job sends {sent:,.0f} requests for it. It takes at most {python:.0f} MiB in Python and {jvm:.0f} MiB in the JVM. While nothing changes, the work between two micro-batches takes {batch_seconds:.2f} s and {batch_requests:.0f} requests."


def section(found: Mapping[str, Any]) -> str:
    """Of bench/figures/benchmarks.md, the part on the age of synced offsets and on a pass over many groups.

    `ages`: seconds, by way and the groups' place. `cpu`: the job's CPU seconds a minute meanwhile. `passes`: by way.
    """
    rows = [_row(way, seconds, found["cpu"].get(way)) for way, seconds in found["ages"].items() if seconds]
    passes = [_pass(NAMES[way], one) for way, one in found["passes"].items()]
    return page_text("benchmarks")["How old a synced offset is"].format(
        **{**found, "passes": "\n".join(passes)}, rows=lines(rows)
    )


def _row(way: str, seconds: list[float], cpu: float | None) -> list[str]:
    writer, _, place = way.partition(", ")
    goal = "-" if writer == MM2 else p99_verdict(seconds, GOAL)
    used = "-" if cpu is None else f"{cpu:.1f}"
    return [f"{NAMES[writer]}: {place}", str(len(seconds)), *quantiles(seconds), used, goal]


def _pass(name: str, found: Mapping[str, Any]) -> str:
    late = found["seconds"] - MANY_GOAL
    peak = {process: found["peak"][process] / 2**20 for process in ("python", "jvm")}
    own = {"name": name, "goal": MANY_GOAL, "verdict": verdict(late, f"{late:.1f} s")}
    return PASS.format(**found, **own, **peak, sent=sum(found["requests"].values()))


MEAN_GAP: Final = 1.0
"""Seconds between two commits on average; the gaps are distributed exponentially."""

AT_END, BEHIND, BUSY = "at the end", "behind it", "at the end, while others commit"


TOPICS, GROUPS, COMMITS, MANY = 50, 1000, 100, 10_000
"""`COMMITS` are timed in each way, among `GROUPS`; `MANY`: groups of the pass."""

IDLE: Final = 60.0
"""Seconds without a change behind the pass."""

OTHERS: Final = 200.0
"""Commits a second of groups that are not timed, in the rows that say so."""

LOOK_EVERY, AT_ONCE = 0.2, 1000
"""Seconds between two looks at many groups, and groups in one look."""

EVERY_SECOND: Final = intervals(1, "refresh.topics", "refresh.groups", "emit.checkpoints", "sync.group.offsets")
MM2_DEFAULTS: Final = {**intervals(60, "emit.checkpoints"), **intervals(600, "refresh.groups")}
"""Where MM2 is not timed: every second it would ask for all groups one by one, on the same two cores."""


@contextmanager
def _started(pair: BenchPair, way: str, groups: str) -> Iterator[LocalJob | None]:
    """MM2, everything copied, and the job where it is the one to commit."""
    more = {"sync.group.offsets.enabled": "true"} if way == MM2 else MM2_DEFAULTS
    keys = {**EVERY_SECOND, **HEARTBEATS, "topics": "age-.*", "groups": f"{groups}-.*", **more}
    say(f"{way}: MM2 starts, and copies all records")
    with pair.mirror(**keys):
        wait_for(lambda: pair.copied(TOPIC_NAMES, PARTITIONS, RECORDS), WITHIN, "MM2 to copy all records")
        if way == MM2:
            yield None
        else:
            say(f"{way}: the job starts, and compares everything")
            with pair.committing_job(**keys) as job:
                yield job


def _groups(prefix: str, count: int) -> dict[str, int]:
    return {f"{prefix}-{number:05d}": number for number in range(count)}


def _ages(pair: BenchPair, way: str, job: LocalJob | None, found: dict[str, Any]) -> None:
    """MM2 knows no offsets from before it was started, but at the end of a log."""
    groups, chance = _groups(f"age-{way}", GROUPS), random.Random(GROUPS)
    commit(pair, groups, BEGINNING)
    places = (AT_END, BEHIND, BUSY) if job else (AT_END, BUSY)
    # The others are compared before the last one.
    last = dict([list(groups.items())[-1]])
    _sync_one(pair, way, last)
    # Where MM2 copies many partitions at once it leaves offset-syncs out, and but for the end there is no answer then.
    able = synced(pair, groups, past=-1) if job else groups.keys()
    chosen = chance.sample(sorted(able - last.keys()), COMMITS * len(places))
    for number, place in enumerate(places):
        these = {name: groups[name] for name in chosen[number * COMMITS : (number + 1) * COMMITS]}
        others = {name: number for name, number in groups.items() if name not in chosen} if place == BUSY else {}
        before, start = cost(job.pids).cpu_seconds if job else 0.0, time.monotonic()
        say(f"{way}, {place}: {COMMITS} commits, one after the other")
        arrivals = Arrivals(partial(synced, pair))
        found["ages"][f"{way}, {place}"] = arrivals.seconds
        with running(arrivals.look, partial(_others, pair, others)):
            _commit_in_turn(pair, these, place, chance, arrivals)
        if job:
            used = cost(job.pids).cpu_seconds - before
            found["cpu"][f"{way}, {place}"] = 60 * used / (time.monotonic() - start)


def _commit_in_turn(
    pair: BenchPair, groups: Mapping[str, int], place: str, chance: random.Random, arrivals: Arrivals[int]
) -> None:
    """Commits one group after the other on the source. Raises WaitedTooLong when one does not arrive."""
    for name, number in groups.items():
        # Commits come at random moments: a matter of time, not of a condition.
        time.sleep(chance.expovariate(1 / MEAN_GAP))
        commit(pair, {name: number}, chance.randrange(RECORDS * 3 // 4, RECORDS) if place == BEHIND else RECORDS)
        arrivals.expect(name, number)
    arrivals.wait(WITHIN)


def _others(pair: BenchPair, groups: Mapping[str, int], stop: threading.Event) -> None:
    """These groups commit one after the other, `OTHERS` a second, never past half, until `stop`."""
    offset, names = BEGINNING, list(groups.items())
    a_turn = max(1, round(OTHERS * TURN))
    with ExitStack() as stack:
        client = opened(stack, pair.a)
        while names and not stop.wait(TURN):
            turn, names = names[:a_turn], names[a_turn:] + names[:a_turn]
            offset = BEGINNING + (offset + 1) % (RECORDS // 4)
            client.groups.commit({name: dict.fromkeys(partitions(number), offset) for name, number in turn})


def _many(pair: BenchPair, many: int) -> dict[str, Any]:
    """What the job needs for it, and for a micro-batch while nothing changes."""
    groups = _groups(f"age-many-{LOCKSTEP}", many)
    commit(pair, groups, BEGINNING)
    with _started(pair, LOCKSTEP, f"age-many-{LOCKSTEP}") as job:
        assert job is not None
        (first, *others) = groups.items()
        _sync_one(pair, LOCKSTEP, dict([first]))
        with peak_memory(job.pids) as peak:
            before = counted(samples(job))
            seconds = _all_at_once(pair, dict(others))
            after = counted(samples(job))
            time.sleep(IDLE)
            later = counted(samples(job))
        job.check()
    batches = later["batches"] - after["batches"]
    return {
        "groups": many,
        "seconds": seconds,
        "requests": since(after, before),
        "peak": peak,
        "batch_seconds": (later["batch seconds"] - after["batch seconds"]) / batches,
        "batch_requests": sum(since(later, after).values()) / batches,
    }


def _sync_one(pair: BenchPair, way: str, one: Mapping[str, int]) -> None:
    """Returns when the program that commits is at work. The group will not be committed again."""
    start = time.monotonic()
    commit(pair, one, RECORDS)
    wait_for(lambda: synced(pair, one), WITHIN, "a first commit to be synced")
    say(f"{way}: a first commit was synced after {time.monotonic() - start:.1f} s")


def _all_at_once(pair: BenchPair, groups: Mapping[str, int]) -> float:
    """Seconds from the last commit's answer until the target has all."""
    start, left = time.monotonic(), dict(groups)
    commit(pair, groups, RECORDS)
    committed = time.monotonic()
    say(f"{len(groups):,} groups committed within {committed - start:.1f} s")

    def done() -> bool:
        # Few at a time: what the bench asks for costs the target as much as what the job asks for.
        time.sleep(LOOK_EVERY)
        for name in synced(pair, dict(islice(left.items(), AT_ONCE))):
            del left[name]
        return not left

    wait_for(done, 2 * WITHIN, f"the offsets of {len(groups)} groups to be synced")
    seconds = time.monotonic() - committed
    say(f"the last was there {seconds:.1f} s later")
    return seconds


def main(
    ways: Annotated[str, typer.Option(help="Who commits, comma separated.")] = ",".join(WAYS),
    groups: Annotated[int, typer.Option(help="Groups of that pass.")] = MANY,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
) -> None:
    """Measures, saves after each way, and prints what came out."""
    chosen = [way for way in ways.split(",") if way]
    if unknown := {*chosen} - {*WAYS}:
        raise typer.BadParameter(f"{', '.join(unknown)}: of {', '.join(WAYS)}", param_hint="--ways")
    # What was started is stopped then as well, and what was measured is kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: dict[str, Any] = {"groups": GROUPS, "topics": TOPICS, "others": OTHERS, "ages": {}, "cpu": {}, "passes": {}}
    with pair_of("groups") as pair:
        pair.fill(TOPIC_NAMES, PARTITIONS, RECORDS)
        for way in chosen:
            try:
                with _started(pair, way, f"age-{way}") as job:
                    _ages(pair, way, job, found)
            finally:
                save(out, found)
        found["passes"][LOCKSTEP] = _many(pair, groups)
        save(out, found)
    sys.stdout.write(section(found))


# Two clusters, topics full of records on one of them, and groups that read two partitions each.

TOPIC_NAMES: Final = [f"age-{number:03d}" for number in range(TOPICS)]
PARTITIONS: Final = 4
RECORDS: Final = 400
"""In each partition. A group begins at `BEGINNING` and is synced anew when its offset on the target is behind `PAST`:
half."""

BEGINNING, PAST = 10, RECORDS // 2
TURN: Final = 0.1
"""Seconds between two rounds of commits of the groups that are not timed."""

WITHIN: Final = 300.0


def partitions(number: int) -> list[TopicPartition]:
    """Those that a group reads: one on each of two topics."""
    topics = (TOPIC_NAMES[number % TOPICS], TOPIC_NAMES[(number * 7 + 1) % TOPICS])
    return [TopicPartition(topic, number % PARTITIONS) for topic in dict.fromkeys(topics)]


def commit(pair: BenchPair, groups: Mapping[str, int], offset: int) -> None:
    """All these groups (name to number) at this offset; see `commit_all`."""
    commit_all(pair.source, {name: dict.fromkeys(partitions(number), offset) for name, number in groups.items()})


def synced(pair: BenchPair, groups: Mapping[str, int], past: int = PAST) -> set[str]:
    """The groups whose offsets on the target are all there, and greater than `past`."""
    seen = pair.target.groups.committed(groups).items
    return {
        name
        for name, number in groups.items()
        if all(seen.get(name, {}).get(remote(at), -1) > past for at in partitions(number))
    }


if __name__ == "__main__":
    typer.run(main)
