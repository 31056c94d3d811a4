"""A cluster that refuses connections is given up soon, one that takes its time is waited for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from app.local.ports import free_ports
from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.librdkafka.reachability import (
    JUST_NOW,
    REFUSED_FOR,
    Reachability,
    addresses,
    check_reachable,
    reachability,
    trouble,
)
from tests.sinks.builders import Clock

SOON = REFUSED_FOR + 8
"""Seconds that a refused connection may cost on a busy machine."""
AT_ONCE = REFUSED_FOR
"""Seconds within which nobody asks as long as before a cluster is given up."""


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def refusing() -> str:
    return f"127.0.0.1:{free_ports(1)[0]}"


def never() -> None:
    threading.Event().wait()


def test_a_cluster_whose_addresses_all_refuse_is_given_up_soon() -> None:
    cluster, begun = Reachability("a", f"{refusing()},{refusing()}"), time.monotonic()
    with pytest.raises(ClusterUnreachable, match=r"refuses connections.*is a\.bootstrap\.servers right") as raised:
        cluster.answer(never)
    assert REFUSED_FOR < time.monotonic() - begun < SOON
    assert raised.value.code == "CLUSTER_UNREACHABLE"


def test_what_refused_once_is_given_up_at_once_the_next_time() -> None:
    cluster = Reachability("a", refusing())
    with pytest.raises(ClusterUnreachable):
        cluster.answer(never)
    begun = time.monotonic()
    with pytest.raises(ClusterUnreachable):
        cluster.answer(never)
    assert time.monotonic() - begun < AT_ONCE


def test_while_one_cluster_refuses_it_is_found_out_whether_the_others_do() -> None:
    first, second = (reachability(alias, {"bootstrap.servers": refusing()}) for alias in ("a", "b"))
    with pytest.raises(ClusterUnreachable):
        first.answer(never)
    begun = time.monotonic()
    with pytest.raises(ClusterUnreachable, match=r"cluster b: .*refuses connections"):
        second.answer(never)
    assert time.monotonic() - begun < AT_ONCE


def test_a_cluster_that_answers_is_asked_as_ever_while_another_refuses(listening: str) -> None:
    down, up = reachability("a", {"bootstrap.servers": refusing()}), reachability("b", {"bootstrap.servers": listening})
    with pytest.raises(ClusterUnreachable):
        down.answer(never)
    assert up.answer(lambda: 1) == 1


def test_what_waited_its_whole_time_is_not_waited_for_again_right_afterwards(listening: str) -> None:
    clock = Clock()
    cluster = Reachability("a", listening, clock)
    cluster.gave_up("cluster a: no answer")
    with pytest.raises(ClusterUnreachable, match="cluster a: no answer"):
        cluster.answer(lambda: 1)
    clock.now += JUST_NOW
    assert cluster.answer(lambda: 1) == 1


def test_an_answer_that_takes_its_time_is_waited_for_where_one_address_listens(listening: str) -> None:
    slow = threading.Event()
    threading.Timer(REFUSED_FOR + 2, slow.set).start()
    assert Reachability("a", f"{refusing()},{listening}").answer(lambda: slow.wait(20)) is True


def test_a_cluster_that_refuses_the_login_is_given_up_soon(listening: str) -> None:
    begun = time.monotonic()
    with pytest.raises(RightsMissing, match="wrong password"):
        Reachability("a", listening).answer(never, lambda: RightsMissing("wrong password"))
    assert REFUSED_FOR < time.monotonic() - begun < SOON


def test_a_login_that_is_refused_for_a_moment_is_waited_for(listening: str) -> None:
    refusals, slow = iter([RightsMissing("a broker that starts"), None]), threading.Event()
    threading.Timer(REFUSED_FOR + 2, slow.set).start()
    assert Reachability("a", listening).answer(lambda: slow.wait(20), lambda: next(refusals, None)) is True


def test_what_a_request_raises_is_raised(listening: str) -> None:
    def denied() -> None:
        raise RightsMissing("no")

    with pytest.raises(RightsMissing):
        Reachability("a", listening).answer(denied)


def test_a_cluster_that_is_back_is_asked_again(listening: str) -> None:
    cluster = Reachability("a", listening)
    with pytest.raises(RightsMissing):
        cluster.answer(lambda: (_ for _ in ()).throw(RightsMissing("no")))
    assert cluster.answer(lambda: 1) == 1


@pytest.mark.parametrize(
    ("servers", "found"),
    [
        ("h:1, i:2", [("h", 1), ("i", 2)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("SASL_SSL://h:1", [("h", 1)]),
        ("h", []),
        ("", []),
    ],
)
def test_addresses_are_read_as_clients_read_them(servers: str, found: list[tuple[str, int]]) -> None:
    assert addresses(servers) == found


def test_one_address_that_listens_is_enough(listening: str) -> None:
    assert trouble(f"{refusing()},{listening}", 1) is None
    check_reachable("a", {"bootstrap.servers": listening})


def test_an_address_instead_of_an_alias_is_called_one() -> None:
    address = refusing()
    with pytest.raises(ClusterUnreachable, match="is this address right, and the cluster up"):
        check_reachable(address, {"bootstrap.servers": address})


def test_a_request_that_gives_up_before_says_as_plainly_that_connections_are_refused() -> None:
    cluster = KafkaCluster("a", {"bootstrap.servers": refusing(), "default.api.timeout.ms": "1000"})
    with pytest.raises(ClusterUnreachable, match=r"^cluster a: 127\.0\.0\.1:\d+: refuses connections; is a\.bootstrap"):
        cluster.cluster_id()
