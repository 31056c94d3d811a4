"""What may be a secret is known by its name, and no text repeats its value."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from app.local.jars import PROJECT
from sinks.secret_values import IN_PLACE_OF_SECRET, is_secret, secret_values, without_secrets


@pytest.mark.parametrize(
    "name",
    [
        "ssl.key.password",
        "listener.name.sasl.plain.sasl.jaas.config",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "password.encoder.old.secret",
        "lockstep.http.token",
        "lockstep.listener.webhook.url",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "basic.auth.user.info",
        "My.API_Key",
        "http.headers",
        "Authorization",
        "plugin.signing.key",
        "store.connection.string",
    ],
)
def test_what_may_be_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["retention.ms", "bootstrap.servers", "ssl.keystore.location", "topics", "key.deserializer"]
)
def test_what_everybody_may_see_is_no_secret(name: str) -> None:
    assert not is_secret(name)


def test_secrets_are_taken_out_of_a_text_the_longest_first() -> None:
    values = {"a.password": "hush", "b.secret": "hushed", "c.token": None, "retention.ms": "5"}
    assert (
        without_secrets("Invalid value hush, hushed, 5", secret_values(values))
        == f"Invalid value {IN_PLACE_OF_SECRET}, {IN_PLACE_OF_SECRET}, 5"
    )


def test_a_secret_is_hidden_in_a_url_too() -> None:
    assert without_secrets("GET /?to=a%2Fb%20c", ["a/b c"]) == f"GET /?to={IN_PLACE_OF_SECRET}"


def test_one_module_alone_says_what_stands_in_place_of_a_secret() -> None:
    folders = ("lockstep", "app", "sinks", "streaming")
    paths = [path for folder in folders for path in (PROJECT / folder).rglob("*.py")]
    found = [path.relative_to(PROJECT) for path in paths if IN_PLACE_OF_SECRET in path.read_text()]
    assert list(map(str, found)) == ["sinks/secret_values.py"]


@pytest.mark.parametrize("secret", ["sixteen\\chars", "with'quote", 'with"quote', "both'and\"too", "grün\n", "plain"])
@pytest.mark.parametrize("shape", [str, repr, ascii, json.dumps, lambda value: json.dumps(value, ensure_ascii=False)])
def test_secrets_are_hidden_as_python_and_json_write_them(secret: str, shape: Callable[[str], str]) -> None:
    assert without_secrets(f"failed: {shape(secret)}", [secret]).strip("'\"") in (
        f"failed: {IN_PLACE_OF_SECRET}",
        f"failed: '{IN_PLACE_OF_SECRET}",
        f'failed: "{IN_PLACE_OF_SECRET}',
    )
