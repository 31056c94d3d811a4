"""`python -m bench.cutover`: a cutover, a preflight and a fence of many topics, second by second.

Writes bench/figures/benchmarks-cutover.json; bench/figures/benchmarks-failover.md is made from it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from app.failover_facts import InStep, ReadinessSurvey
from app.failover_session import FailoverCall, failover_session
from app.local.local_mirror import mirror_properties
from app.local.waiting import wait_for
from app.settings import Settings, load
from app.wiring import both_clusters
from bench.failover_figures_page import CUTOVER, write
from bench.pair import job_of, make_topics, pair_of
from bench.saved_figures import save
from sinks.failover import commands
from sinks.failover.scene import Scene
from sinks.failover.steps import failover_steps
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kinds.shared_listings import list_both
from sinks.ledger.failover_record import Step

SOON = 600.0
RECORDS = 20
"""In each topic of the cutover."""

OWN = {"sync.topic.acls.enabled": "false"}
"""MM2 would copy the fence."""

Seconds = dict[str, float]


def main(
    topics: Annotated[int, typer.Option(help="That are cut over.")] = 500,
    fenced: Annotated[int, typer.Option(help="That are fenced, in a flow of their own.")] = 2000,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = CUTOVER,
) -> None:
    """Measures, saves, and writes the page."""
    save(out, {"topics": topics, "fenced": fenced} | _measured(topics, fenced))
    sys.stdout.write(write(out, CUTOVER))


def _measured(topics: int, fenced: int) -> dict[str, Any]:
    moved = [f"rto-{number:04}" for number in range(topics)]
    names = [f"fence-{number:04}" for number in range(fenced)]
    with pair_of("cutover") as pair:
        pair.fill(moved, 1, RECORDS)
        keys = {"topics": "rto-.*", "refresh.topics.interval.seconds": "1", "offset.lag.max": "0", **OWN}
        with pair.mirror(**keys):
            wait_for(lambda: pair.copied(moved, 1, RECORDS), SOON, "MM2 to copy all topics")
            settings = load(pair.job(**keys).config)
            preflight = _preflight(settings)
            cutover = _timed(settings, commands.cutover)
            make_topics(pair.source, dict.fromkeys(names, TopicSpec(1, 1)))
            aliases = {"c": pair.a.bootstrap, "d": pair.b.bootstrap}
            properties = mirror_properties(aliases, ["c->d"], topics="fence-.*", **OWN)
            other = load(job_of(properties, pair.root / "fence").config)
            fence = _timed(other, commands.fence)
            fence |= {"LIFT_FENCE": _timed(other, commands.unfence)["LIFT_FENCE"]}
    return {"preflight": preflight, "cutover": cutover, "fence": fence}


def _preflight(settings: Settings) -> dict[str, Seconds]:
    """What a job's preflight of clusters takes, the first and one in which nothing moved: wall and its own CPU time."""
    (flow,) = settings.flows
    found = {}
    with both_clusters(settings, flow) as clusters:
        survey = ReadinessSurvey(flow, clusters)
        for name in ("first", "next"):
            wall, cpu = time.perf_counter(), time.process_time()
            survey.observe(list_both(flow, clusters.source, clusters.target), InStep(), None)
            found[name] = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return found


def _timed(settings: Settings, command: Callable[[Scene], object]) -> Seconds:
    """Seconds by step, of all steps together, and of the whole command with what is between them."""
    (flow,) = settings.flows
    seconds: Seconds = {}

    def steps(scene: Scene) -> Mapping[Step, Callable[[], None]]:
        return {step: _lap(seconds, step.name)(do) for step, do in failover_steps(scene).items()}

    began = time.perf_counter()
    with failover_session(settings, flow, FailoverCall("measured")) as scene, _lap(seconds, "command"):
        command(replace(scene, does=steps))
    return seconds | {"opening": time.perf_counter() - began - seconds["command"]}


@contextmanager
def _lap(seconds: Seconds, name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - began


if __name__ == "__main__":
    typer.run(main)
