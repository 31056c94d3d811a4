"""One suite for every watch: it reports each difference once, and what it cannot see as changed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.wiring import admin_of, open_cluster
from sinks.faults import ClusterUnreachable
from sinks.kafka.jvm.jvm_watches import JvmWatch
from sinks.kafka.ports.cluster import Cluster, TopicSpec
from sinks.kafka.ports.watches import Watch
from tests.memory.memory_cluster import MemoryCluster, PlainWatch

SOON = 180.0


@dataclass(frozen=True)
class Watched:
    """A cluster and a watch on it."""

    cluster: Cluster
    watch: Watch


def jvm_watch(bootstrap: str, **more: str) -> JvmWatch:
    """A watch on a real cluster."""
    return JvmWatch(admin_of("b", {"bootstrap.servers": bootstrap, **more}))


REAL = pytest.mark.kafka


@pytest.fixture(
    params=["memory", pytest.param("plain", marks=pytest.mark.kafka), pytest.param("jvm", marks=REAL)],
)
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    if request.param == "memory":
        cluster = MemoryCluster("b")
        yield Watched(cluster, PlainWatch(cluster))
        return
    bootstrap = request.getfixturevalue("clusters").b.bootstrap
    kafka = open_cluster("b", {"bootstrap.servers": bootstrap})
    watch = PlainWatch(kafka) if request.param == "plain" else jvm_watch(bootstrap)
    yield Watched(kafka, watch)
    kafka.close()


def overrides(cluster: Cluster, topic: str) -> dict[str, str | None] | None:
    """What is set on the topic itself; None while it is not there."""
    seen = cluster.describe_topic_configs([topic]).items.get(topic)
    return None if seen is None else {name: entry.value for name, entry in seen.items() if entry.is_override}


def shows(cluster: Cluster, topic: str, wanted: dict[str, str | None] | None) -> None:
    """Waits until exactly these are set on the topic, or it is gone."""
    wait_for(lambda: overrides(cluster, topic) == wanted, SOON, f"{topic} to have {wanted}")


def make(cluster: Cluster, *topics: str) -> None:
    """Topics without overrides."""
    assert cluster.create_topics(dict.fromkeys(topics, TopicSpec(1, 1))) == dict.fromkeys(topics)
    for topic in topics:
        shows(cluster, topic, {})


def set_config(cluster: Cluster, topic: str, name: str, value: str | None) -> None:
    """Sets a config, or deletes it, and waits until it shows."""
    wanted = {**(overrides(cluster, topic) or {}), name: value}
    assert cluster.alter_topic_configs({topic: {name: value}}) == {topic: None}
    shows(cluster, topic, {key: text for key, text in wanted.items() if text is not None})


def remove(cluster: Cluster, topic: str) -> None:
    """Deletes a topic, and waits until it is gone."""
    assert cluster.delete_topics([topic]) == {topic: None}
    shows(cluster, topic, None)


def test_first_look_reports_everything_and_the_second_nothing(watched: Watched, unique: str) -> None:
    topics = [f"{unique}-{number}" for number in range(5)]
    make(watched.cluster, *topics)
    assert watched.watch.changed([topics[:3], topics[3:]]) == set(topics)
    assert watched.watch.changed([topics[:3], topics[3:]]) == set()
    assert watched.watch.changed([topics]) == set()


def test_change_is_reported_once_and_by_itself(watched: Watched, unique: str) -> None:
    x, y = f"{unique}-x", f"{unique}-y"
    make(watched.cluster, x, y)
    watched.watch.changed([[x, y]])
    for value in ("1000", "2000", None):
        set_config(watched.cluster, x, "retention.ms", value)
        assert watched.watch.changed([[x, y]]) == {x}
        assert watched.watch.changed([[x, y]]) == set()


def test_topic_that_is_not_looked_at_is_not_reported_until_it_is(watched: Watched, unique: str) -> None:
    x, y = f"{unique}-x", f"{unique}-y"
    make(watched.cluster, x, y)
    watched.watch.changed([[x], [y]])
    set_config(watched.cluster, x, "retention.ms", "1000")
    assert watched.watch.changed([[y]]) == set()
    assert watched.watch.changed([[x]]) == {x}


def test_list_from_which_topics_come_and_go_is_looked_at_as_it_is_now(watched: Watched, unique: str) -> None:
    topics = [f"{unique}-{number}" for number in range(6)]
    make(watched.cluster, *topics)
    for size in (1, 2, 3, 4, 5):
        assert watched.watch.changed([topics[:size]]) == {topics[size - 1]}
    for shown in (topics[:5], topics[1:5], [topics[5], *topics[2:5]], topics[3:]):
        watched.watch.forget(topics)
        assert watched.watch.changed([shown, topics[:2]]) == {*shown, *topics[:2]}


def test_topic_in_two_shards_of_one_look_is_reported(watched: Watched, unique: str) -> None:
    make(watched.cluster, unique)
    assert watched.watch.changed([[unique], [unique]]) == {unique}
    assert watched.watch.changed([[unique], [unique]]) == set()


def test_topic_that_cannot_be_seen_counts_as_changed_and_hides_no_other(watched: Watched, unique: str) -> None:
    x, y, gone = f"{unique}-x", f"{unique}-y", f"{unique}-gone"
    make(watched.cluster, x, y)
    watched.watch.changed([[x, y]])
    assert watched.watch.changed([[x, gone, y]]) == {gone}
    set_config(watched.cluster, y, "retention.ms", "1000")
    assert watched.watch.changed([[x, gone, y]]) == {gone, y}
    assert watched.watch.changed([[x, gone, y]]) == {gone}


def test_forgotten_topic_is_reported_again(watched: Watched, unique: str) -> None:
    x, y = f"{unique}-x", f"{unique}-y"
    make(watched.cluster, x, y)
    watched.watch.changed([[x, y]])
    watched.watch.forget([x, f"{unique}-never-seen"])
    assert watched.watch.changed([[y]]) == set()
    assert watched.watch.changed([[x, y]]) == {x}
    assert watched.watch.changed([[x, y]]) == set()


@pytest.mark.parametrize("shards", [[], [[]], [[], []]])
def test_looking_at_nothing_reports_nothing(watched: Watched, shards: Sequence[Sequence[str]]) -> None:
    assert watched.watch.changed(shards) == set()


@pytest.mark.kafka
@pytest.mark.spark
def test_unreachable_cluster_is_said_to_be_so(request: pytest.FixtureRequest) -> None:
    (port,) = free_ports(1)
    watch = jvm_watch(f"127.0.0.1:{port}", **{"default.api.timeout.ms": "1500"})
    with pytest.raises(ClusterUnreachable, match=r"^cluster b: .*refuses connections"):
        watch.changed([["t"]])


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["set", "set", "set", "remove", "forget", "look"]), st.integers(0, 2), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)
NAMES = itertools.count()


def act(cluster: Cluster, watches: Sequence[Watch], topic: str, action: str, number: int) -> None:
    """One change of one topic, which the next poll sees."""
    there = overrides(cluster, topic) is not None
    if action == "forget":
        for watch in watches:
            watch.forget([topic])
    elif action == "remove" and there:
        remove(cluster, topic)
    elif action == "set" and not there:
        make(cluster, topic)
    elif action == "set":
        set_config(cluster, topic, "retention.ms", (None, "1000", "2000")[number])


@pytest.mark.kafka
@pytest.mark.spark
def test_both_watches_agree_on_any_sequence_of_changes(request: pytest.FixtureRequest, unique: str) -> None:
    bootstrap = request.getfixturevalue("clusters").b.bootstrap
    cluster = open_cluster("b", {"bootstrap.servers": bootstrap})
    new_watches: Callable[[], list[Watch]] = lambda: [PlainWatch(cluster), jvm_watch(bootstrap)]  # noqa: E731 - one line says it

    @given(ACTIONS)
    @settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def agree(actions: list[tuple[str, int, int]]) -> None:
        run = next(NAMES)
        topics = [f"{unique}-{run}-{number}" for number in range(3)]
        watches = new_watches()
        make(cluster, *topics[:2])
        for action, place, number in actions:
            act(cluster, watches, topics[place], action, number)
            plain, fast = (watch.changed([topics[:1], topics[1:]]) for watch in watches)
            assert plain == fast

    agree()
    cluster.close()
