"""The job's server as a client finds it, on a free port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import httpx
import orjson
import pytest

from app.http.api import MAX_BODY, MAX_WAITERS, Server
from app.local.waiting import wait_for
from app.reloading import FileStatus, Reloaded, Reloading
from tests.app.http.flows_shown import ScriptedPulse, job_api

TOKEN = "0123456789abcdef"


class Slow(Reloading):
    """Answers when it is let go."""

    file = FileStatus()

    def __init__(self) -> None:
        self.asked, self.go = threading.Semaphore(0), threading.Event()

    def ask(self, wait: float) -> Reloaded | None:
        self.asked.release()
        self.go.wait(wait)
        return Reloaded(())


@pytest.fixture
def slow() -> Iterator[Slow]:
    found = Slow()
    yield found
    found.go.set()


@pytest.fixture
def client(slow: Slow) -> Iterator[httpx.Client]:
    yield from served(slow, None)


@pytest.fixture
def closed(slow: Slow) -> Iterator[httpx.Client]:
    """Of a server that wants the token."""
    yield from served(slow, TOKEN)


def served(slow: Slow, token: str | None) -> Iterator[httpx.Client]:
    server = Server(job_api(reloading=slow), "127.0.0.1", 0, token)
    server.start()
    try:
        with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as found:
            yield found
    finally:
        slow.go.set()
        server.stop()


def test_every_answer_forbids_frames_foreign_scripts_and_caches(client: httpx.Client) -> None:
    for path in ("/", "/page/app.js", "/status", "/metrics", "/health", "/nothing"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} < set(policy)
        assert {"require-trusted-types-for 'script'", "trusted-types 'none'"} < set(policy)
        assert "unsafe" not in " ".join(policy)
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


def test_a_foreign_host_or_origin_is_refused(client: httpx.Client) -> None:
    assert client.post("/look", headers={"Host": "evil.example"}).status_code == 421
    assert client.post("/look", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/reload", headers={"Origin": "null"}).status_code == 403


def test_a_form_is_refused(client: httpx.Client) -> None:
    assert client.post("/look", data={"topics": "x"}).status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{",
        b'{"wait_seconds": -1}',
        b'{"wait_seconds": NaN}',
        b'{"wait_seconds": "nan"}',
        b'{"wait_seconds": 1e999}',
        b'{"wait_seconds": true}',
        b'{"topics": "orders"}',
        b'{"topics": [1]}',
        b'{"flows": ["a"]}',
    ],
)
def test_a_body_that_makes_no_sense_is_refused_with_the_reason(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/look", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "the body is wrong" in answer.json()["error"]


def test_a_body_beyond_the_limit_is_refused_whether_its_length_was_said_or_not(client: httpx.Client) -> None:
    content = orjson.dumps({"topics": ["x" * MAX_BODY]})
    headers = {"Content-Type": "application/json"}
    for path in ("/look", "/reload"):
        assert client.post(path, content=content, headers=headers).status_code == 413
        assert client.post(path, content=iter([content]), headers=headers).status_code == 413


def test_one_waiter_too_many_is_told_to_come_again_and_the_others_get_their_answer(
    client: httpx.Client, slow: Slow
) -> None:
    answers: list[int] = []

    def ask() -> None:
        answers.append(httpx.post(f"{client.base_url}/reload", timeout=60, trust_env=False).status_code)

    asking = [threading.Thread(target=ask) for _ in range(MAX_WAITERS)]
    for thread in asking:
        thread.start()
    wait_for(lambda: sum(slow.asked.acquire(timeout=60) for _ in asking) == MAX_WAITERS, 120, "all to wait")
    refused = client.post("/reload")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert client.get("/status").is_success
    slow.go.set()
    for thread in asking:
        thread.join(60)
    assert answers == [200] * MAX_WAITERS
    assert client.post("/reload").is_success


def test_a_token_is_needed_for_everything_metrics_and_page_too(closed: httpx.Client) -> None:
    for path in ("/", "/status", "/metrics"):
        assert closed.get(path).status_code == 401
        # Chromium asks a person for a password only where Basic has a header of its own.
        assert [one.split()[0] for one in closed.get(path).headers.get_list("www-authenticate")] == ["Bearer", "Basic"]
        assert closed.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).is_success
        assert closed.get(path, auth=("anybody", TOKEN)).is_success
    assert closed.post("/look", json={}).status_code == 401
    assert closed.post("/look", json={}, headers={"Authorization": f"Bearer {TOKEN}"}).is_success


def test_a_server_on_ipv6_is_reached_at_its_address(slow: Slow) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    server = Server(job_api(reloading=slow), "::1", 0)
    server.start()
    try:
        assert server.address.startswith("http://[::1]:")
        assert httpx.get(f"{server.address}/status", trust_env=False).is_success
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("pulse", "health", "ready"),
    [
        (ScriptedPulse(), 200, 200),
        (ScriptedPulse(alive=False), 503, 200),
        (ScriptedPulse(streaming=False), 200, 503),
        (ScriptedPulse(checking=False), 200, 200),
    ],
)
def test_a_main_loop_that_hangs_is_unhealthy_and_a_query_that_hangs_is_not_ready(
    pulse: ScriptedPulse, health: int, ready: int
) -> None:
    server = Server(job_api(pulse=pulse), "127.0.0.1", 0)
    server.start()
    try:
        with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as client:
            found = client.get("/health")
            assert (found.status_code, client.get("/ready").status_code) == (health, ready)
            assert found.json()["preflights"] == ("up" if pulse.checking else "hang")
    finally:
        server.stop()
