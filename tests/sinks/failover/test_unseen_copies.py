"""Copies whose topic or partition no job saw on the source have an unknown loss, unless the source had none."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

import pytest

from sinks.failover.commands import failover
from sinks.failover.predicted_loss import NEVER_SEEN, Prediction, predict
from sinks.failover.scene import copies_of
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.faults import RightsMissing
from sinks.ledger.kept_divergences import divergences
from sinks.ledger.kept_end_offsets import ABSENT_IN_AN_ENTRY, KeptEndOffsets, absent_topics, from_text, to_text
from sinks.ledger.ledger_entries import Entry
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from tests.inline_work import inline
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, known_end_offsets, look, stage

Z0, X2 = TopicPartition("z", 0), TopicPartition("x", 2)


def job(built: Stage, absent: Callable[[Collection[str]], Collection[str]] | None = None) -> SourceEndOffsetStore:
    """A job that looks for copies without a topic."""
    world = built.world
    return SourceEndOffsetStore(
        built.here,
        5.0,
        beside=inline,
        copied_topics=partial(copies_of, world.settings),
        absent=absent or world.source.confirmed_absent,
    )


def make_copy(built: Stage, topic: str = "z") -> None:
    """A copy with one record."""
    put_topic(built.world.target, f"a.{topic}")
    built.there.logs[TopicPartition(f"a.{topic}", 0)] = MemoryLog().append(b"k", b"v", 1000)


def make_topic(built: Stage) -> None:
    put_topic(built.world.source, "z")
    built.here.logs[Z0] = MemoryLog()
    built.write("z", 0, 5)


def without_source(built: Stage) -> Prediction:
    for one in (built.world.source, built.world.source_acls, built.here):
        one.reachable = False
    return predict(built.scene(answers=False))


def test_a_topic_that_no_job_saw_has_an_unknown_loss() -> None:
    built = stage()
    look(built, 1000.0, job(built))
    make_topic(built)
    make_copy(built)
    found = without_source(built)
    assert (found.records, found.unknown) == (None, {Z0: NEVER_SEEN})
    failover(built.scene(answers=False), accept_loss=None, agreed=lambda prediction: None)
    kept = divergences(built.ledger())["z"]
    assert (list(kept.ends), list(kept.known), list(kept.lost)) == ([1], [-1], [-1])


def test_a_partition_that_no_job_saw_has_an_unknown_loss() -> None:
    built = stage()
    look(built, 1000.0, job(built))
    built.world.target.topics["a.x"].partitions = 3
    built.there.logs[TopicPartition("a.x", 2)] = MemoryLog().append(b"k", b"v", 1)
    assert without_source(built).unknown == {X2: NEVER_SEEN}


def test_a_copy_whose_topic_was_gone_at_the_jobs_last_look_loses_nothing() -> None:
    built = stage()
    make_copy(built)
    look(built, 1000.0, job(built))
    assert absent_topics(built.ledger()) == {"z"}
    assert without_source(built).unknown == {}


def test_a_copy_whose_topic_the_source_hid_from_the_job_has_an_unknown_loss() -> None:
    built = stage()
    make_topic(built)
    make_copy(built)
    built.world.source.unseen.add("z")
    look(built, 1000.0, job(built))
    assert without_source(built).unknown == {Z0: NEVER_SEEN}


def test_a_topic_that_came_back_is_no_longer_absent() -> None:
    built = stage()
    make_copy(built)
    keeper = job(built)
    look(built, 1000.0, keeper)
    make_topic(built)
    look(built, 1010.0, keeper)
    assert absent_topics(built.ledger()) == set()
    assert without_source(built).unknown == {}


def test_ends_are_kept_although_nobody_tells_which_topics_are_gone() -> None:
    built = stage()
    make_copy(built)

    def denied(topics: Collection[str]) -> Collection[str]:
        raise RightsMissing("a denies it")

    look(built, 1000.0, job(built, denied))
    assert known_end_offsets(built.ledger()) is not None
    assert absent_topics(built.ledger()) == set()


def test_a_copys_partitions_that_an_answering_source_does_not_have_lose_nothing() -> None:
    built = stage()
    look(built, 1000.0, job(built))
    built.world.target.topics["a.x"].partitions = 3
    built.there.logs[TopicPartition("a.x", 2)] = MemoryLog()
    # The leader of y gives no answer.
    del built.here.logs[TopicPartition("y", 0)]
    assert predict(built.scene(answers=True)).unknown == {}


def test_an_entry_holds_so_many_absent_topics_that_a_broker_takes_it() -> None:
    names = [f"{number:0249}" for number in range(ABSENT_IN_AN_ENTRY + 1)]
    assert len(to_text({"x": KeptEndOffsets((1,), 1)}, names)) < 500_000


def test_entries_of_an_older_version_know_no_absent_topics() -> None:
    built = stage()
    text = to_text({"x": KeptEndOffsets((1, 1), 1)}).replace(',"absent":[]', "")
    assert from_text(text)["x"].ends == (1, 1)
    built.ledger().put({(Entry.SOURCE_ENDS, ("0",)): text})
    assert absent_topics(built.ledger()) == set()


def test_unreadable_absent_topics_are_an_error() -> None:
    built = stage()
    built.ledger().put({(Entry.SOURCE_ENDS, ("0",)): '{"at": 1, "ends": {}, "absent": 3}'})
    with pytest.raises(LockstepError, match=r"the source's ends in .* cannot be read"):
        absent_topics(built.ledger())


def test_empty_partitions_that_a_copy_has_more_than_its_topic_make_no_loss_unknown() -> None:
    built = stage()
    built.world.target.topics["a.x"].partitions = 3
    built.there.logs[TopicPartition("a.x", 2)] = MemoryLog()
    look(built, 1000.0, job(built))
    assert without_source(built).unknown == {}


def test_a_topic_that_a_job_found_gone_stays_gone_while_the_sources_epoch_stands_still() -> None:
    built = stage()
    make_copy(built)
    look(built, 1000.0, job(built))
    scene = built.scene()
    scene = replace(scene, source=replace(scene.source, epochs=lambda: [7]))
    assert scene.hidden(scene.listed()) == []
    assert predict(scene).unknown == {}
