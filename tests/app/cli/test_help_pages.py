"""Every page of help is short, in plain words, and shows two examples that work."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from app.cli.lazy_commands import COMMANDS, EXAMPLES, app


def pages(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    yield " ".join(path)
    for name, below in getattr(command, "commands", {}).items():
        yield from pages(below, (*path, name))


@cache
def every_page() -> tuple[str, ...]:
    return tuple(page for name, row in COMMANDS.items() for page in pages(row.load(name), (name,)))


def page_of(path: str, columns: int = 80) -> str:
    said = CliRunner().invoke(app, [*path.split(), "-h"], env={"COLUMNS": str(columns)})
    assert said.exit_code == 0
    return said.output


@pytest.mark.parametrize("path", ["", *every_page()])
def test_every_page_has_two_examples(path: str) -> None:
    assert page_of(path).count("\n    lockstep ") == 2


@pytest.mark.parametrize("path", every_page())
def test_no_page_speaks_of_pythons_types(path: str) -> None:
    assert not re.search(r"TEXT|FLOAT|INTEGER|<(str|int|float|path|file|list|datetime)\b|\b\d+<=x", page_of(path))


@pytest.mark.parametrize("example", [one for both in EXAMPLES.values() for one in both])
def test_every_example_is_understood(example: str) -> None:
    words = shlex.split(example.partition(" > ")[0])
    command: Any = get_command(app)
    with command.make_context("lockstep", []) if not words else command.make_context("lockstep", words) as root:
        # A group whose name is followed by an option is called itself.
        while hasattr(command, "get_command") and not words[0].startswith("-"):
            name, *words = words
            command = command.get_command(root, name)
            assert command is not None
        command.make_context(name, words, parent=root)


@pytest.mark.parametrize("words", [["pause", "topics"], ["plan", "--kind", "topics"]])
def test_a_kind_that_there_is_not_is_wrong_usage_with_the_nearest(words: list[str]) -> None:
    said = CliRunner().invoke(app, words)
    assert (said.exit_code, "topics: one of topic, topic-config" in said.stderr) == (2, True)
    assert "nearest: topic" in said.stderr


@pytest.mark.parametrize(("word", "near"), [("topics", "; nearest: topic\n"), ("topic-configs", "\n")])
def test_who_adopts_is_offered_kinds_that_can_be_adopted_and_no_others(word: str, near: str) -> None:
    said = CliRunner().invoke(app, ["adopt", word])
    assert said.exit_code == 2
    assert f"{word}: one of topic, acl, scram-user, broker-config, client-quota{near}" in said.stderr


def test_the_page_of_a_command_comes_by_help_as_well() -> None:
    assert CliRunner().invoke(app, ["help", "credentials", "set"]).output == page_of("credentials set")
    for words in (["help"], ["help", "help"]):
        assert "Commands:" in CliRunner().invoke(app, words).output


@pytest.mark.parametrize("words", [["plan", "x"], ["credentials", "set", "x"], ["offsets", "x"]])
def test_a_word_behind_the_command_whose_page_is_asked_for_is_wrong_usage(words: list[str]) -> None:
    said = CliRunner().invoke(app, ["help", *words])
    assert (said.exit_code, "Got unexpected extra argument (x)" in said.stderr) == (2, True)


def test_the_version_is_printed() -> None:
    assert re.fullmatch(r"lockstep \d+\.\d+\S*\n", CliRunner().invoke(app, ["--version"]).output)


@pytest.mark.parametrize("words", [["statsu"], ["help", "statsu"]])
def test_a_command_with_two_slips_is_named(words: list[str]) -> None:
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 2
    assert "No such command 'statsu'; nearest: status" in said.stderr


@pytest.mark.parametrize("words", [["foo"], ["help", "foo"]])
def test_a_command_that_is_like_none_gets_all_names(words: list[str]) -> None:
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 2
    assert "No such command 'foo'; one of run, validate, plan" in said.stderr


@pytest.mark.parametrize(
    ("shell", "environment"),
    [
        ("bash", {"COMP_WORDS": "lockstep sta", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "lockstep sta"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "lockstep sta", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_a_shell_completes_commands(shell: str, environment: dict[str, str]) -> None:
    script = CliRunner().invoke(app, ["completion", shell])
    assert f"complete_{shell}" in script.output
    assert "\\n" not in script.output
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script.output, text=True, check=True, timeout=300)
    asked = {"_LOCKSTEP_COMPLETE": f"complete_{shell}", **environment}
    assert "status" in CliRunner().invoke(app, [], env=asked, prog_name="lockstep").output
