"""`${env:NAME}`, `${file:PATH:KEY}`, `${dir:PATH:KEY}`, as Kafka's config providers resolve them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.properties.config_providers import resolve_all
from app.properties.mistakes import Findings, PropertyLine
from app.properties.parse import parse
from app.properties.scoped_keys import ScopedKey
from app.properties.shown_values import shown_value

ENVIRON = {"A_PASSWORD": "hush", "TOPICS": "x.*", "AGAIN": "${env:TOPICS}"}


def resolved(text: str) -> tuple[dict[str, PropertyLine], Findings]:
    findings = Findings("f")
    return resolve_all(parse(text.encode(), findings), ENVIRON, findings), findings


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "password").write_text("swordfish\n")
    (tmp_path / "keys.properties").write_text("db.password = Schlüssel\ncolon:key = x\n", encoding="utf-8")
    return tmp_path


def test_the_three_work_without_being_declared(secrets: Path) -> None:
    entries, findings = resolved(
        f"a=${{env:A_PASSWORD}}\nb=${{file:{secrets}/keys.properties:db.password}}\nc=${{dir:{secrets}/mounted:password}}\n"
    )
    assert [entry.value for entry in entries.values()] == ["hush", "Schlüssel", "swordfish"]
    assert not findings.mistakes


def test_a_reference_is_replaced_inside_a_value_and_only_once() -> None:
    entries, _ = resolved(
        'a=user="u" password="${env:A_PASSWORD}";\nb=${env:AGAIN}-${env:TOPICS}\nc=$env:TOPICS {x:y}\n'
    )
    assert entries["a"].value == 'user="u" password="hush";'
    assert entries["b"].value == "${env:TOPICS}-x.*"
    assert entries["c"].value == "$env:TOPICS {x:y}"


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("${env:NOPE}", "the environment variable NOPE is not set"),
        ("${env:some/path:TOPICS}", "have no path"),
        ("${file:/nowhere.properties:k}", "/nowhere.properties cannot be read as properties: No such file"),
        ("${file:{}/keys.properties:nope}", "has no key nope"),
        ("${file::k}", "the path is missing"),
        ("${dir:{}/mounted:nope}", "no file nope in it"),
        ("${dir:{}:mounted}", "no file mounted in it"),
        ("${dir:{}/keys.properties:}", "there is no directory"),
        ("${dir:{}/mounted:../keys.properties}", "no file ../keys.properties in it"),
    ],
)
def test_a_reference_that_cannot_be_resolved_says_why(secrets: Path, reference: str, reason: str) -> None:
    entries, _ = resolved("topics=" + reference.replace("{}", str(secrets)))
    assert reason in (entries["topics"].problem or "")


def test_a_provider_that_nobody_declared_is_a_mistake() -> None:
    _, findings = resolved("transforms.x.y=${vault:secret:k}\n")
    assert [str(mistake) for mistake in findings.mistakes] == [
        "f:1: transforms.x.y: there is no config provider 'vault'; there are dir, env, file"
    ]


def test_a_declared_name_stands_for_its_class(secrets: Path) -> None:
    entries, findings = resolved(
        "config.providers=mine\n"
        "config.providers.mine.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider\n"
        f"a=${{mine:{secrets}/mounted:password}}\n"
    )
    assert entries["a"].value == "swordfish"
    assert not findings.mistakes


def test_a_class_of_somebody_elses_is_a_problem_only_where_it_is_used() -> None:
    text = "config.providers=vault\nconfig.providers.vault.class=com.acme.Vault\n"
    assert not resolved(text)[1].mistakes
    entries, _ = resolved(text + "a=${vault:x}\n")
    assert "does not have the class com.acme.Vault" in (entries["a"].problem or "")


def test_a_declared_name_without_a_class_is_a_mistake() -> None:
    _, findings = resolved("config.providers=vault\n")
    assert "config.providers.vault.class is missing" in str(findings.mistakes[0])


def test_environment_variables_must_match_the_allowlist_as_a_whole() -> None:
    entries, _ = resolved(
        "config.providers=env\nconfig.providers.env.param.allowlist.pattern=A_.*|TOP\n"
        "a=${env:A_PASSWORD}\nb=${env:TOPICS}\n"
    )
    assert entries["a"].value == "hush"
    assert "does not match TOPICS" in (entries["b"].problem or "")


def test_an_allowlist_that_is_no_pattern_is_a_mistake() -> None:
    _, findings = resolved("config.providers=env\nconfig.providers.env.param.allowlist.pattern=A(\n")
    assert [mistake.line for mistake in findings.mistakes] == [2]


def test_files_outside_the_allowed_paths_are_not_read(secrets: Path) -> None:
    entries, _ = resolved(
        f"config.providers=dir,file\nconfig.providers.dir.param.allowed.paths={secrets}/mounted\n"
        f"config.providers.file.param.allowed.paths={secrets}/mounted\n"
        f"a=${{dir:{secrets}/mounted/../mounted:password}}\nb=${{file:{secrets}/mounted/../keys.properties:db.password}}\n"
    )
    assert entries["a"].value == "swordfish"
    assert "outside allowed.paths" in (entries["b"].problem or "")


def test_allowed_paths_are_absolute_and_exist() -> None:
    _, findings = resolved(
        "config.providers=dir,file\nconfig.providers.dir.param.allowed.paths=here\n"
        "config.providers.file.param.allowed.paths=/no/such/place\n"
    )
    assert [mistake.message for mistake in findings.mistakes] == [
        "here is not absolute",
        "/no/such/place does not exist",
    ]


def test_what_a_file_of_secrets_says_is_shown_nowhere(secrets: Path) -> None:
    (secrets / "broken.properties").write_text("hush\\uno\n")
    entries, _ = resolved(f"a=${{file:{secrets}/broken.properties:k}}\nb=${{env:A_PASSWORD}}\n")
    assert "hush" not in (entries["a"].problem or "")
    assert shown_value(ScopedKey(None, False, "b"), entries["b"]) == "its value"
    assert shown_value(ScopedKey(None, False, "topics"), entries["b"]) == "'${env:A_PASSWORD}'"
    assert "hush" not in repr(entries["b"])
