"""`python -m bench.cutover`: a cutover, a preflight and a fence of many topics, second by second.

Writes bench/figures/benchmarks-cutover.json; bench/figures/benchmarks-failover.md is made from it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from app.failover_facts import InStep, ReadinessSurvey
from app.failover_session import FailoverCall, failover_session
from app.local.local_cluster import LocalCluster
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import wait_for
from app.settings import Settings, load
from app.wiring import both_clusters, open_cluster
from bench.failover_figures_page import CUTOVER, write
from bench.saved_figures import save
from sinks.failover import commands
from sinks.failover.scene import Scene
from sinks.failover.steps import failover_steps
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kinds.shared_listings import list_both
from sinks.ledger.failover_record import Step
from streaming.mm2.records import TopicPartition

SOON = 600.0
RECORDS = 20
"""In each topic of the cutover."""

Seconds = dict[str, float]


def main(
    topics: Annotated[int, typer.Option(help="That are cut over.")] = 500,
    fenced: Annotated[int, typer.Option(help="That are fenced, in a flow of their own.")] = 2000,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = CUTOVER,
) -> None:
    """Measures, saves, and writes the page."""
    with tempfile.TemporaryDirectory(prefix="lockstep-cutover-") as folder:
        found = {"topics": topics, "fenced": fenced} | _measured(Path(folder), topics, fenced)
    save(out, found)
    sys.stdout.write(write(out))


def _measured(root: Path, topics: int, fenced: int) -> dict[str, Any]:
    with ExitStack() as stack:
        a, b = (stack.enter_context(LocalCluster(alias, root / alias, heap="768m")) for alias in "ab")
        source = stack.enter_context(closing(open_cluster("a", {"bootstrap.servers": a.bootstrap})))
        target = stack.enter_context(closing(open_cluster("b", {"bootstrap.servers": b.bootstrap})))
        # MM2 would copy the fence.
        own = {"sync.topic.acls.enabled": "false"}
        keys = {"topics": "rto-.*", "refresh.topics.interval.seconds": "1", "offset.lag.max": "0", **own}
        properties = mirror_properties({"a": a.bootstrap, "b": b.bootstrap}, ["a->b"], **keys)
        _make(source, "rto", topics, RECORDS)
        stack.enter_context(LocalMirror(properties, root / "mirror"))
        copies = [TopicPartition(f"a.{name}", 0) for name in _names("rto", topics)]
        wait_for(partial(_copied, target, copies), SOON, "MM2 to copy all topics")
        settings = _settings(root / "rto.properties", properties)
        preflight = _preflight(settings)
        cutover = _timed(settings, commands.cutover)
        _make(source, "fence", fenced, 0)
        pair = {"c": a.bootstrap, "d": b.bootstrap}
        other = _settings(root / "fence.properties", mirror_properties(pair, ["c->d"], topics="fence-.*", **own))
        fence = _timed(other, commands.fence)
        fence |= {"LIFT_FENCE": _timed(other, commands.unfence)["LIFT_FENCE"]}
    return {"preflight": preflight, "cutover": cutover, "fence": fence}


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number:04}" for number in range(count)]


def _make(source: KafkaCluster, prefix: str, count: int, records: int) -> None:
    names = _names(prefix, count)
    for start in range(0, count, 250):
        made = source.create_topics({name: TopicSpec(1, 1) for name in names[start : start + 250]})
        assert not any(made.values()), made
    wait_for(lambda: set(names) <= source.list_topics().keys(), SOON, f"{count} topics to be listed")
    for name in names if records else ():
        source.append_log(name, [(b"%d" % number, b"record") for number in range(records)])


def _copied(target: KafkaCluster, copies: list[TopicPartition]) -> bool:
    there = target.list_topics()
    if any(where.topic not in there for where in copies):
        return False
    ends = target.groups.ends(copies).items
    return len(ends) == len(copies) and all(log.end >= RECORDS for log in ends.values())


def _settings(path: Path, properties: Mapping[str, str]) -> Settings:
    own = {"lockstep.checkpoint.dir": str(path.parent / path.stem)}
    path.write_text("".join(f"{name} = {value}\n" for name, value in {**properties, **own}.items()))
    return load(path)


def _preflight(settings: Settings) -> dict[str, Seconds]:
    """What a job's preflight of clusters takes, the first and one in which nothing moved: wall and its own CPU time."""
    (flow,) = settings.flows
    found = {}
    with both_clusters(settings, flow) as clusters:
        survey = ReadinessSurvey(settings, flow, clusters)
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
        return {step: partial(_step, seconds, step, do) for step, do in failover_steps(scene).items()}

    began = time.perf_counter()
    with failover_session(settings, flow, FailoverCall("measured")) as scene, _lap(seconds, "command"):
        command(replace(scene, does=steps))
    return seconds | {"opening": time.perf_counter() - began - seconds["command"]}


def _step(seconds: Seconds, step: Step, do: Callable[[], None]) -> None:
    with _lap(seconds, step.name):
        do()


@contextmanager
def _lap(seconds: Seconds, name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - began


if __name__ == "__main__":
    typer.run(main)
