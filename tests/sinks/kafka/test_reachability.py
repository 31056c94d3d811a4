"""A cluster that refuses connections is given up soon, one that takes its time is waited for."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from app.local.ports import free_ports
from app.wiring import open_cluster
from sinks.faults import ClusterUnreachable
from sinks.kafka.reachability import CHECK_EVERY, JUST_NOW, REFUSED_FOR, Reachability, addresses, trouble
from tests.sinks.builders import Clock

AT_ONCE = REFUSED_FOR
"""Seconds for a cluster that was just given up: less than the first wait."""


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def refusing() -> str:
    return f"127.0.0.1:{free_ports(1)[0]}"


class Waited(Clock):
    """Time passes in each sleep."""

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_cluster_whose_addresses_all_refuse_is_given_up_once_they_did_for_a_while() -> None:
    clock = Waited()
    cluster, begun = Reachability("a", f"{refusing()},{refusing()}", clock, clock.sleep), clock.now
    with pytest.raises(ClusterUnreachable, match=r"refuses connections.*is a\.bootstrap\.servers right") as raised:
        cluster.check()
    assert clock.now - begun == pytest.approx(REFUSED_FOR, abs=CHECK_EVERY)
    assert raised.value.code == "CLUSTER_UNREACHABLE"


def test_a_broker_that_restarts_meanwhile_is_not_given_up() -> None:
    (port,) = free_ports(1)
    clock, servers = Waited(), list[socket.socket]()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if not servers:
            servers.append(socket.create_server(("127.0.0.1", port)))

    Reachability("a", f"127.0.0.1:{port}", clock, sleep).check()
    servers[0].close()


def test_a_request_of_less_time_is_not_preceded_by_more() -> None:
    clock = Waited()
    cluster, begun = Reachability("a", refusing(), clock, clock.sleep), clock.now
    with pytest.raises(ClusterUnreachable):
        cluster.check(1.0)
    assert clock.now - begun == pytest.approx(1.0, abs=CHECK_EVERY)


def test_what_refused_once_is_given_up_at_once_the_next_time() -> None:
    clock = Waited()
    cluster = Reachability("a", refusing(), clock, clock.sleep)
    with pytest.raises(ClusterUnreachable):
        cluster.check()
    begun = clock.now
    with pytest.raises(ClusterUnreachable, match="refuses connections"):
        cluster.check()
    assert clock.now == begun


def test_what_waited_its_whole_time_is_not_waited_for_again_right_afterwards(listening: str) -> None:
    clock = Waited()
    cluster = Reachability("a", listening, clock, clock.sleep)
    cluster.gave_up("cluster a: no answer")
    with pytest.raises(ClusterUnreachable, match="cluster a: no answer"):
        cluster.check()
    clock.now += JUST_NOW
    cluster.check()


def test_one_address_that_listens_is_enough(listening: str) -> None:
    assert trouble(f"{refusing()},{listening}") is None
    Reachability("a", f"{refusing()},{listening}").check()


def test_a_cluster_that_answered_is_asked_without_a_look() -> None:
    cluster = Reachability("a", refusing())
    cluster.answered()
    cluster.check()


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


def test_an_address_instead_of_an_alias_is_called_one() -> None:
    address = refusing()
    with pytest.raises(ClusterUnreachable, match="is this address right, and the cluster up"):
        Reachability(address, address).check(0.0)


def test_a_request_to_a_cluster_that_refuses_says_so_soon() -> None:
    cluster = open_cluster("a", {"bootstrap.servers": refusing(), "default.api.timeout.ms": "1000"})
    began = time.monotonic()
    with pytest.raises(ClusterUnreachable, match=r"^cluster a: 127\.0\.0\.1:\d+: refuses connections; is a\.bootstrap"):
        cluster.cluster_id()
    assert time.monotonic() - began < AT_ONCE


def test_an_address_that_is_a_broker_and_in_the_file_is_tried_and_named_once() -> None:
    assert addresses("h:9092, i:9092,h:9092") == [("h", 9092), ("i", 9092)]
