"""Who must say a token to the job's server."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.settings import ConfigurationError, Settings, load

BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
TOKEN = "0123456789abcdef"


def loaded(folder: Path, lines: str) -> Settings:
    path = folder / "m.properties"
    path.write_text(BASE + lines)
    return load(path, environ={})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "job.example"])
def test_an_address_that_others_reach_needs_a_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigurationError, match=r":5: lockstep\.http\.host: is not a loopback address.*http\.token"):
        loaded(tmp_path, f"lockstep.http.host={host}\n")
    assert loaded(tmp_path, f"lockstep.http.host={host}\nlockstep.http.token={TOKEN}\n").job.http_token == TOKEN


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_loopback_address_needs_none(tmp_path: Path, host: str) -> None:
    assert loaded(tmp_path, f"lockstep.http.host={host}\n").job.http_token is None


@pytest.mark.parametrize("token", ["short", "has spaces in its words", "0123456789abcdefü"])
def test_a_token_that_a_header_cannot_carry_or_anyone_can_guess_is_a_mistake_that_shows_nothing(
    tmp_path: Path, token: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"lockstep\.http\.token: its value is not allowed") as caught:
        loaded(tmp_path, f"lockstep.http.token={token}\n")
    assert token not in str(caught.value)
    assert TOKEN not in repr(loaded(tmp_path, f"lockstep.http.token={TOKEN}\n"))


@pytest.mark.parametrize(
    "line",
    [
        "lockstep.http.token=replace-me-with-a-long-random-one",
        "lockstep.ledger.secret=replace-me-with-a-long-random-one",
        'a.sasl.jaas.config=o.a.k.ScramLoginModule required username="x" password="replace-me";',
        "a.ssl.keystore.password=${env:KEYSTORE}",
    ],
)
def test_a_secret_of_the_samples_is_a_mistake(tmp_path: Path, line: str) -> None:
    path = tmp_path / "m.properties"
    path.write_text(f"{BASE}{line}\n")
    with pytest.raises(ConfigurationError, match="holds the sample's secret"):
        load(path, environ={"KEYSTORE": "replace-me"})


def test_a_topic_may_have_any_name(tmp_path: Path) -> None:
    assert loaded(tmp_path, "topics=replace-me\n").flows
