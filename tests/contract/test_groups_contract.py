"""One suite for every cluster: what `ports.groups` promises of consumer groups and the ends of logs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import confluent_kafka as rd
import pytest
from confluent_kafka.admin import AdminClient

from app.local.broker import BROKER_BASE
from app.local.jars import kafka_jars
from app.local.java import JavaProcess
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.watches import GroupWatch
from sinks.kinds.offsets.polled_groups import CommitEnds, commit_partition
from streaming.mm2.records import TopicPartition
from tests.contract.group_looks import RECORDS, SOON, Stage, commit, in_memory, of_broker
from tests.quick_java import QUICK_KAFKA


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def stage(request: pytest.FixtureRequest, unique: str) -> Iterator[Stage]:
    if request.param == "memory":
        yield in_memory(unique)
        return
    bootstrap = request.getfixturevalue("clusters").b.bootstrap
    with closing(open_cluster("b", {"bootstrap.servers": bootstrap})) as cluster:
        assert cluster.create_topics({unique: TopicSpec(2, 1)}) == {unique: None}
        wait_for(lambda: unique in cluster.list_topics(), SOON, f"{unique} to be listed")
        cluster.append_log(unique, [(b"k", b"v")] * RECORDS)
        yield of_broker(unique, bootstrap, cluster)


def test_what_is_committed_is_read_back_and_its_group_is_there(stage: Stage, unique: str) -> None:
    wanted = {stage.at(0): 3, stage.at(1): 0}
    commit(stage, {unique: wanted})
    assert stage.groups.committed([unique]).items == {unique: wanted}
    assert unique in stage.groups.names()
    assert stage.groups.members([unique]).items == {unique: 0}


def test_later_commit_moves_its_own_partitions_alone(stage: Stage, unique: str) -> None:
    commit(stage, {unique: {stage.at(0): 3, stage.at(1): 0}})
    commit(stage, {unique: {stage.at(0): 4}})
    assert stage.groups.committed([unique]).items == {unique: {stage.at(0): 4, stage.at(1): 0}}


def test_group_that_is_not_there_has_no_offsets_and_no_members(stage: Stage, unique: str) -> None:
    assert stage.groups.committed([f"{unique}-none"]).items == {f"{unique}-none": {}}
    assert stage.groups.members([f"{unique}-none"]).items == {f"{unique}-none": 0}
    assert f"{unique}-none" not in stage.groups.names()


def test_ends_are_those_of_the_log_and_a_partition_that_is_gone_is_an_error(stage: Stage, unique: str) -> None:
    gone = TopicPartition(f"{unique}-none", 0)
    seen = stage.groups.ends([stage.at(0), stage.at(1), gone])
    assert seen.items == {stage.at(0): LogRange(0, RECORDS), stage.at(1): LogRange(0, 0)}
    assert {where: fault.code for where, fault in seen.errors.items()} == {gone: "UNKNOWN_TOPIC_OR_PART"}


def test_commit_of_a_topic_that_is_gone_is_a_fault_beside_its_neighbours(stage: Stage, unique: str) -> None:
    gone = TopicPartition(f"{unique}-none", 0)
    commit(stage, {unique: {stage.at(0): 1}})
    faults = stage.groups.commit({unique: {stage.at(0): 2, gone: 1}})[unique]
    assert faults[stage.at(0)] is None
    assert (fault := faults[gone]) is not None
    assert fault.code == "UNKNOWN_TOPIC_OR_PART"


def test_many_groups_are_one_call(stage: Stage, unique: str) -> None:
    wanted = {f"{unique}-{number}": {stage.at(0): number % RECORDS} for number in range(50)}
    commit(stage, wanted)
    assert stage.groups.committed(wanted.keys()).items == wanted


def test_nothing_asked_is_nothing_answered(stage: Stage) -> None:
    assert stage.groups.committed([]).items == {}
    assert stage.groups.members([]).items == {}
    assert stage.groups.ends([]).items == {}
    assert stage.groups.commit({}) == {}


def test_group_with_a_member_is_left_alone(stage: Stage, unique: str) -> None:
    commit(stage, {unique: {stage.at(0): 1}})
    with stage.joined(unique):
        assert stage.groups.members([unique]).items == {unique: 1}
        fault = stage.groups.commit({unique: {stage.at(0): 5}})[unique][stage.at(0)]
        assert fault is not None
        assert fault.code == "UNKNOWN_MEMBER_ID"
        assert stage.groups.committed([unique]).items == {unique: {stage.at(0): 1}}


@pytest.mark.kafka
@pytest.mark.parametrize("stage", ["kafka"], indirect=True)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_member_is_seen_whatever_the_protocol_of_its_group(stage: Stage, protocol: str) -> None:
    """`consumer` is that of KIP-848."""
    group = f"{stage.topic}-{protocol}"
    config = {"bootstrap.servers": stage.bootstrap, "group.id": group, "group.protocol": protocol}
    with closing(rd.Consumer(config)) as consumer:
        consumer.subscribe([stage.topic])

        def joined() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_for(joined, SOON, "the consumer to be given its partitions")
        assert stage.groups.members([group]).items == {group: 1}
        assert group in stage.groups.names()


@pytest.mark.kafka
@pytest.mark.parametrize("stage", ["kafka"], indirect=True)
def test_nothing_is_committed_for_a_group_of_another_type(stage: Stage, tmp_path: Path) -> None:
    """A share group (KIP-932): Java's client of Kafka 3.9 takes it for a group that is not there."""
    group = f"{stage.topic}-share"
    words = ["--bootstrap-server", stage.bootstrap, "--topic", stage.topic, "--group", group]
    main = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    consumer = JavaProcess(main, words, kafka_jars(), tmp_path / "share.log", QUICK_KAFKA)
    listed = AdminClient({"bootstrap.servers": stage.bootstrap})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            wait_for(lambda: listed.list_groups(group), SOON, "the share group to be there")
        fault = stage.groups.commit({group: {stage.at(0): 1}})[group][stage.at(0)]
        assert fault is not None
        assert not fault.unknown
        assert group not in stage.groups.names()
    finally:
        consumer.stop()


@pytest.mark.kafka
@pytest.mark.parametrize("stage", ["kafka"], indirect=True)
def test_offsets_of_many_groups_come_whatever_their_names_and_metadata(stage: Stage, unique: str) -> None:
    """With one that is not there, one whose name ends a line, one without any offset, and one with odd metadata."""
    many = {f"{unique}-{number:02d}": {stage.at(number % 2): number % 4} for number in range(40)}
    named = {f"{unique}, {{odd}}\nname": {stage.at(0): 2}}
    commit(stage, {**many, **named})
    odd, group = rd.TopicPartition(stage.topic, 1, 3, metadata="it's {odd}"), f"{unique}-07"
    with closing(rd.Consumer({"bootstrap.servers": stage.bootstrap, "group.id": group})) as consumer:
        consumer.commit(offsets=[odd], asynchronous=False)
    asked = [*many, *named, f"{unique}-none"]
    expected = {**many, **named, f"{unique}-none": {}, group: {stage.at(1): 3}}
    assert stage.groups.committed(asked).items == expected
    assert stage.groups.members(asked).items == dict.fromkeys(asked, 0)


def test_topic_that_is_recreated_has_another_id_and_one_that_is_gone_none(stage: Stage, unique: str) -> None:
    ids = stage.groups.topic_ids([stage.topic, f"{unique}-none"])
    assert list(ids) == [stage.topic]
    assert ids[stage.topic]
    stage.recreate()
    assert list(after := stage.groups.topic_ids([stage.topic])) == [stage.topic]
    assert after != ids


@pytest.fixture(params=["plain", "jvm"])
def watch(request: pytest.FixtureRequest, stage: Stage) -> GroupWatch:
    if request.param not in stage.watches:
        pytest.skip("groups in memory are nothing that a JVM could watch")
    return stage.watches[request.param]()


def test_watch_reports_every_group_at_first_and_then_each_commit_once(
    stage: Stage, watch: GroupWatch, unique: str
) -> None:
    one, two = f"{unique}-1", f"{unique}-2"
    commit(stage, {one: {stage.at(0): 1}, two: {stage.at(0): 1}})
    assert watch.changed([one, two]) == {one, two}
    assert watch.changed([one, two]) == set()
    commit(stage, {two: {stage.at(1): 0}})
    assert watch.changed([one, two]) == {two}
    assert watch.changed([two]) == set()
    assert watch.changed([one, two, f"{unique}-none"]) >= {one}


def test_watch_that_is_asked_for_some_of_its_groups_still_knows_the_others(
    stage: Stage, watch: GroupWatch, unique: str
) -> None:
    one, two = f"{unique}-1", f"{unique}-2"
    commit(stage, {one: {stage.at(0): 1}, two: {stage.at(0): 1}})
    watch.changed([one, two])
    commit(stage, {two: {stage.at(0): 2}})
    assert watch.changed([one, two], [one]) == set()
    assert watch.changed([one, two], [two]) == {two}
    assert watch.changed([one, two]) == set()


@pytest.mark.kafka
@pytest.mark.parametrize("stage", ["kafka"], indirect=True)
def test_commit_moves_the_end_of_the_partition_that_its_group_belongs_to(stage: Stage, unique: str) -> None:
    partitions = int(BROKER_BASE["offsets.topic.num.partitions"])
    commit(stage, {f"{unique}-0": {stage.at(0): 1}})
    ends = CommitEnds(stage.groups)
    for number in range(1, 4):
        ends.moved(partitions, 0.0)
        commit(stage, {f"{unique}-{number}": {stage.at(0): 1}})
        assert commit_partition(f"{unique}-{number}", partitions) in (ends.moved(partitions, 0.0) or ())
