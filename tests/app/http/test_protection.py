"""What is answered without a token is known by the path that is asked for, and by nothing else of the request."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson
import pytest

from app.http.api import Server
from app.http.protection import as_json
from app.local.waiting import wait_for
from sinks.printable import printable
from tests.app.http.flows_shown import job_api

LIMIT = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(job_api(), "127.0.0.1", 0, "a-token-of-many-characters")
    server.start()
    wait_for(lambda: status(server, "/health", "127.0.0.1") == 200, LIMIT, "the server to answer")
    yield server
    server.stop()


def status(server: Server, path: str, host: str) -> int:
    where = urlsplit(server.address)
    try:
        with socket.create_connection((where.hostname, where.port), timeout=LIMIT) as connected:
            connected.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return int(connected.makefile("rb").readline().split()[1])
    except (OSError, IndexError):
        return 0


@pytest.mark.parametrize("host", ["x/health?", "127.0.0.1/health?", "x/ready#", "127.0.0.1"])
@pytest.mark.parametrize("path", ["/status", "/api/v1/flows", "/metrics"])
def test_no_host_opens_what_wants_a_token(server: Server, path: str, host: str) -> None:
    assert status(server, path, host) in (401, 421)


@pytest.mark.parametrize("text", ["\x9b31m", "\u202egnp.exe", "\x1b]0;owned\x07", "a\u2066b", "\U000e0041"])
def test_no_text_in_an_answer_steers_a_terminal_and_whoever_parses_it_gets_the_text(text: str) -> None:
    body = bytes(as_json({"group": text}).body).decode()
    assert body == printable(body)
    assert orjson.loads(body) == {"group": text}
