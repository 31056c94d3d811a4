"""The webhook posts signed JSON to a real server, tries again what may pass, and keeps its secrets."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from sinks.notify.announcements import Announcements
from sinks.notify.webhook import WEBHOOK_SECRET_NAME, WEBHOOK_URL_NAME, WebhookFailed, WebhookListener
from sinks.plugins.listeners import DefaultGroupListener
from streaming.errors import LockstepError
from streaming.flow import Flow
from tests.http_servers import AnsweringServer, answering_server

DOCS = Path(__file__).resolve().parents[3] / "docs" / "listeners.md"
KEY = "correct horse battery staple"
NOON = 1709208000.0


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with answering_server("/hooks/t0ps3cr3t?key=t0ps3cr3t") as listening:
        yield listening


def properties(url: str) -> dict[str, str]:
    return {WEBHOOK_URL_NAME: url, WEBHOOK_SECRET_NAME: KEY, "source.cluster.alias": "a", "target.cluster.alias": "b"}


def webhook(url: str, first_wait: float = 0.01) -> WebhookListener:
    listener = WebhookListener(clock=lambda: NOON, first_wait=first_wait)
    listener.configure(properties(url))
    return listener


def test_topics_are_posted_with_both_of_their_names(server: AnsweringServer) -> None:
    webhook(server.address).topics_changed({"users": "a.users", "orders": "a.orders"})
    ((_, path, headers, body),) = server.requests
    assert path == "/hooks/t0ps3cr3t?key=t0ps3cr3t"
    assert headers["Content-Type"] == "application/json"
    assert orjson.loads(body) == {
        "source": "a",
        "target": "b",
        "timestamp": 1709208000000,
        "topics": [{"upstream": "orders", "remote": "a.orders"}, {"upstream": "users", "remote": "a.users"}],
    }


def test_groups_are_posted_sorted(server: AnsweringServer) -> None:
    webhook(server.address).groups_changed(frozenset({"billing", "audit"}))
    assert orjson.loads(server.requests[0][3])["groups"] == ["audit", "billing"]


def test_the_signature_is_the_hmac_of_the_body_and_the_timestamp_is_in_both(server: AnsweringServer) -> None:
    webhook(server.address).topics_changed({"orders": "a.orders"})
    ((_, _, headers, body),) = server.requests
    expected = hmac.digest(KEY.encode(), body, hashlib.sha256).hex()
    assert hmac.compare_digest(headers["X-Lockstep-Signature"], f"sha256={expected}")
    assert headers["X-Lockstep-Timestamp"] == "1709208000000" == str(orjson.loads(body)["timestamp"])


def test_the_documented_check_takes_what_is_ours_and_refuses_what_is_changed_old_or_signed_otherwise(
    server: AnsweringServer,
) -> None:
    example = re.search(r"```python\n(import hashlib.*?)```", DOCS.read_text(), re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {}
    exec(example[1], names)
    check = names["body_from_lockstep"]
    listener = WebhookListener()
    listener.configure(properties(server.address))
    listener.groups_changed(frozenset({"billing"}))
    ((_, _, headers, body),) = server.requests
    signature = headers["X-Lockstep-Signature"]
    assert check(body, signature, KEY.encode())["groups"] == ["billing"]
    for wrong in (
        (body.replace(b"billing", b"killing"), signature, KEY.encode()),
        (body, signature, b"guessed"),
        (body, "sha256=ü", KEY.encode()),
        (body, signature, KEY.encode(), -1),
    ):
        with pytest.raises(PermissionError):
            check(*wrong)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again_with_the_same_body(server: AnsweringServer, status: int) -> None:
    server.statuses = [status, status]
    webhook(server.address).topics_changed({"orders": "a.orders"})
    assert len(server.requests) == 3
    assert len({body for _, _, _, body in server.requests}) == 1


def test_tries_have_a_limit(server: AnsweringServer) -> None:
    server.statuses = [503] * 9
    with pytest.raises(WebhookFailed, match=r"^the webhook at http://127\.0\.0\.1:\d+ answered 503$"):
        webhook(server.address).topics_changed({})
    assert len(server.requests) == 3


@pytest.mark.parametrize(("status", "said"), [(404, "answered 404"), (307, "redirects are not followed")])
def test_what_will_not_pass_is_tried_once(server: AnsweringServer, status: int, said: str) -> None:
    server.statuses = [status]
    with pytest.raises(WebhookFailed, match=said):
        webhook(server.address).groups_changed(frozenset())
    assert [path for _, path, _, _ in server.requests] == ["/hooks/t0ps3cr3t?key=t0ps3cr3t"]


def test_a_server_that_does_not_answer_is_a_failure(server: AnsweringServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sinks.notify.webhook.WEBHOOK_ANSWERS_WITHIN", 0.05)
    server.silent.set()
    with pytest.raises(WebhookFailed, match="did not answer: ReadTimeout"):
        webhook(server.address).topics_changed({})


def test_an_address_where_nobody_listens_is_a_failure() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(WebhookFailed, match="did not answer: ConnectError"):
            webhook(f"http://127.0.0.1:{taken.getsockname()[1]}/").topics_changed({})


def test_a_server_without_tls_behind_https_is_a_failure(server: AnsweringServer) -> None:
    with pytest.raises(WebhookFailed, match="did not answer: ConnectError"):
        webhook(server.address.replace("http:", "https:")).topics_changed({})


def test_neither_the_address_beyond_its_host_nor_the_secret_is_logged(
    server: AnsweringServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.statuses = [200, 503, 404]
    told = Announcements(Flow("a", "b"), webhook(server.address), DefaultGroupListener())
    told.announce_topics({})
    told.close()
    with pytest.raises(WebhookFailed) as failed:
        webhook(server.address).topics_changed({})
    assert "t0ps3cr3t" not in caplog.text + str(failed.value)
    assert KEY not in caplog.text + repr(vars(failed.value))
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "is missing"),
        ("hooks.example.com/t0ps3cr3t", "no address of a web server"),
        ("ftp://hooks.example.com/t0ps3cr3t", "no address of a web server"),
        ("https:///t0ps3cr3t", "no address of a web server"),
        ("https://[t0ps3cr3t", "no address of a web server"),
        ("https://t0p s3cr3t/", "no address of a web server"),
        ("https://t0ps3cr3t:70000/", "no address of a web server"),
        ("https://hooks.example.com:t0ps3cr3t/", "no address of a web server"),
        ("https://me:t0ps3cr3t@hooks.example.com/", "holds a user or a password"),
    ],
)
def test_a_wrong_address_is_an_error_at_the_start_that_names_the_key_and_not_the_value(url: str, said: str) -> None:
    with pytest.raises(LockstepError, match=said) as refused:
        webhook(url)
    assert str(refused.value).startswith(WEBHOOK_URL_NAME)
    assert "t0ps3cr3t" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://hooks.example.com:8443/a?b=c", "http://[::1]:80", " http://10.0.0.1/ "])
def test_names_and_addresses_of_servers_are_taken(url: str) -> None:
    webhook(url)


def test_a_missing_secret_is_an_error_at_the_start() -> None:
    with pytest.raises(LockstepError, match=r"lockstep\.listener\.webhook\.secret is missing"):
        WebhookListener().configure(properties("https://hooks.example.com/") | {WEBHOOK_SECRET_NAME: ""})
