"""Queries that do as they are told, in place of Spark's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame

from app.job.query_supervisor import BackgroundProbe, QuerySupervisor
from app.settings import Settings, load
from sinks.background import at_once
from streaming.query import QueryRefused, RunningQuery, Sink
from streaming.query_plan import ClusterSource, QueryPlan
from streaming.query_restarts import QueryStatus

DAMAGED = """java.lang.IllegalStateException: Failed to read log file file:/x/offsets/1. Incomplete log file
\tat org.apache.spark.sql.execution.streaming.HDFSMetadataLog.applyFnToBatchByStream(HDFSMetadataLog.scala:192)
"""
FULL_DISK = """org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileOutputStream.write(RawLocalFileSystem.java:350)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""
NO_BATCH = cast(DataFrame, None)
"""The sinks of these tests look at none."""


@dataclass
class ScriptedQuery:
    """A query that goes on until it `fails` or is stopped. `begins_another`: batch, before it can be stopped."""

    plan: QueryPlan
    sink: Sink
    active: bool = True
    failure: str | None = None
    number: int = 0
    begins_another: bool = False

    def is_active(self) -> bool:
        return self.active

    def trace(self) -> str | None:
        return self.failure

    def stop(self, timeout: float) -> None:
        if self.begins_another:
            self.batch()
        self.active = False

    def batch(self) -> None:
        """What Spark does at a trigger."""
        self.sink(NO_BATCH, self.number)
        self.number += 1

    def fail(self, trace: str) -> None:
        self.active, self.failure = False, trace


@dataclass
class ScriptedQueries:
    """Every query that was started; `refusals`: stack traces of the next starts. `done`: they have read all at once."""

    started: list[ScriptedQuery] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    done: bool = False

    def start(self, plan: QueryPlan, sink: Sink, once: bool) -> RunningQuery:
        plan.checkpoint.mkdir(parents=True, exist_ok=True)
        if self.refusals:
            raise QueryRefused(self.refusals.pop(0))
        query = ScriptedQuery(plan, sink, active=not self.done)
        self.started.append(query)
        if self.failures:
            query.fail(self.failures.pop(0))
        return query

    @property
    def last(self) -> ScriptedQuery:
        return self.started[-1]


@dataclass
class Answers:
    """A `SourceProbe`: topics that may not be read, and clusters that are away."""

    denied: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)

    def __call__(self, source: ClusterSource) -> tuple[ClusterSource | None, str | None]:
        if source.alias in self.away:
            return None, f"{source.alias} is away"
        left = {topic: role for topic, role in source.topics.items() if topic not in self.denied}
        if len(left) == len(source.topics):
            return source, None
        found = ClusterSource(source.alias, source.options, left, source.flow) if left else None
        return found, f"READ is missing on {source.alias}"


def settings_in(folder: Path, **keys: str) -> Settings:
    """Of the flow a->b; the addresses lead nowhere."""
    lines = {
        "clusters": "a,b",
        "a.bootstrap.servers": "a.invalid:1",
        "b.bootstrap.servers": "b.invalid:1",
        "a->b.enabled": "true",
        "lockstep.checkpoint.dir": str(folder / "checkpoints"),
    }
    path = folder / "mirror.properties"
    path.write_text("".join(f"{name} = {value}\n" for name, value in (lines | keys).items()))
    return load(path)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """A supervisor of scripted queries."""

    folder: Path
    once: bool = False
    queries: ScriptedQueries = field(default_factory=ScriptedQueries)
    answers: Answers = field(default_factory=Answers)
    clock: Clock = field(default_factory=Clock)
    steps: int = 0
    observed: list[QueryStatus] = field(default_factory=list)
    holds: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.supervisor = QuerySupervisor(
            settings_in(self.folder),
            self.queries.start,
            "b",
            lambda batch, number: None,
            self.once,
            self.step,
            hold=self.holds.append,
            observe=lambda target, status: self.observed.append(status),
            probe=BackgroundProbe(self.answers, beside=at_once),
            clock=self.clock,
        )

    def step(self, _: float) -> None:
        self.steps += 1

    def after(self, seconds: float) -> QueryStatus:
        """What the query does when so much time went by."""
        self.clock.now += seconds
        self.supervisor.tend()
        return self.supervisor.status()

    @property
    def asides(self) -> list[Path]:
        return sorted(self.folder.glob("checkpoints/b/*.damaged-*"))
