"""Which values of a file are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.reloading import changed_lines
from app.settings import ConfigurationError, Settings, load
from app.settings.job_settings import Decoded, Reference
from sinks.secret_values import IN_PLACE_OF_SECRET, without_secrets
from streaming.flow import Flow

AB = Flow("a", "b")
BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
MARKER = "m4rk3r-of-nobody"


def loaded(folder: Path, lines: str, **overrides: str) -> Settings:
    path = folder / "m.properties"
    path.write_text(BASE + lines)
    return load(path, environ={"OTHER": MARKER}, overrides={AB: overrides} if overrides else None)


def told(before: Settings, after: Settings) -> list[str]:
    return [str(one) for one in changed_lines(before, after)]


@pytest.mark.parametrize(
    "key",
    [
        "acme.api.key",
        "a.schema.registry.basic.auth.user.info",
        "acme.pwd",
        "acme.size",
        "a.topics",
        "a.bootstrap.servers.of.mine",
        "a->b.consumer.client.rack",
        "a.sasl.jaas.config",
        "lockstep.metric.push.url",
        "lockstep.http.token",
        "password.encoder.old.secret",
    ],
)
def test_a_reload_hides_what_is_in_no_table_or_secret(tmp_path: Path, key: str) -> None:
    (line,) = told(loaded(tmp_path, ""), loaded(tmp_path, f"{key}={MARKER}\n"))
    assert line.startswith(f"{key}: not set -> [hidden]")


def test_a_reload_shows_the_value_of_a_key_of_lockstep(tmp_path: Path) -> None:
    assert told(loaded(tmp_path, "topics=one\n"), loaded(tmp_path, "topics=two\n")) == ["topics: one -> two"]


def test_a_reload_hides_what_came_from_a_reference_and_shows_the_other_side(tmp_path: Path) -> None:
    before, after = loaded(tmp_path, "topics=orders\n"), loaded(tmp_path, "topics=x,${env:OTHER}\n")
    assert told(before, after) == ["topics: orders -> [hidden]"]
    assert told(after, before) == ["topics: [hidden] -> orders"]


@pytest.mark.parametrize("value", [Decoded(MARKER), Reference("${env:OTHER}")])
def test_a_reload_hides_what_was_an_encoded_override_or_a_reference(tmp_path: Path, value: str) -> None:
    (line,) = told(loaded(tmp_path, ""), loaded(tmp_path, "", topics=value))
    assert line == "a->b.lockstep.topics: not set -> [hidden]"


def test_a_plain_override_is_shown(tmp_path: Path) -> None:
    (line,) = told(loaded(tmp_path, ""), loaded(tmp_path, "", topics="orders"))
    assert line == "a->b.lockstep.topics: not set -> orders"


def test_a_line_that_lost_its_backslash_is_not_told_as_a_key(tmp_path: Path) -> None:
    (line,) = told(loaded(tmp_path, ""), loaded(tmp_path, f'"{MARKER}";x = 1\n'))
    assert line == "[hidden]: not set -> [hidden]"


@pytest.mark.parametrize(
    "line",
    [
        f"a.security.protocol={MARKER}",
        f"a.bootstrap.servers=u:{MARKER}@h:1:x",
        "replication.factor=${env:OTHER}",
        "use.defaults.from=${env:OTHER}",
        "topics=${env:OTHER}(",
        "replication.policy.class=${env:OTHER}",
        f"topic.filter.class=tests.app.properties.test_shown:Telling\nacme.pwd={MARKER}",
        f"topic.filter.class=tests.app.properties.test_shown:Telling\nacme.size={MARKER}",
        f'topic.filter.class=tests.app.properties.test_shown:Telling\na.sasl.jaas.config=x y password="{MARKER}";',
        f"topic.filter.class=tests.app.properties.test_shown:Telling\nacme.address=https://me:{MARKER}@h/",
    ],
)
def test_no_mistake_shows_a_value_that_may_be_secret(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, f"{line}\n")
    assert MARKER not in str(caught.value)


def test_a_mistake_in_a_key_of_lockstep_shows_what_was_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"replication\.factor: 'many' is not allowed"):
        loaded(tmp_path, "replication.factor=many\n")


class Telling:
    """A filter that complains with what it was not given to tell."""

    def configure(self, properties: object) -> None:
        raise ValueError(f"cannot use {MARKER} and {properties}")

    def should_replicate_topic(self, topic: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("option", "secret"),
    [
        ("password=hunter2secret", "hunter2secret"),
        ("clientSecret = hunter2secret", "hunter2secret"),
        ('password="quoted-secret"', "quoted-secret"),
        ("password='quoted-secret'", "quoted-secret"),
        (r'password="with\\"quote"', 'with"quote'),
        (r'password="back\\\\slash"', "back\\slash"),
    ],
)
def test_passwords_of_jaas_are_hidden_however_they_are_written(tmp_path: Path, option: str, secret: str) -> None:
    settings = loaded(tmp_path, f"a.sasl.jaas.config = org.apache.kafka.X required username=lockstep {option};\n")
    assert without_secrets(f"login of lockstep with {secret} failed", settings.hidden) == (
        f"login of lockstep with {IN_PLACE_OF_SECRET} failed"
    )
