"""Connections without a request: they end, and never keep others from being answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest

from app.http import api
from app.http.api import MAX_CONNECTIONS, Server
from app.local.waiting import wait_for
from tests.app.http.flows_shown import job_api

SHORT, LIMIT = 0.3, 10.0
"""Seconds until a head must be there in these tests, and until a test gives up."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(job_api(), "127.0.0.1", 0)
    server.start()
    wait_for(lambda: is_answered(server), LIMIT, "the server to answer")
    yield server
    server.stop()


def connected(server: Server) -> socket.socket:
    where = urlsplit(server.address)
    return socket.create_connection((where.hostname, where.port), timeout=LIMIT)


def is_answered(server: Server) -> bool:
    try:
        return httpx.get(f"{server.address}/status", trust_env=False, timeout=LIMIT).status_code == 200
    except httpx.TransportError:
        return False


def test_many_connections_that_say_nothing_keep_nobody_from_an_answer(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(2 * MAX_CONNECTIONS):
            stack.enter_context(connected(server))
        assert is_answered(server)


def test_many_requests_whose_bodies_do_not_come_keep_nobody_from_an_answer(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS + 5):
            stack.enter_context(connected(server)).sendall(head_of_body(server))
        assert [is_answered(server) for _ in range(3)] == [True] * 3
    assert not [record for record in caplog.records if record.exc_info]


def test_of_those_whose_bodies_do_not_come_the_oldest_makes_room(server: Server) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(server)) for _ in range(2)]
        for one in slow:
            one.sendall(head_of_body(server))
        for _ in range(MAX_CONNECTIONS - 2):
            stack.enter_context(connected(server))
        assert ended(slow[0])
        slow[1].sendall(b"{    ")
        assert slow[1].recv(12) == b"HTTP/1.1 400"


def head_of_body(server: Server) -> bytes:
    """The head of a request that has a body."""
    lines = ("POST /look HTTP/1.1", f"Host: {urlsplit(server.address).netloc}", "Content-Type: application/json")
    return "\r\n".join((*lines, "Content-Length: 5", "", "")).encode()


@pytest.mark.parametrize("said", [b"", b"GET /status HTTP/1.1\r\nHost: x", b"GET /status HTTP/1.1\r\n"])
def test_connection_whose_head_does_not_come_in_time_is_ended(
    server: Server, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(api, "HEAD_WITHIN", SHORT)
    with connected(server) as slow:
        slow.sendall(said)
        assert ended(slow)


def test_next_head_on_a_connection_must_come_in_time_as_well(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "HEAD_WITHIN", SHORT)
    request = f"GET /status HTTP/1.1\r\nHost: {urlsplit(server.address).netloc}\r\n\r\n".encode()
    with connected(server) as slow:
        for said in (request, request):
            slow.sendall(said)
            answer = b""
            while not answer.endswith(b"}"):
                answer += slow.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
        slow.sendall(b"GET")
        assert ended(slow)


def ended(slow: socket.socket) -> bool:
    try:
        return slow.recv(1) == b""
    except ConnectionResetError:
        return True
