"""A drill deletes what it made itself, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pytest

from sinks.failover.drill import Drill, DrillTopic, LeftBehind
from sinks.failover.fencing import Fence
from sinks.failover.journal import last_drill
from sinks.faults import ClusterUnreachable, ItemFault
from sinks.kafka.ports.cluster import Faults, TopicSpec
from sinks.kafka.ports.groups import GroupFaults, LogRange, Offsets
from sinks.kafka.ports.transactions import ActiveProducer
from sinks.ledger.fence_acls import fence_acls
from streaming.errors import LockstepError, WrongUsage
from streaming.mm2.records import TopicPartition
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, stage

TOPIC, COPY = "practice", "a.practice"


def drill_on(built: Stage) -> Drill:
    """One that waits for five seconds and gives up: no program copies its topic."""
    return Drill(built.scene(), TOPIC, lambda groups: [], records=10, within=5.0)


def made_on(built: Stage) -> DrillTopic:
    """The topic of a drill, copied and fenced."""
    scene = built.scene()
    own = DrillTopic(scene, TOPIC, COPY)
    own.make()
    assert own.is_seen()
    put_topic(built.world.target, COPY)
    Fence(scene).deny([TOPIC])
    return own


def before_creation(cluster: MemoryCluster, happens: Callable[[], None]) -> None:
    """What happens after the drill has looked, and before the cluster makes its topic."""
    create = cluster.create_topics

    def created(specs: Mapping[str, TopicSpec]) -> Faults:
        cluster.create_topics = create  # type: ignore[method-assign]
        happens()
        return create(specs)

    cluster.create_topics = created  # type: ignore[method-assign]


def test_a_topic_that_somebody_makes_right_before_the_drill_is_left_alone_with_its_copy_and_its_fence() -> None:
    built = stage()
    source, target = built.world.source, built.world.target

    def somebody() -> None:
        put_topic(source, TOPIC, 6)
        put_topic(target, COPY, 6)
        scene = built.scene()
        Fence(scene).deny([TOPIC])

    before_creation(source, somebody)
    with pytest.raises(LockstepError, match="TOPIC_ALREADY_EXISTS"):
        drill_on(built).run()
    assert (source.topics[TOPIC].partitions, target.topics[COPY].partitions) == (6, 6)
    assert set(fence_acls([TOPIC])) <= set(built.world.source_acls.bindings)


@pytest.mark.parametrize(("alias", "name"), [("source", TOPIC), ("target", COPY)])
def test_a_topic_that_a_listing_lacks_and_a_broker_knows_by_name_is_there(alias: str, name: str) -> None:
    built = stage()
    cluster: MemoryCluster = getattr(built.world, alias)
    put_topic(cluster, name, 6)
    listed = cluster.list_topics
    cluster.list_topics = lambda: {one: count for one, count in listed().items() if one != name}  # type: ignore[method-assign]
    with pytest.raises(WrongUsage, match=f"{name} exists on"):
        drill_on(built).run()
    assert cluster.topics[name].partitions == 6


def test_where_the_topic_was_refused_nothing_is_asked_to_be_deleted() -> None:
    built = stage()
    asked: list[str] = []

    def refused(specs: Mapping[str, TopicSpec]) -> Faults:
        return dict.fromkeys(specs, ItemFault("POLICY_VIOLATION", "no"))

    def deleted(topics: Collection[str], ids: Mapping[str, str]) -> Faults:
        asked.extend(topics)
        return dict.fromkeys(topics)

    built.world.source.create_topics = refused  # type: ignore[method-assign]
    for cluster in (built.world.source, built.world.target):
        cluster.delete_topics = deleted  # type: ignore[method-assign]
    with pytest.raises(LockstepError, match="POLICY_VIOLATION"):
        drill_on(built).run()
    assert not asked


def test_a_creation_that_got_no_answer_is_named_and_deletes_nothing() -> None:
    built = stage()
    create = built.world.source.create_topics

    def lost(specs: Mapping[str, TopicSpec]) -> Faults:
        create(specs)
        return dict.fromkeys(specs, ItemFault("REQUEST_TIMED_OUT", "no answer", unknown=True))

    built.world.source.create_topics = lost  # type: ignore[method-assign]
    with pytest.raises(LockstepError, match="REQUEST_TIMED_OUT"):
        drill_on(built).run()
    assert TOPIC in built.world.source.topics
    assert f"it is unknown whether {TOPIC} was created on a" in built.said[-1]


def test_of_two_drills_with_one_name_the_second_leaves_the_firsts_topic() -> None:
    built = stage()
    first = made_on(built)
    second = DrillTopic(built.scene(), TOPIC, COPY)
    with pytest.raises(LockstepError, match="TOPIC_ALREADY_EXISTS"):
        second.make()
    assert second.take_away() == []
    assert first.take_away() == []
    assert (TOPIC in built.world.source.topics, COPY in built.world.target.topics) == (False, False)


def test_a_topic_that_was_recreated_meanwhile_is_left_alone_with_its_copy() -> None:
    built = stage()
    own = made_on(built)
    built.world.source.delete_topics([TOPIC])
    put_topic(built.world.source, TOPIC, 6)
    (left,) = own.take_away()
    assert (built.world.source.topics[TOPIC].partitions, COPY in built.world.target.topics) == (6, True)
    assert f"{COPY} on b" in left
    assert not set(fence_acls([TOPIC])) & set(built.world.source_acls.bindings)


def test_a_drill_that_nobody_copies_takes_its_topic_away() -> None:
    built = stage()
    with pytest.raises(LockstepError, match="gave up after"):
        drill_on(built).run()
    assert TOPIC not in built.world.source.topics


def test_a_drill_that_is_interrupted_right_after_the_creation_takes_its_topic_away() -> None:
    built = stage()
    own = DrillTopic(built.scene(), TOPIC, COPY)
    own.make()
    assert own.take_away() == []
    assert TOPIC not in built.world.source.topics


def refuses(topics: Collection[str], ids: Mapping[str, str]) -> Faults:
    """A cluster that lets no client delete."""
    return dict.fromkeys(topics, ItemFault("TOPIC_AUTHORIZATION_FAILED", "no DELETE"))


def silent(topics: Collection[str], ids: Mapping[str, str]) -> Faults:
    """A cluster that does not answer any more."""
    raise ClusterUnreachable("no answer")


@pytest.mark.parametrize("deletes", [refuses, silent])
def test_what_cannot_be_deleted_is_named_with_its_cluster_and_how_to_remove_it(
    deletes: Callable[[Collection[str], Mapping[str, str]], Faults],
) -> None:
    built = stage()
    own = made_on(built)
    for cluster in (built.world.source, built.world.target):
        cluster.delete_topics = deletes  # type: ignore[method-assign]
    left = own.take_away()
    assert [line.partition(":")[0] for line in left] == [f"{TOPIC} is left on a", f"{COPY} is left on b"]
    assert all(f"--delete --topic {name}" in line for line, name in zip(left, (TOPIC, COPY), strict=True))


def test_a_fence_that_cannot_be_lifted_is_named_and_the_topics_are_deleted_all_the_same() -> None:
    built = stage()
    own = made_on(built)
    acls = built.world.source_acls
    acls.delete = lambda given: dict.fromkeys(given, ItemFault("CLUSTER_AUTHORIZATION_FAILED", "no"))  # type: ignore[method-assign]
    (left,) = own.take_away()
    assert "`lockstep unfence`" in left
    assert (TOPIC in built.world.source.topics, COPY in built.world.target.topics) == (False, False)


def mirrored(built: Stage) -> None:
    """The drill's records are in the log that its readers see, and MM2 copies its topic."""
    source, target = built.world.source, built.world.target
    here, there = TopicPartition(TOPIC, 0), TopicPartition(COPY, 0)

    def append(topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        if topic == TOPIC and set(fence_acls([TOPIC])) & set(built.world.source_acls.bindings):
            raise LockstepError("TOPIC_AUTHORIZATION_FAILED")
        for key, value in records:
            built.here.logs.setdefault(here, MemoryLog()).append(key, value, 1)

    def copied() -> None:
        if TOPIC in source.topics and COPY not in target.topics:
            put_topic(target, COPY)

    source.append_log = append  # type: ignore[method-assign]
    built.there.logs[there] = MemoryLog()
    built.world.source_groups.logs[here] = LogRange(0, 100)
    built.producers.append(copied)


def test_a_drill_that_is_copied_agrees_and_leaves_nothing_behind() -> None:
    built = stage()
    mirrored(built)
    assert drill_on(built).run().agrees
    assert (TOPIC in built.world.source.topics, COPY in built.world.target.topics) == (False, False)


def refusing_once(built: Stage, fault: ItemFault) -> None:
    """The first commit of groups' offsets is refused on the source."""
    groups = built.world.source_groups
    commit = groups.commit

    def refused(offsets: Mapping[str, Offsets]) -> GroupFaults:
        groups.commit = commit  # type: ignore[method-assign]
        return {group: dict.fromkeys(of_group, fault) for group, of_group in offsets.items()}

    groups.commit = refused  # type: ignore[method-assign]


def test_groups_whose_coordinator_is_only_just_being_made_are_committed_again() -> None:
    built = stage()
    mirrored(built)
    refusing_once(built, ItemFault("NOT_COORDINATOR", "not the coordinator", retriable=True))
    assert drill_on(built).run().agrees
    assert built.world.source_groups.offsets.keys() == {f"{TOPIC}-middle", f"{TOPIC}-end"}


def test_a_drill_whose_groups_may_not_be_committed_proves_nothing_and_says_why() -> None:
    built = stage()
    mirrored(built)
    refusing_once(built, ItemFault("GROUP_AUTHORIZATION_FAILED", "denied"))
    with pytest.raises(LockstepError, match=f"{TOPIC}-.* cannot be committed on a: .*READ on GROUP {TOPIC}-.* missing"):
        drill_on(built).run()
    assert TOPIC not in built.world.source.topics


def test_a_drill_that_leaves_something_behind_fails_and_is_kept_so_whatever_it_measured() -> None:
    built = stage()
    mirrored(built)
    built.world.target.delete_topics = refuses  # type: ignore[method-assign]
    with pytest.raises(LeftBehind, match=f"as predicted, but .*{COPY} is left on b"):
        drill_on(built).run()
    noted = last_drill(built.ledger())
    assert noted is not None
    assert COPY in noted["error"]


def test_a_drill_that_fails_says_what_it_leaves_behind_beside_its_own_error() -> None:
    built = stage()
    built.world.source.delete_topics = refuses  # type: ignore[method-assign]
    with pytest.raises(LockstepError, match="gave up after"):
        drill_on(built).run()
    assert f"{TOPIC} is left on a" in built.said[-1]


def test_what_mm2_copied_and_has_not_committed_is_no_copy_to_a_drill() -> None:
    built = stage()
    built.mirrors = False

    def mm2() -> None:
        if COPY in built.world.target.topics:
            return
        put_topic(built.world.target, COPY)
        here, there = TopicPartition(TOPIC, 0), TopicPartition(COPY, 0)
        built.here.logs[here] = MemoryLog().append(b"0", b"drill", 1000)
        built.there.logs[there] = MemoryLog().written(ActiveProducer(3, 0, 1000), b"0", b"drill", transactional=True)

    built.producers.append(mm2)
    with pytest.raises(LockstepError, match="gave up after 5 s of waiting for MM2 to copy practice"):
        drill_on(built).run()
