"""Exact offsets belong to the topics of their day, and to the offset-syncs topic: others with these names have none."""

from __future__ import annotations

from sinks.kinds.offsets.exact_runs import Run, remember
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.ledger.ledger import Entry
from tests.sinks.kinds.offsets.remembering import SYNCS, World, X

RUNS = [Run(0, 0, 1000)]


def begun(world: World, *, topic: str = "1") -> OffsetMemory:
    memory = world.begun()
    recognize(memory, topic)
    return memory


def recognize(memory: OffsetMemory, topic: str) -> None:
    memory.recognize({"x": "a.x"}, {"x": f"here-{topic}"}, {"a.x": f"there-{topic}"})


def verify(world: World, *, topic: str = "1") -> None:
    memory = begun(world, topic=topic)
    remember(world.ledger, [(X, RUNS)], memory.histories.exact, memory.histories.position)


def exact_offset(memory: OffsetMemory, world: World) -> int | None:
    memory.save(world.ledger, {"x": 1})
    return memory.histories.exact_offset(X, 70)


def recreate_syncs(world: World) -> None:
    del world.a.topics[SYNCS]
    world.a.create_log(SYNCS, 1, {})


def test_what_was_verified_holds_on_in_a_job_that_is_restarted() -> None:
    world = World()
    world.sync((0, 0), (1000, 1000))
    begun(world).save(world.ledger, {"x": 1})
    verify(world)
    assert exact_offset(begun(world), world) == 70
    assert exact_offset(begun(world), world) == 70


def test_no_exact_offset_outlives_topics_that_are_recreated_with_the_offset_syncs() -> None:
    world = World()
    world.sync((0, 0), *((at, at) for at in range(1, 50)), (1000, 1000))
    job = begun(world)
    job.save(world.ledger, {"x": 1})
    verify(world)
    assert exact_offset(job, world) == 70
    recreate_syncs(world)
    world.sync((0, 0))
    MirrorReading(job, world.topics).catch_up()
    recognize(job, "2")
    assert exact_offset(job, world) is None
    world.sync((1000, 900))
    MirrorReading(job, world.topics).catch_up()
    assert exact_offset(job, world) is None
    assert world.ledger.values(Entry.EXACT_OFFSETS) == {}
    assert exact_offset(begun(world, topic="2"), world) is None


def test_no_exact_offset_outlives_the_offset_syncs_while_the_job_is_down() -> None:
    world = World()
    world.sync((0, 0), *((at, at) for at in range(1, 50)), (1000, 1000))
    begun(world).save(world.ledger, {"x": 1})
    verify(world)
    recreate_syncs(world)
    world.sync((0, 0), (1000, 1000))
    assert exact_offset(begun(world), world) is None


def test_a_restart_of_mm2_in_the_former_offset_syncs_ends_nothing_that_was_verified_since() -> None:
    world = World()
    world.sync(*((at, at) for at in range(50)), (60, 100))
    job = begun(world)
    world.sync((70, 200))
    MirrorReading(job, world.topics).catch_up()
    job.save(world.ledger, {"x": 1})
    recreate_syncs(world)
    world.sync((1000, 1000), (1010, 1010))
    verify(world)
    MirrorReading(job, world.topics).catch_up()
    job.save(world.ledger, {"x": 1})
    assert job.histories.exact.of(X) is not None
    job.save(world.ledger, {"x": 1})
    assert world.ledger.values(Entry.EXACT_OFFSETS) != {}


def test_what_is_verified_of_a_recreated_topic_is_not_believed_before_the_job_knows_of_it() -> None:
    world = World()
    world.sync((0, 0), (1000, 1000))
    job = begun(world)
    job.save(world.ledger, {"x": 1})
    verify(world, topic="2")
    assert exact_offset(job, world) is None
    assert world.ledger.values(Entry.EXACT_OFFSETS) != {}
