"""Whether a running job and commands outlive brokers that go down without notice: `python -m bench.bounces --help`.

Two local clusters, the job between them with every kind on, and `plan`, `apply`, `status` and `offsets` one after
another beside it. The brokers of each cluster are killed (SIGKILL) and started again at random moments; of several,
one alone or all at once. Meanwhile the source changes. Measured are how long it takes after the last until the target
has the last change of every kind, and what every command made of it. Exit 1 where that was longer than LIMIT, where the
job ended, or where a command did what it must not.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.waiting import WaitedTooLong, wait_for
from bench.command_loop import COMMANDS, CommandLoop, Ran
from bench.every_kind import HERE, NAME, THERE, EveryKind, every_kind, kind_keys, tried
from bench.pair import SYNCS, BenchPair, make_topics, pair_of
from bench.saved_figures import FIGURES, save, say, table
from sinks.kafka.ports.cluster import TopicSpec
from sinks.model.changes import Kind
from streaming.errors import LockstepError
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync

RESULTS: Final = FIGURES / "benchmarks-bounces.json"
RECORDS: Final = 8000
LIMIT: Final = 30.0
"""Seconds from when the last cluster serves again until the target has everything."""

STARTS_WITHIN: Final = 300.0
"""Seconds that a cluster may take to serve; the machine may be busy."""

GIVEN_UP_AFTER: Final = 600.0
"""Seconds; how late it is, is worth knowing too."""


@dataclass
class BouncedPair:
    """Both clusters and the job. `bounced`: how often a cluster was."""

    clusters: BenchPair
    kinds: EveryKind
    job: LocalJob
    bounced: int = 0
    missing: dict[Kind, str] = field(default_factory=dict)

    def change(self) -> None:
        """Changes something of every kind on the source, as if MM2 had copied the topic. Raises LockstepError."""
        at = self.kinds.step + 1
        self.kinds.change(at)
        self.clusters.source.append_log(SYNCS, [encode_record(OffsetSync(HERE, at, at))])
        self.kinds.offset = at

    def equal(self) -> bool:
        """Whether the target has the last change of every kind; if not, `missing` names the kinds that lack it."""
        try:
            self.missing = self.kinds.missing()
        except LockstepError as error:
            self.missing = dict.fromkeys(Kind, str(error))
        return not self.missing

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
        keys = {**kind_keys(clusters.root), "replication.factor": str(brokers)}
        with clusters.job(**keys) as job:
            made = BouncedPair(clusters, every_kind(clusters, brokers), job)
            wait_for(partial(tried, made.change), STARTS_WITHIN, "the source to take a first change")
            job.wait_until_compared()
            wait_for(made.equal, GIVEN_UP_AFTER, "the target to be equal before the first bounce")
            yield made


def bounce(pair: BouncedPair, cluster: LocalCluster, chance: random.Random) -> None:
    """Kills one or all of its brokers for a while, while the source changes if it can."""
    _pass(chance.uniform(0.0, 5.0))
    down, nodes = chance.uniform(1.0, 20.0), len(cluster.pids)
    one = chance.randint(1, nodes) if nodes > 1 and chance.random() < 2 / 3 else None
    if one is None:
        cluster.kill()
    else:
        cluster.kill_node(one)
    with suppress(LockstepError):
        pair.change()
    _pass(down)
    if one is None:
        cluster.start(wait=False)
        cluster.wait_until_ready(STARTS_WITHIN)
    else:
        cluster.start_node(one)
    with suppress(LockstepError):
        pair.change()
    pair.bounced += 1
    what = "all brokers" if one is None else f"broker {one}"
    say(f"{pair.bounced}: {what} of {cluster.alias} away for {down:.0f} s: {pair.says()}")


def measure(brokers: int, bounces: int, seed: int) -> dict[str, Any]:
    """What the page shows of a run."""
    chance = random.Random(seed)
    with bounced_pair(brokers) as made:
        with CommandLoop(made.job.config, lambda: made.kinds.step) as commands:
            for _ in range(bounces):
                for cluster in chance.sample([made.clusters.a, made.clusters.b], 2):
                    bounce(made, cluster, chance)
            since = time.monotonic()
            wait_for(partial(tried, made.change), GIVEN_UP_AFTER, "the source to take a last change")
            with suppress(WaitedTooLong):
                wait_for(made.equal, GIVEN_UP_AFTER, "the target to be equal")
            seconds = time.monotonic() - since
        say(f"{'not ' if made.missing else ''}equal after {seconds:.1f} s: {made.missing or made.says()}")
        run = {"brokers": brokers, "bounces": bounces, "seed": seed, "changes": made.kinds.step, "seconds": seconds}
        missing = {kind.value: why for kind, why in made.missing.items()}
        return {**run, "missing": missing, "commands": summed_up(commands.ran)}


def _pass(seconds: float) -> None:
    # Not a wait for something: when and for how long brokers are away is what is varied.
    time.sleep(seconds)


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


# Of bench/figures/benchmarks.md, the part on brokers that go down.


INTRO: Final = """## Brokers that go down without notice
`python -m bench.bounces`, every kind is on. Brokers are killed (SIGKILL) and started again at random moments, one alone or all at once, away for up to 20 s. The source changes meanwhile. `plan`, `apply --yes`, `status` and `offsets` run beside the job without a pause. Seconds from when the last cluster serves again until the target has the last change of every kind; the goal is {limit:g}. A command may fail with a reason; it must not crash, hang or say what is not so.

"""

HEAD: Final = "brokers of each cluster | bounces of each | changes of every kind | equal after | commands (failed with a reason) | wrong | slowest command"


def summed_up(ran: Sequence[Ran]) -> dict[str, Any]:
    """By command how many ran, how many of them failed with a reason, and the slowest; and all that was wrong."""
    by_name = {name: [one for one in ran if one.command == name] for name in COMMANDS}
    counts = {
        name: {
            "ran": len(rows),
            "failed": sum(one.code == 1 for one in rows),
            "slowest": max((one.seconds for one in rows), default=0.0),
        }
        for name, rows in by_name.items()
    }
    reasons = sorted({f"{one.command}: {one.said}" for one in ran if one.code == 1})
    return {"by_name": counts, "reasons": reasons, "wrong": [f"{one.command}: {one.wrong}" for one in ran if one.wrong]}


def section(found: Mapping[str, Any]) -> str:
    """From what `bench.bounces` saved."""
    return INTRO.format(**found) + table(HEAD, map(_bounced, found["runs"])) + "\n"


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
