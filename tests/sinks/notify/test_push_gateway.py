"""Metrics are pushed to a real server, a last time at the end, and trouble is said once and without secrets."""

from __future__ import annotations

import base64
import logging
import socket
from collections.abc import Iterator

import pytest

from app.local.waiting import wait_for
from app.properties import keys
from sinks.engine.metrics import Metrics
from sinks.notify.metrics_reporting import Reporters
from sinks.notify.push_gateway import (
    DEFAULTS,
    INTERVAL,
    JOB,
    PASSWORD,
    PUSH_URL_NAME,
    USERNAME,
    PushGatewayReporter,
    gateway_of,
)
from streaming.durations import seconds_of
from streaming.errors import LockstepError
from streaming.reconfiguration import Reconfigurable
from tests.http_servers import AnsweringServer, answering_server

SOON = 60.0


@pytest.fixture
def gateway() -> Iterator[AnsweringServer]:
    with answering_server("/t0ps3cr3t/") as listening:
        yield listening


def reporter(url: str, **values: str) -> PushGatewayReporter:
    made = PushGatewayReporter()
    made.configure(
        {PUSH_URL_NAME: url, INTERVAL: "1 hour", **{f"lockstep.metric.push.{key}": v for key, v in values.items()}}
    )
    return made


def pushed(made: PushGatewayReporter) -> None:
    """One run that ends before its first interval."""
    made.init(Metrics("1.2.3").registry)
    made.close()


def test_a_run_that_ends_before_its_first_interval_pushes_once(gateway: AnsweringServer) -> None:
    pushed(reporter(gateway.address))
    ((method, path, headers, body),) = gateway.requests
    assert (method, path) == ("PUT", "/t0ps3cr3t/metrics/job/lockstep")
    assert "Authorization" not in headers
    assert b'lockstep_build_info{version="1.2.3"} 1.0' in body


def test_what_is_pushed_is_what_the_registry_says_at_that_moment(gateway: AnsweringServer) -> None:
    metrics, made = Metrics("1"), reporter(gateway.address)
    made.init(metrics.registry)
    metrics.batch(0.4, 12, {})
    made.close()
    assert b"lockstep_batch_rows 12.0" in gateway.requests[-1][3]


def test_it_is_pushed_at_every_interval_and_at_the_end(gateway: AnsweringServer) -> None:
    made = reporter(gateway.address, interval="10 ms", job="nightly")
    made.init(Metrics("1").registry)
    wait_for(lambda: len(gateway.requests) >= 3, SOON, "three pushes")
    made.close()
    assert {path for _, path, _, _ in gateway.requests} == {"/t0ps3cr3t/metrics/job/nightly"}
    assert len(gateway.requests) >= 4


def test_a_user_and_a_password_are_sent_where_there_are_some(gateway: AnsweringServer) -> None:
    pushed(reporter(gateway.address, username="me", password="hünter2"))
    sent = gateway.requests[0][2]["Authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")).decode() == "me:hünter2"


def test_other_properties_hold_from_the_next_push_on_and_a_shorter_interval_ends_a_longer_one(
    gateway: AnsweringServer,
) -> None:
    made = reporter("http://127.0.0.1:1/")
    assert isinstance(made, Reconfigurable)
    assert set(made.reconfigurable_configs()) == {PUSH_URL_NAME, INTERVAL, JOB, USERNAME, PASSWORD}
    made.init(Metrics("1").registry)
    properties = {PUSH_URL_NAME: gateway.address, INTERVAL: "10 ms", JOB: "other"}
    made.validate_reconfiguration(properties)
    made.reconfigure(properties)
    wait_for(lambda: gateway.requests, SOON, "the first push")
    made.close()
    assert gateway.requests[0][1] == "/t0ps3cr3t/metrics/job/other"


def test_an_outage_is_logged_once_and_so_is_its_end(gateway: AnsweringServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gateway.statuses = [503, 500, 404]
    made = reporter(gateway.address, interval="10 ms", username="me", password="hunter2")
    made.init(Metrics("1").registry)
    wait_for(lambda: len(gateway.requests) >= 5, SOON, "the pushes after the outage")
    made.close()
    begins, ends = caplog.messages
    server = gateway.address.removesuffix("/t0ps3cr3t/")
    assert begins == (
        f"the Pushgateway at {server} does not take metrics: it answered 503. Lockstep logs this once until it does"
    )
    assert ends == f"the Pushgateway at {server} takes metrics again"
    assert "hunter2" not in caplog.text


def test_a_redirect_is_not_followed(gateway: AnsweringServer, caplog: pytest.LogCaptureFixture) -> None:
    gateway.statuses = [302]
    pushed(reporter(gateway.address, username="me", password="hunter2"))
    assert len(gateway.requests) == 1
    assert "it answered 302" in caplog.text


def test_a_gateway_that_does_not_answer_holds_up_the_end_no_longer_than_its_limit(
    gateway: AnsweringServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sinks.notify.push_gateway.GATEWAY_ANSWERS_WITHIN", 0.05)
    gateway.silent.set()
    pushed(reporter(gateway.address))
    wait_for(lambda: "does not take metrics" in caplog.text, SOON, "the end of the push that was given up")
    assert "timed out" in caplog.text


def test_an_address_where_nobody_listens_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        pushed(reporter(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert "Connection refused" in caplog.text


def test_a_registry_that_cannot_be_read_breaks_nothing_and_its_words_are_not_logged(
    gateway: AnsweringServer, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def collect(self) -> None:
            raise RuntimeError("hunter2")

        def describe(self) -> list[object]:
            return []

    metrics, made = Metrics("1"), reporter(gateway.address)
    metrics.registry.register(Broken())  # type: ignore[arg-type]  # a user's collector with a slip in it
    made.init(metrics.registry)
    made.close()
    assert gateway.requests == []
    assert caplog.messages[0].endswith("metrics: RuntimeError. Lockstep logs this once until it does")


def test_with_all_that_stands_around_it_one_run_is_one_push(gateway: AnsweringServer) -> None:
    metrics = Metrics("1")
    reporters = Reporters(metrics.registry, metrics.count_reporter)
    reporters.adopt({"sinks.notify.push_gateway:PushGatewayReporter": reporter(gateway.address)})
    assert reporters.close()
    assert len(gateway.requests) == 1


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({}, f"{PUSH_URL_NAME} is missing"),
        ({PUSH_URL_NAME: "pushgateway:9091/t0ps3cr3t"}, "no address of a web server"),
        ({PUSH_URL_NAME: "ftp://gateway/t0ps3cr3t"}, "no address of a web server"),
        ({PUSH_URL_NAME: "http:///t0ps3cr3t"}, "no address of a web server"),
        ({PUSH_URL_NAME: "http://t0p s3cr3t/"}, "no address of a web server"),
        ({PUSH_URL_NAME: "http://gateway:70000/t0ps3cr3t"}, "no address of a web server"),
        ({PUSH_URL_NAME: "http://gateway:t0ps3cr3t/"}, "no address of a web server"),
        ({PUSH_URL_NAME: "http://gateway/?t0ps3cr3t"}, "without ? and #"),
        ({PUSH_URL_NAME: "http://me:t0ps3cr3t@gateway/"}, "holds a user or a password"),
        ({PUSH_URL_NAME: "http://gateway", USERNAME: "me"}, "belong together"),
        ({PUSH_URL_NAME: "http://gateway", PASSWORD: "t0ps3cr3t"}, "belong together"),
        ({PUSH_URL_NAME: "http://gateway", INTERVAL: "often"}, "must be a time above zero"),
        ({PUSH_URL_NAME: "http://gateway", INTERVAL: "0"}, "must be a time above zero"),
    ],
)
def test_what_is_wrong_is_an_error_at_the_start_that_names_the_key_and_not_the_value(
    properties: dict[str, str], said: str
) -> None:
    for check in (PushGatewayReporter().configure, PushGatewayReporter().validate_reconfiguration):
        with pytest.raises(LockstepError, match=r"^lockstep\.metric\.push\.") as refused:
            check(properties)
        assert said in str(refused.value)
        assert "t0ps3cr3t" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://gateway.example.com/push", "http://[::1]:9091", " http://10.0.0.1:9091/ "])
def test_names_and_addresses_of_gateways_are_taken(url: str) -> None:
    assert gateway_of({PUSH_URL_NAME: url}).url == url.strip()


def test_no_repr_shows_a_password_or_the_address_beyond_its_server() -> None:
    gateway = gateway_of({PUSH_URL_NAME: "http://gateway/t0ps3cr3t", USERNAME: "me", PASSWORD: "t0ps3cr3t"})
    assert "t0ps3cr3t" not in repr(gateway)


def test_the_defaults_are_those_of_the_table_of_keys() -> None:
    ours = {key.name: key.default for key in keys.TABLE.values() if key.name.startswith("lockstep.metric.push.")}
    assert ours == {name: value or None for name, value in DEFAULTS.items()} | {
        INTERVAL: seconds_of(DEFAULTS[INTERVAL])
    }
