"""Whether a running job and commands outlive brokers that go down without notice: `python -m bench.bounces --help`.

Two local clusters, the job between them with every kind on, and `plan`, `apply`, `status` and `offsets` one after
another beside it. The brokers of each cluster are killed (SIGKILL) and started again at random moments; of several,
one alone or all at once. Meanwhile the source changes. Measured are how long it takes after the last until the target
has the last change of every kind, and what every command made of it. Exit 1 where that was longer than LIMIT, where the
job ended, or where a command did what it must not.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.waiting import WaitedTooLong, wait_for
from bench.every_kind import GROUP, HERE, NAME, THERE, EveryKind, every_kind, tried
from bench.pair import SYNCS, BenchPair, lockstep, make_topics, offset_sync, pair_of, running
from bench.saved_figures import FIGURES, lines, page_text, save, say
from sinks.kafka.ports.cluster import TopicSpec
from streaming.errors import LockstepError

RESULTS: Final = FIGURES / "benchmarks-bounces.json"
RECORDS: Final = 8000
LIMIT: Final = 30.0
"""Seconds from when the last cluster serves again until the target has everything."""

STARTS_WITHIN: Final = 300.0
"""Seconds until the source takes a first change; the machine may be busy."""

GIVEN_UP_AFTER: Final = 600.0
"""Seconds; how late it is, is worth knowing too."""


@dataclass
class BouncedPair:
    """Both clusters and the job."""

    clusters: BenchPair
    kinds: EveryKind
    job: LocalJob

    def change(self) -> None:
        """Changes something of every kind on the source, as if MM2 had copied the topic. Raises LockstepError."""
        at = self.kinds.step + 1
        self.kinds.change(at)
        self.clusters.source.append_log(SYNCS, [offset_sync(HERE, at)])
        self.kinds.offset = at

    def says(self) -> str:
        """What the job says of itself. Raises LockstepError where it has ended."""
        self.job.check()
        flows = self.job.status().get("flows", [])
        return "; ".join(f"{flow['state']} {flow['reason'] or ''}".strip() for flow in flows) or "no answer"


@contextmanager
def bounced_pair(brokers: int) -> Iterator[BouncedPair]:
    """Clusters with a topic whose records are on both, as if MM2 had copied them, and the job, once all is equal."""
    with pair_of("bounces", brokers, heap="384m") as clusters:
        records = [(b"%d" % number, b"v") for number in range(RECORDS)]
        for cluster, topic in ((clusters.source, NAME), (clusters.target, THERE.topic)):
            make_topics(cluster, {topic: TopicSpec(1, brokers)})
            cluster.append_log(topic, records)
        clusters.source.create_log(SYNCS, brokers, {"cleanup.policy": "compact"})
        kinds = every_kind(clusters, brokers)
        keys = {**kinds.keys(), "replication.factor": str(brokers)}
        with clusters.job(**keys) as job:
            made = BouncedPair(clusters, kinds, job)
            wait_for(partial(tried, made.change), STARTS_WITHIN, "the source to take a first change")
            job.wait_until_compared()
            wait_for(lambda: not made.kinds.missing(), GIVEN_UP_AFTER, "the target to be equal before the first bounce")
            yield made


def bounce(pair: BouncedPair, cluster: LocalCluster, chance: random.Random) -> None:
    """Kills one or all of its brokers for a while, while the source changes if it can."""
    # Not a wait for something: when and for how long brokers are away is what is varied.
    time.sleep(chance.uniform(0.0, 5.0))
    down, nodes = chance.uniform(1.0, 20.0), len(cluster.pids)
    what, kill, start = "all brokers", cluster.kill, cluster.start
    if nodes > 1 and chance.random() < 2 / 3:
        one = chance.randint(1, nodes)
        what, kill, start = f"broker {one}", partial(cluster.kill_node, one), partial(cluster.start_node, one)
    kill()
    with suppress(LockstepError):
        pair.change()
    time.sleep(down)
    start()
    with suppress(LockstepError):
        pair.change()
    say(f"{what} of {cluster.alias} away for {down:.0f} s: {pair.says()}")


def measure(brokers: int, bounces: int, seed: int) -> dict[str, Any]:
    """What the page shows of a run."""
    chance = random.Random(seed)
    with bounced_pair(brokers) as made:
        with commands_beside(made.job.config, lambda: made.kinds.step) as ran:
            for _ in range(bounces):
                for cluster in chance.sample([made.clusters.a, made.clusters.b], 2):
                    bounce(made, cluster, chance)
            since = time.monotonic()
            wait_for(partial(tried, made.change), GIVEN_UP_AFTER, "the source to take a last change")
            with suppress(WaitedTooLong):
                wait_for(lambda: not made.kinds.missing(), GIVEN_UP_AFTER, "the target to be equal")
            seconds, missing = time.monotonic() - since, made.kinds.missing()
        say(f"{'not ' if missing else ''}equal after {seconds:.1f} s: {missing or made.says()}")
        run = {"brokers": brokers, "bounces": bounces, "seed": seed, "changes": made.kinds.step, "seconds": seconds}
        return {**run, "missing": missing, "commands": summed_up(ran)}


def main(
    nodes: Annotated[str, typer.Option(help="Brokers of each cluster, comma separated: a run for each.")] = "1,3",
    bounces: Annotated[int, typer.Option(help="Of each cluster.")] = 10,
    seed: Annotated[int, typer.Option(help="Of what is random.")] = 1,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
) -> None:
    """Measures, saves after each run, and prints what came out."""
    runs = []
    for brokers in map(int, nodes.split(",")):
        runs.append(measure(brokers, bounces, seed))
        save(out, {"limit": LIMIT, "runs": runs})
    sys.stdout.write(section({"limit": LIMIT, "runs": runs}))
    held = all(not run["missing"] and run["seconds"] <= LIMIT and not run["commands"]["wrong"] for run in runs)
    raise typer.Exit(0 if held else 1)


# Commands that run one after another while brokers come and go, and what is wrong with each of their answers.

ENDS_WITHIN: Final = 180.0
"""Seconds: a dozen requests that may each wait for `admin.timeout.ms`."""

EXPECTED: Final = frozenset({0, 1, 3, 4})
"""Exit codes: done, failed with a reason, changes are pending, no job answers."""


@dataclass(frozen=True)
class Ran:
    """One command. `wrong`: what it must not do; empty where all is well. `said`: its last line on stderr."""

    command: str
    seconds: float
    code: int | None
    wrong: str = ""
    said: str = ""


def judge(command: str, code: int | None, out: str, err: str, last: int) -> str:
    """What is wrong with an answer, "" for nothing. `last`: no group was ever further on than this."""
    if code is None:
        return f"did not end within {ENDS_WITHIN:g} s"
    if code < 0:
        return f"ended by signal {-code}"
    if code not in EXPECTED:
        return f"exit code {code}: {err.strip()[-200:]}"
    if "Traceback" in err:
        return f"a traceback: {err.strip().splitlines()[-1]}"
    if code == 1:
        return "" if err.strip() or out.strip() else "failed without a word"
    document: dict[str, Any] = orjson.loads(out)
    return "; ".join(found for flow in document["flows"] for found in COMMANDS[command][1](flow, last))


def _deletions(flow: Mapping[str, Any], last: int) -> list[str]:
    """The source never loses anything, and the remote topic is always there."""
    found = [f"deletes {change['kind']} {change['key']}" for change in flow["changes"] if change["op"] == "delete"]
    made = [change["key"] for change in flow["changes"] if change["kind"] == "topic" and change["op"] == "create"]
    return found + [f"creates {key}, which is there" for key in made if key["topic"] == THERE.topic]


def _states(flow: Mapping[str, Any], last: int) -> list[str]:
    """No MM2 runs here."""
    return ["LIVE without a heartbeat"] if flow["state"] == "LIVE" else []


def _offsets(flow: Mapping[str, Any], last: int) -> list[str]:
    rows = [row for row in flow["offsets"] if row["group"] == GROUP]
    beyond = [row for row in rows if (row["downstream_offset"] or 0) > last]
    return [*([] if rows else [f"does not know {GROUP}"]), *(f"beyond what was read: {row}" for row in beyond)]


COMMANDS: Mapping[str, tuple[Sequence[str], Callable[[Mapping[str, Any], int], list[str]]]] = {
    "plan": (["plan"], _deletions),
    "apply": (["apply", "--yes"], _deletions),
    "status": (["status"], _states),
    "offsets": (["offsets"], _offsets),
}
"""By name: the command, and what it must not say of a flow."""


@contextmanager
def commands_beside(config: Path, last: Callable[[], int]) -> Iterator[list[Ran]]:
    """Runs them in turn meanwhile. `last`: as of `judge`, asked after each command."""
    ran: list[Ran] = []

    def run(stop: threading.Event) -> None:
        for name in itertools.cycle(COMMANDS):
            if stop.is_set():
                return
            ran.append(_one(name, config, last))

    with running(run):
        yield ran


def _one(name: str, config: Path, last: Callable[[], int]) -> Ran:
    begun = time.monotonic()
    try:
        done = lockstep(*COMMANDS[name][0], "-o", "json", "--config", str(config), within=ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        return Ran(name, ENDS_WITHIN, None, judge(name, None, "", "", last()))
    seconds = time.monotonic() - begun
    wrong = judge(name, done.returncode, done.stdout, done.stderr, last())
    return Ran(name, seconds, done.returncode, wrong, "".join(done.stderr.strip().splitlines()[-1:]))


# Of bench/figures/benchmarks.md, the part on brokers that go down.


def summed_up(ran: Sequence[Ran]) -> dict[str, Any]:
    """By command how many ran, how many of them failed with a reason, and the slowest; and all that was wrong."""
    counts = {}
    for name in COMMANDS:
        rows = [one for one in ran if one.command == name]
        slowest = max((one.seconds for one in rows), default=0.0)
        counts[name] = {"ran": len(rows), "failed": sum(one.code == 1 for one in rows), "slowest": slowest}
    reasons = sorted({f"{one.command}: {one.said}" for one in ran if one.code == 1})
    return {"by_name": counts, "reasons": reasons, "wrong": [f"{one.command}: {one.wrong}" for one in ran if one.wrong]}


def section(found: Mapping[str, Any]) -> str:
    text = page_text("benchmarks")["Brokers that go down without notice"]
    return text.format(rows=lines(map(_bounced, found["runs"])), **found)


def _bounced(run: Mapping[str, Any]) -> list[str]:
    commands = run["commands"]["by_name"].values()
    late = f"not within {run['seconds']:.0f} s: {', '.join(run['missing'])}"
    return [
        *(str(run[name]) for name in ("brokers", "bounces", "changes")),
        late if run["missing"] else f"{run['seconds']:.1f} s",
        f"{sum(one['ran'] for one in commands)} ({sum(one['failed'] for one in commands)})",
        str(len(run["commands"]["wrong"])),
        f"{max(one['slowest'] for one in commands):.0f} s",
    ]


if __name__ == "__main__":
    typer.run(main)
