"""A query that fails is reported, and neither its flows nor what can be read of it wait for its health."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.job.query_supervisor import PROBE_INTERVAL, BackgroundProbe, QuerySupervisor
from app.local.waiting import wait_for
from streaming.query_restarts import STALLED_AFTER_S, QueryState
from tests.app.job.query_script import DAMAGED, FULL_DISK, ScriptedQueries, World, settings_in

SYNCS = "mm2-offset-syncs.b.internal"
TAKEN = "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for {}."


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.supervisor.end()


def test_batches_stay_once_spark_committed_one_and_are_let_go_before_the_query_is_stopped(world: World) -> None:
    world.after(0)
    world.queries.last.batch()
    assert world.holds == [False]
    world.queries.last.batch()
    assert world.holds[-1]
    world.supervisor.end()
    assert not world.holds[-1]


def test_batch_that_spark_begins_before_it_can_be_stopped_does_not_stay(world: World) -> None:
    world.answers.denied = {SYNCS}
    world.after(0)
    query = world.queries.last
    for _ in range(2):
        query.batch()
    query.begins_another = True
    world.answers.denied.clear()
    world.after(PROBE_INTERVAL)
    assert not query.active
    assert not world.holds[-1]


def test_a_query_runs_once_a_batch_of_it_was_committed(world: World) -> None:
    assert world.after(0).state is QueryState.STARTING
    world.queries.last.batch()
    assert world.supervisor.status().state is QueryState.STARTING
    world.queries.last.batch()
    assert world.supervisor.status().state is QueryState.RUNNING
    assert [status.state for status in world.observed] == [QueryState.STARTING, QueryState.RUNNING]


def test_a_query_whose_batches_stand_still_is_stalled_until_the_next_one_begins(world: World) -> None:
    world.after(0)
    world.queries.last.batch()
    world.queries.last.batch()
    assert world.after(STALLED_AFTER_S).state is QueryState.RUNNING
    found = world.after(60.0)
    assert found.state is QueryState.STALLED
    assert found.reason is not None
    assert "start the job again" in found.reason
    world.queries.last.batch()
    assert world.supervisor.status().state is QueryState.RUNNING
    assert world.after(1.0).reason is None


def test_a_query_whose_first_batch_never_begins_is_stalled(world: World) -> None:
    world.after(0)
    assert world.after(STALLED_AFTER_S + 60.0).state is QueryState.STALLED


def test_a_query_that_fails_says_why_until_a_batch_is_committed_again(world: World) -> None:
    world.after(0)
    world.queries.last.fail(FULL_DISK)
    failed = world.after(1)
    assert (failed.state, failed.restarts) == (QueryState.BACKING_OFF, 1)
    assert failed.reason == "IOException: No space left on device"
    again = world.after(1)
    assert (again.state, again.reason) == (QueryState.STARTING, failed.reason)
    world.queries.last.batch()
    assert world.supervisor.status().reason == failed.reason
    world.queries.last.batch()
    assert world.supervisor.status().reason is None
    assert world.supervisor.status().restarts == 1


def test_the_waits_between_starts_grow_while_a_query_fails_again_and_again(world: World) -> None:
    world.after(0)
    for wait in (1.0, 2.0, 4.0):
        world.queries.last.fail(FULL_DISK)
        started = len(world.queries.started)
        world.after(0)
        world.after(wait - 0.1)
        assert len(world.queries.started) == started
        world.after(0.1)
        assert len(world.queries.started) == started + 1


@pytest.mark.parametrize("refused", [False, True], ids=["at a batch", "at the start"])
def test_a_checkpoint_that_cannot_be_read_is_moved_aside_and_not_deleted(world: World, refused: bool) -> None:
    if refused:
        world.queries.refusals.append(DAMAGED)
    world.after(0)
    (folder,) = (world.folder / "checkpoints" / "b").iterdir()
    checkpoint = folder.with_name(folder.name.partition(".")[0])
    if not refused:
        (checkpoint / "offsets").write_text("damaged")
        world.queries.last.fail(DAMAGED)
        world.after(0)
    (aside,) = world.asides
    assert not checkpoint.exists()
    assert refused or (aside / "offsets").read_text() == "damaged"
    assert str(aside) in (world.supervisor.status().reason or "")
    world.after(1)
    assert world.queries.last.plan.checkpoint == checkpoint


def test_other_trouble_leaves_the_checkpoint_where_it_is(world: World) -> None:
    world.after(0)
    for trace in (FULL_DISK, f"{DAMAGED}{FULL_DISK}", TAKEN.format(3), TAKEN.format(4)):
        world.queries.last.fail(trace)
        world.after(0)
        world.after(60)
    assert world.asides == []


def test_a_checkpoint_in_which_spark_meets_the_same_batch_twice_is_moved_aside(world: World) -> None:
    world.after(0)
    for asides in (0, 1):
        world.queries.last.fail(TAKEN.format(3))
        world.after(0)
        assert len(world.asides) == asides
        world.after(60)


def test_a_right_missing_on_one_topic_costs_that_topic_alone(world: World) -> None:
    world.answers.denied = {SYNCS}
    world.after(0)
    plan = world.queries.last.plan
    assert SYNCS not in {place.topic for place in plan.topics}
    assert [source.alias for source in plan.sources] == ["b"]
    for _ in range(2):
        world.queries.last.batch()
    status = world.supervisor.status()
    assert (status.state, status.reason) == (QueryState.PARTIAL, "READ is missing on a")


def test_what_can_be_read_again_is_taken_in_within_the_interval_of_the_probe(world: World) -> None:
    world.answers.away = {"a"}
    world.after(0)
    world.after(PROBE_INTERVAL)
    assert len(world.queries.started) == 1, "the query was restarted although nothing changed"
    world.answers.away = set()
    world.after(PROBE_INTERVAL)
    world.after(0)
    first, second = world.queries.started
    assert not first.active
    assert first.plan.topics < second.plan.topics


def test_nobody_waits_for_a_cluster_that_is_silent(tmp_path: Path) -> None:
    silent, asked = threading.Event(), threading.Event()

    def never(source: object) -> tuple[None, str]:
        asked.set()
        silent.wait()
        return None, "away"

    queries = ScriptedQueries()
    supervisor = QuerySupervisor(
        settings_in(tmp_path),
        queries.start,
        "b",
        lambda batch, number: None,
        False,
        lambda seconds: None,
        hold=lambda holds: None,
        observe=lambda target, status: None,
        probe=BackgroundProbe(never),
    )
    supervisor.tend()
    wait_for(asked.is_set, 60.0, "the probe to begin")
    supervisor.tend()
    supervisor.end()
    assert supervisor.status().state is QueryState.STOPPED
    assert queries.started == []
    silent.set()


def test_polling_goes_on_in_a_thread_of_its_own_while_no_query_starts(tmp_path: Path) -> None:
    stepped = threading.Semaphore(0)
    supervisor = QuerySupervisor(
        settings_in(tmp_path),
        ScriptedQueries().start,
        "b",
        lambda batch, number: None,
        False,
        lambda seconds: stepped.release(),
        hold=lambda holds: None,
        observe=lambda target, status: None,
    )
    assert all(stepped.acquire(timeout=60.0) for _ in range(3))
    supervisor.end()


def once(folder: Path) -> World:
    world = World(folder, once=True)
    world.queries.done = True
    return world


def test_once_with_a_damaged_checkpoint_reads_all_with_a_new_one(tmp_path: Path) -> None:
    world = once(tmp_path)
    world.queries.failures = [DAMAGED]
    world.supervisor.drain(threading.Event())
    assert len(world.queries.started) == 2
    assert len(world.asides) == 1
    assert world.supervisor.status().state is QueryState.STOPPED


def test_once_gives_up_at_other_trouble_and_says_why(tmp_path: Path) -> None:
    world = once(tmp_path)
    world.queries.failures = [FULL_DISK]
    world.supervisor.drain(threading.Event())
    assert len(world.queries.started) == 1
    assert world.supervisor.status().reason == "IOException: No space left on device"


def test_once_ends_when_it_is_told_to_stop(tmp_path: Path) -> None:
    world = World(tmp_path, once=True)
    stop = threading.Event()
    stop.set()
    world.supervisor.drain(stop)
    world.supervisor.end()
    assert not world.queries.last.active
