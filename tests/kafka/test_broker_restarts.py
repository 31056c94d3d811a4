"""Brokers that go down without notice and come back: the clients, and the commands, find their way by themselves.

LOCKSTEP_RESTARTS: how often, 2 by default.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from app.cli.output import DONE, STALE
from app.local.jars import PROJECT
from app.local.java_gateway import process_jvm
from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.faults import ClusterUnreachable, CoordinatorUnavailable
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Span, Why
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.kafka.staging import client_of, create, write_properties
from tests.quick_java import QUICK_KAFKA

ROUNDS = int(os.environ.get("LOCKSTEP_RESTARTS", "2"))
AGAIN = 180.0
"""Seconds from when the brokers serve again until every request is answered again."""

SOON = 180.0
SHORT = {"default.api.timeout.ms": "5000"}
"""So that requests time out while the brokers are away, and not because the machine is busy."""

TOPIC, GROUP = "restarted", "restart-group"
AWAY = 60.0
"""Seconds."""

MOST_OF_A_CORE = 0.05
HERE = TopicPartition(TOPIC, 0)

REPLICATED = dict.fromkeys(("offsets.topic.replication.factor", "transaction.state.log.replication.factor"), "3")


ONE = [pytest.param(1, id="one node")]
THREE = [pytest.param(3, id="three nodes", marks=pytest.mark.endurance)]


@dataclass(frozen=True)
class Stage:
    """A cluster whose brokers are killed, and a client of it that outlives all of that."""

    local: LocalCluster
    client: KafkaCluster

    @property
    def requests(self) -> Mapping[str, Callable[[], object]]:
        """Something of each kind that a job asks for. Each raises while it is not answered."""
        groups = self.client.groups
        return {
            "topics": lambda: self.client.list_topics()[TOPIC],
            "configs": lambda: self.client.describe_topic_configs([TOPIC]).items[TOPIC],
            "groups": groups.names,
            "members": lambda: groups.members([GROUP]).items[GROUP],
            "commit": self.commit,
            "offsets": lambda: groups.committed([GROUP]).items[GROUP][HERE],
            "log": lambda: self.client.append_log(TOPIC, [(b"key", b"value")]),
            "records": self.read,
        }

    def commit(self) -> None:
        fault = self.client.groups.commit({GROUP: {HERE: 0}})[GROUP][HERE]
        if fault is not None:
            raise KeyError(str(fault))

    def read(self) -> None:
        with closing(self.client.records()) as records:
            span = Span(HERE, 0, None, 1, lambda record: True)
            if records.scan([span], 2.0)[span].why not in (Why.TAKEN, Why.END):
                raise KeyError(TOPIC)

    def unanswered(self) -> str | None:
        """The first of them that is not answered now."""
        for name, request in self.requests.items():
            try:
                request()
            except (ClusterUnreachable, KeyError):
                return name
        return None


@pytest.fixture(scope="module", params=ONE + THREE)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    nodes: int = request.param
    folder = tmp_path_factory.mktemp("restarted")
    overrides = REPLICATED if nodes == 3 else {}
    with (
        LocalCluster("c", folder, nodes, java_options=QUICK_KAFKA, overrides=overrides) as local,
        closing(open_cluster("c", local.client_properties() | SHORT)) as client,
    ):
        with client_of(local) as patient:
            assert patient.create_topics({TOPIC: TopicSpec(1, nodes)}) == {TOPIC: None}
        stage = Stage(local, client)
        wait_for(lambda: not stage.unanswered(), SOON, "every request to be answered")
        yield stage


def test_every_request_is_answered_again_after_each_crash_of_all_brokers(stage: Stage) -> None:
    for number in range(ROUNDS):
        stage.local.kill()
        with pytest.raises(CoordinatorUnavailable):
            stage.client.groups.committed([GROUP])
        assert stage.unanswered()
        stage.local.start()
        wait_for(lambda: not stage.unanswered(), AGAIN, f"every request to be answered after crash {number + 1}")


@contextmanager
def asked_meanwhile(stage: Stage) -> Iterator[None]:
    """Three threads ask again and again until the block ends. What they raise is a silent cluster, or fails."""
    ended = threading.Event()
    wrong: list[BaseException] = []

    def ask() -> None:
        while not ended.is_set():
            try:
                with suppress(ClusterUnreachable):
                    stage.client.list_topics()
                    stage.client.groups.committed([GROUP])
            except BaseException as error:
                wrong.append(error)
                raise

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(SOON)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


@pytest.mark.parametrize("stage", ONE, indirect=True)
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.endurance)])
def test_a_request_that_is_under_way_in_another_thread_outlives_crashes(stage: Stage, times: int) -> None:
    with asked_meanwhile(stage):
        for number in range(times):
            stage.local.kill()
            assert stage.unanswered()
            stage.local.start()
            wait_for(lambda: not stage.unanswered(), AGAIN, f"every request to be answered after crash {number + 1}")


@pytest.mark.parametrize("stage", THREE, indirect=True)
def test_a_coordinator_that_moves_while_groups_are_asked_for_stops_nothing(stage: Stage) -> None:
    """Its former broker answers NOT_COORDINATOR: no connection breaks."""
    stage.commit()
    with asked_meanwhile(stage):
        for turn in range(6):
            to = turn % 3 + 1
            move_coordinators(stage.client, [to, *(node for node in (1, 2, 3) if node != to)])
            wait_for(lambda wanted=to: coordinator(stage.client) == wanted, AGAIN, f"broker {to} to coordinate")
            wait_for(lambda: not stage.unanswered(), AGAIN, "every request to be answered")


def move_coordinators(client: KafkaCluster, replicas: list[int]) -> None:
    """Makes the first of them the leader of all partitions of the topic of groups' offsets."""
    jvm, admin = client.admin.jvm, client.admin.client
    kafka, java = jvm.org.apache.kafka, jvm.java.util
    found = client.find_topic("__consumer_offsets")
    assert found is not None
    partitions, moved = java.HashSet(), java.HashMap()
    for number in range(found.partitions):
        one = kafka.common.TopicPartition("__consumer_offsets", number)
        partitions.add(one)
        listed = java.ArrayList()
        for node in replicas:
            listed.add(node)
        moved.put(one, java.Optional.of(kafka.clients.admin.NewPartitionReassignment(listed)))
    admin.alterPartitionReassignments(moved).all().get()
    wait_for(
        lambda: admin.listPartitionReassignments().reassignments().get().isEmpty(), SOON, "the partitions to have moved"
    )
    admin.electLeaders(kafka.common.ElectionType.PREFERRED, partitions).partitions().get()


def coordinator(client: KafkaCluster) -> int:
    """The id of the broker that coordinates the group."""
    described = client.admin.client.describeConsumerGroups(client.admin.rows.texts([GROUP])).all().get()
    return int(described.get(GROUP).coordinator().id())


@pytest.mark.endurance
@pytest.mark.parametrize("stage", ONE, indirect=True)
def test_ten_thousand_groups_are_listed_described_and_read_within_the_deadlines(stage: Stage) -> None:
    names = [f"many-{number:05}" for number in range(10_000)]
    with closing(open_cluster("c", stage.local.client_properties())) as cluster:
        faults = cluster.groups.commit({name: {HERE: 0} for name in names})
        assert [fault for of_group in faults.values() for fault in of_group.values() if fault is not None] == []
        assert cluster.groups.names() >= {*names}
        members, committed = cluster.groups.members(names), cluster.groups.committed(names)
        assert (dict(members.items), dict(members.errors)) == (dict.fromkeys(names, 0), {})
        assert (dict(committed.items), dict(committed.errors)) == ({name: {HERE: 0} for name in names}, {})


@pytest.mark.parametrize("stage", THREE, indirect=True)
def test_a_crash_of_one_broker_of_three_stops_nothing_for_long(stage: Stage) -> None:
    for number in range(1, 4):
        os.kill(stage.local.pids[number - 1], signal.SIGKILL)
        wait_for(lambda: not stage.unanswered(), AGAIN, f"every request to be answered without broker {number}")
        stage.local.start_node(number)
        wait_for(lambda: not stage.unanswered(), AGAIN, f"every request to be answered with broker {number}")


@pytest.mark.parametrize("stage", THREE, indirect=True)
def test_a_leader_that_is_away_for_a_minute_costs_next_to_nothing(stage: Stage) -> None:
    """Its partition's end is asked for again and again meanwhile."""
    alone = [TopicPartition("alone", number) for number in range(3)]
    assert stage.client.create_topics({"alone": TopicSpec(3, 1)}) == {"alone": None}
    groups = stage.client.groups
    wait_for(lambda: groups.latest(alone).items.keys() == {*alone}, SOON, "each partition to have a leader")
    os.kill(stage.local.pids[0], signal.SIGKILL)
    wait_for(lambda: len(groups.latest(alone).errors) == 1, SOON, "one partition to have none")
    processes = [psutil.Process(), psutil.Process(process_jvm().jvm.java.lang.ProcessHandle.current().pid())]
    began, used = time.monotonic(), sum(sum(one.cpu_times()[:2]) for one in processes)
    while time.monotonic() < began + AWAY:
        assert len(groups.latest(alone).items) == 2
        # As often as a job asks; not a wait for something.
        time.sleep(1.0)
    used = sum(sum(one.cpu_times()[:2]) for one in processes) - used
    stage.local.start_node(1)
    wait_for(lambda: not stage.unanswered(), AGAIN, "every request to be answered with that broker")
    assert used / (time.monotonic() - began) < MOST_OF_A_CORE


@pytest.mark.parametrize("stage", ONE, indirect=True)
def test_no_end_of_a_log_is_made_up_while_its_broker_is_away_and_the_true_one_comes_without_another_request(
    stage: Stage,
) -> None:
    ended = TopicPartition("ended", 0)
    with closing(open_cluster("c", stage.local.client_properties() | SHORT)) as cluster:

        def ends() -> Mapping[TopicPartition, LogRange]:
            try:
                return cluster.groups.ends([ended]).items
            except ClusterUnreachable:
                return {}

        with client_of(stage.local) as patient:
            create(patient, ended.topic, 1, {})
            patient.append_log(ended.topic, [(b"key", b"value")] * 7)
        wait_for(lambda: ends() == {ended: LogRange(0, 7)}, AGAIN, "the log's end before the crash")
        stage.local.kill()
        assert not ends()
        stage.local.start()
        wait_for(lambda: ends() == {ended: LogRange(0, 7)}, AGAIN, "the log's end")


@pytest.mark.parametrize("stage", ONE, indirect=True)
@pytest.mark.parametrize(("command", "well"), [("plan", DONE), ("status", STALE)])
def test_a_command_says_that_the_target_is_away_and_works_when_it_is_back(
    stage: Stage, clusters: Clusters, tmp_path: Path, command: str, well: int
) -> None:
    keys = {"sync.group.offsets.enabled": "true", "admin.timeout.ms": "5000"}
    config = write_properties(tmp_path, clusters.a, stage.local, "no-such-topic", **keys)
    wait_for(lambda: run(command, config).returncode == well, AGAIN, f"{command} to work")
    stage.local.kill()
    away = run(command, config)
    assert away.returncode == 1
    assert "cluster b: " in away.stdout + away.stderr
    assert "Traceback" not in away.stderr
    stage.local.start()
    wait_for(lambda: run(command, config).returncode == well, AGAIN, f"{command} to work again")


def run(command: str, config: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "app.main", command, "--config", str(config), "-o", "json"]
    return subprocess.run(words, cwd=PROJECT, check=False, capture_output=True, text=True, timeout=900)
