"""What local brokers and MM2 are configured with, on which ports, and what waiting for them says."""

from __future__ import annotations

import socket
import threading

import pytest

from app.local.broker import Node, nodes, server_properties
from app.local.local_mirror import REPLICATED, mirror_properties
from app.local.ports import CANDIDATES, brokers_known_at, free_ports
from app.local.waiting import WaitedTooLong, wait_for

NODE = Node(id=1, plain=1001, sasl=1002, controller=1003)
OTHER = Node(id=2, plain=2001, sasl=2002, controller=2003)


def test_every_node_votes_and_has_listeners_of_its_own() -> None:
    properties = server_properties(OTHER, [NODE, OTHER], "/data")
    assert properties["node.id"] == "2"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:1003,2@127.0.0.1:2003"
    assert properties["listeners"] == ("PLAINTEXT://127.0.0.1:2001,SASL://127.0.0.1:2002,CONTROLLER://127.0.0.1:2003")
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:2001,SASL://127.0.0.1:2002"
    assert properties["log.dirs"] == "/data"


def test_free_ports_are_different_free_and_not_of_those_that_outgoing_connections_get() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert set(ports) <= set(CANDIDATES)
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_port_that_somebody_listens_on_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr("app.local.ports.CANDIDATES", range(port, port + 1))
        assert free_ports(1) == []


def test_nodes_share_no_port() -> None:
    ports = [port for node in nodes(3) for port in (node.plain, node.sasl, node.controller)]
    assert len(set(ports)) == 9


def test_a_port_where_nobody_listens_knows_no_broker() -> None:
    assert brokers_known_at(free_ports(1)[0]) == 0


@pytest.mark.parametrize("answer", [b"", b"\0\0\0\x08\0\0\0\x01"], ids=["nothing", "half"])
def test_a_connection_that_ends_within_the_answer_knows_no_broker(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert brokers_known_at(server.getsockname()[1]) == 0
        thread.join()


def test_mm2_over_single_brokers_replicates_its_own_topics_once() -> None:
    properties = mirror_properties({"a": "h:1", "b": "h:2"}, ["a->b"])
    assert properties["clusters"] == "a, b"
    assert properties["b.bootstrap.servers"] == "h:2"
    assert {properties[f"{name}.replication.factor"] for name in REPLICATED} == {"1"}


def test_only_the_flows_that_are_named_are_enabled_and_beat() -> None:
    properties = mirror_properties({"a": "h:1", "b": "h:2", "c": "h:3"}, ["a->b", "c->b"])
    enabled = {key for key, value in properties.items() if key.endswith("->b.enabled") and value == "true"}
    assert enabled == {"a->b.enabled", "c->b.enabled"}
    silent = {key for key, value in properties.items() if key.endswith("heartbeats.enabled") and value == "false"}
    assert silent == {f"{flow}.emit.heartbeats.enabled" for flow in ("b->a", "a->c", "c->a", "b->c")}


def test_overrides_hold_over_everything() -> None:
    overrides = {"replication.factor": "3", "b->a.emit.heartbeats.enabled": "true"}
    assert mirror_properties({"a": "h:1", "b": "h:2"}, ["a->b"], **overrides).items() >= overrides.items()


def test_waiting_returns_the_first_value_that_is_true() -> None:
    values = iter([None, 0, "here", "later"])
    assert wait_for(lambda: next(values), 5, "a value") == "here"


def test_waiting_in_vain_says_for_what_and_how_long() -> None:
    with pytest.raises(WaitedTooLong, match=r"gave up after 0\.1 s of waiting for the moon"):
        wait_for(lambda: False, 0.1, "the moon")
