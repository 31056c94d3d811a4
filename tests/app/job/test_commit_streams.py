"""Streams of commits come and go with what flows want and clusters allow; without one groups are polled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.job.commit_streams import RIGHT_PROBE_INTERVAL, CommitStream
from sinks.flow_settings import OffsetsSource
from sinks.kinds.offsets.commit_feed import CommitFeed
from streaming.commits.commit_query import CommitSource, TakeCommits
from streaming.commits.commit_record import COMMITS_TOPIC, CommitBatch
from streaming.flow import Flow
from streaming.mm2.records import TopicPartition
from streaming.query import QueryRefused

AB, AC = Flow("a", "b"), Flow("a", "c")
X = TopicPartition("x", 0)
READ_IS_MISSING = "READ is missing"


@dataclass
class ScriptedQuery:
    """Is active until it is stopped, or given a trace."""

    take_in: TakeCommits
    failure: str | None = None
    stopped: bool = False

    def is_active(self) -> bool:
        return self.failure is None and not self.stopped

    def trace(self) -> str | None:
        return self.failure

    def stop(self, timeout: float) -> None:
        self.stopped = True


@dataclass
class Stage:
    """A stream for two flows; what a probe answers and whether queries start is up to the test."""

    now: float = 100.0
    answer: CommitSource | str = field(default_factory=lambda: CommitSource("a", {}, {0: 5}, 0.25))
    refusal: str | None = None
    started: list[ScriptedQuery] = field(default_factory=list)
    woken: list[Flow] = field(default_factory=list)
    undecodable: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.feeds: Mapping[Flow, CommitFeed] = {AB: CommitFeed(), AC: CommitFeed()}
        self.stream = CommitStream(
            "a",
            {},
            self.feeds,
            self,
            self.woken.append,
            self.undecodable.append,
            probe=lambda alias, options: self.answer,
            run=lambda call: call(),
            clock=lambda: self.now,
        )

    def start(self, source: CommitSource, take_in: TakeCommits) -> ScriptedQuery:
        if self.refusal:
            raise QueryRefused(self.refusal)
        self.started.append(ScriptedQuery(take_in))
        return self.started[-1]

    def tend(self, after: float = 0.0) -> None:
        self.now += after
        self.stream.tend()

    def want(self) -> None:
        self.feeds[AB].want(OffsetsSource.STREAM, 1)

    @property
    def live(self) -> list[bool]:
        return [feed.live for feed in self.feeds.values()]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_no_query_runs_while_no_flow_wants_it(stage: Stage) -> None:
    stage.tend()
    assert (stage.started, stage.live) == ([], [False, False])


def test_one_query_serves_all_flows_from_the_cluster_and_wakes_them(stage: Stage) -> None:
    stage.want()
    stage.tend()
    assert stage.live == [True, True]
    stage.woken.clear()
    stage.started[0].take_in(CommitBatch({"g": {X: 7}}))
    assert [feed.take().commits for feed in stage.feeds.values()] == [{"g": {X: 7}}] * 2
    assert stage.woken == [AB, AC]


def test_a_micro_batch_without_a_commit_wakes_nobody_and_what_it_could_not_read_is_counted(stage: Stage) -> None:
    stage.want()
    stage.tend()
    stage.woken.clear()
    stage.started[0].take_in(CommitBatch(undecodable={"unknown version": 3}))
    assert stage.woken == []
    assert stage.undecodable == [{(COMMITS_TOPIC, "unknown version"): 3}]


def test_where_the_topic_may_not_be_read_groups_are_polled_with_the_reason_until_it_may(stage: Stage) -> None:
    stage.want()
    sound, stage.answer = stage.answer, READ_IS_MISSING
    stage.tend()
    assert (stage.feeds[AB].live, stage.feeds[AB].reason) == (False, READ_IS_MISSING)
    assert stage.feeds[AC].reason is None
    stage.answer = sound
    stage.tend(after=RIGHT_PROBE_INTERVAL / 2)
    assert not stage.started
    stage.tend(after=RIGHT_PROBE_INTERVAL / 2)
    assert (stage.live, stage.feeds[AB].reason) == ([True, True], None)


def test_a_query_that_fails_ends_the_stream_and_is_started_again_after_a_wait(stage: Stage) -> None:
    stage.want()
    stage.tend()
    stage.started[0].take_in(CommitBatch())
    session = stage.feeds[AB].take().session
    stage.started[0].failure = "Caused by: java.net.ConnectException: refused"
    stage.tend()
    assert stage.live == [False, False]
    assert "ConnectException: refused" in str(stage.feeds[AB].reason)
    stage.tend(after=60.0)
    assert len(stage.started) == 2
    stage.started[1].take_in(CommitBatch())
    assert stage.feeds[AB].take().session != session


def test_a_query_that_spark_refuses_leaves_the_flows_polling(stage: Stage) -> None:
    stage.refusal = "no such class"
    stage.want()
    stage.tend()
    assert stage.live == [False, False]
    assert "no such class" in str(stage.feeds[AB].reason)


def test_a_stream_that_nobody_wants_any_more_is_stopped(stage: Stage) -> None:
    stage.want()
    stage.tend()
    stage.feeds[AB].want(OffsetsSource.POLL, 9999)
    stage.tend()
    assert stage.started[0].stopped
    assert stage.live == [False, False]
    stage.started[0].take_in(CommitBatch({"g": {X: 7}}))
    assert stage.feeds[AB].take().commits == {}
