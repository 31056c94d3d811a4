"""Which requests the job's server answers."""

from __future__ import annotations

import base64

import pytest

from app.addresses import is_loopback
from app.http.protection import RequestRules

TOKEN = "0123456789abcdef"
HERE = RequestRules("127.0.0.1")
EVERYWHERE = RequestRules("0.0.0.0", TOKEN)
JSON = {"content-type": "application/json; charset=utf-8", "content-length": "2"}


def status(rules: RequestRules, method: str = "GET", **headers: str) -> int:
    given = {"host": "127.0.0.1:9464"} | {name.replace("_", "-"): value for name, value in headers.items()}
    refused = rules.refused(method, given)
    return 200 if refused is None else refused.status


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:9464", "localhost:9464", "LOCALHOST", "[::1]:9464", "127.8.9.1:1"]
)
def test_names_and_addresses_of_this_machine_are_answered(host: str) -> None:
    assert status(HERE, host=host) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "10.0.0.1:9464", "", "a@127.0.0.1", "x:y", "["],
)
def test_a_name_that_somebody_leads_here_is_refused(host: str) -> None:
    assert status(HERE, host=host) == 421


def test_the_hosts_own_name_is_answered_and_behind_a_wildcard_every_name_that_brings_the_token() -> None:
    bearer = f"Bearer {TOKEN}"
    assert status(RequestRules("job.example", TOKEN), host="Job.Example:9464", authorization=bearer) == 200
    assert status(RequestRules("job.example", TOKEN), host="other.example", authorization=bearer) == 421
    assert status(EVERYWHERE, host="other.example", authorization=bearer) == 200
    assert status(EVERYWHERE, host="other.example") == 401
    assert status(RequestRules("0.0.0.0"), host="other.example") == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "http://["]
)
def test_pages_of_other_origins_are_refused(origin: str) -> None:
    assert status(HERE, "POST", origin=origin) == 403


def test_the_page_itself_may_ask_and_a_link_to_it_may_be_followed() -> None:
    assert status(HERE, "POST", origin="http://127.0.0.1:9464") == 200
    assert status(HERE, sec_fetch_site="cross-site", sec_fetch_mode="navigate") == 200
    assert status(HERE, sec_fetch_site="cross-site", sec_fetch_mode="no-cors") == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_is_no_json_is_refused(kind: str) -> None:
    assert status(HERE, "POST", content_type=kind, content_length="2") == 415
    assert status(HERE, "POST", content_type=kind, transfer_encoding="chunked") == 415
    assert status(HERE, "POST", content_type=kind) == 200
    assert status(HERE, "POST", **JSON) == 200


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Basic !", TOKEN]
)
def test_without_the_token_nothing_is_answered(header: str) -> None:
    assert status(EVERYWHERE, authorization=header) == 401


def test_a_browser_sends_the_token_as_a_password_and_may_read_with_it_alone() -> None:
    basic = "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()
    assert status(EVERYWHERE, authorization=basic) == 200
    assert status(EVERYWHERE, "POST", authorization=basic) == 401
    assert status(EVERYWHERE, "POST", authorization=f"bearer {TOKEN}") == 200


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("job.example", False),
    ],
)
def test_loopback_is_what_this_machine_alone_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
