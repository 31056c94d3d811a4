"""What went wrong is one message and an exit code, and with `-o json` one document."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.cli.failures import Failures, exit_code_of, wants_json, with_failures
from app.cli.lazy_commands import app
from app.cli.output import complain, interrupted, print_json, print_line, print_table, until_interrupted
from app.properties.mistakes import ConfigurationError, Mistake
from sinks.faults import ClusterUnreachable, LedgerUntrusted, RightsMissing
from streaming.errors import LockstepError, WrongUsage

LOCKSTEP = (sys.executable, "-m", "app.main")
JSON = ("-o", "json")


def raising(error: BaseException) -> Callable[[], object]:
    def command() -> object:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "exit_code", "code"),
    [
        (WrongUsage("no"), 2, "WRONG_USAGE"),
        (ConfigurationError([Mistake("f", 1, "topics", "is odd")]), 2, "CONFIGURATION"),
        (LockstepError("no"), 1, "FAILED"),
        (ClusterUnreachable("no"), 1, "CLUSTER_UNREACHABLE"),
        (RightsMissing("no"), 1, "RIGHTS_MISSING"),
        (LedgerUntrusted("no"), 1, "LEDGER_UNTRUSTED"),
        (typer.BadParameter("no"), 2, "WRONG_USAGE"),
        (typer.Abort(), 1, "ABORTED"),
        (ZeroDivisionError("no"), 1, "DEFECT"),
    ],
)
def test_every_failure_has_its_exit_code_and_its_document(
    error: Exception, exit_code: int, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(raising(error), JSON) == exit_code
    said = capsys.readouterr()
    found = json.loads(said.out)["error"]
    assert set(found) == {"code", "message", "remedy"}
    assert found["code"] == code
    assert found["message"]
    assert said.err


def test_ctrl_c_at_a_question_is_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.StringIO):
        def readline(self, size: int | None = -1, /) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        exit_code_of(lambda: typer.confirm("Cut over?", abort=True, err=True), [])


@pytest.mark.parametrize("command", [raising(KeyboardInterrupt()), lambda: 130])
def test_ctrl_c_prints_one_line_and_no_document(
    command: Callable[[], object], capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(KeyboardInterrupt):
        exit_code_of(command, JSON)
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.parametrize(
    ("tells", "said"), [(until_interrupted, ""), (lambda: interrupted("half done"), "half done\n")]
)
def test_ctrl_c_prints_no_line_beside_what_the_command_said(
    tells: Callable[[], None], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        tells()
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        exit_code_of(command, [])
    assert capsys.readouterr().err == said


def test_what_was_said_with_more_words_keeps_the_code_of_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    more = LockstepError("nothing was written: down")
    more.__cause__ = ClusterUnreachable("down")
    assert exit_code_of(raising(more), JSON) == 1
    found = json.loads(capsys.readouterr().out)["error"]
    assert (found["code"], found["message"]) == ("CLUSTER_UNREACHABLE", "nothing was written: down")


def test_without_json_a_failure_prints_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(raising(LockstepError("it is odd")), ()) == 1
    assert capsys.readouterr() == ("", "it is odd\n")


def test_a_command_that_printed_its_document_prints_no_other_one(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> object:
        print_json({"flows": []})
        raise LockstepError("late")

    assert exit_code_of(command, JSON) == 1
    assert json.loads(capsys.readouterr().out) == {"flows": []}


@pytest.mark.parametrize("words", [["plan", "-o", "json"], ["plan", "--output=json"], ["plan", "-ojson", "--nope"]])
def test_json_is_wanted_by_any_spelling_of_the_option(words: list[str]) -> None:
    assert wants_json(words)
    assert not wants_json([word for word in words if "json" not in word])


def test_a_document_of_which_some_failed_has_both() -> None:
    down, denied = ClusterUnreachable("down"), RightsMissing("denied")
    assert with_failures({"flows": []}, []) == {"flows": []}
    one = with_failures({"flows": []}, [("a->b", down)])
    assert one == {"flows": [], "error": {"code": down.code, "message": "a->b: down", "remedy": down.remedy}}
    both = with_failures({}, [("a->b", down), ("a->c", denied)])["error"]
    assert (both["code"], both["remedy"]) == ("FAILED", None)
    assert both["message"] == "a->b: down\na->c: denied"


FILE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--nope"],
        ["plan", "--config", "nowhere.properties"],
        ["plan"],
        ["plan", "--flow", "x->y", "--config", "FILE"],
        ["apply", "--plan", "nowhere.json", "--config", "FILE"],
        ["plan", "--out", "nowhere/plan.json", "--config", "FILE"],
        ["rights", "--principal", "lockstep", "--config", "FILE"],
        ["audit", "--since", "yesterday", "--config", "FILE"],
        ["status", "--timeout", "0", "--config", "FILE"],
        ["configs", "--describe"],
        ["configs", "--cluster", "c", "--describe", "--topic", "x", "--config", "FILE"],
    ],
)
def test_wrong_usage_is_exit_2_and_a_document(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.properties").write_text(FILE)
    said = CliRunner().invoke(app, ["m.properties" if word == "FILE" else word for word in words] + list(JSON))
    assert said.exit_code == 2
    assert json.loads(said.stdout)["error"]["code"] in ("WRONG_USAGE", "CONFIGURATION")


def test_a_choice_that_there_is_not_is_named_in_our_words_alone(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["status", "-o", "yaml"])
    assert said.exit_code == 2
    assert "'-o' / '--output': 'yaml' is not one of 'text', 'json'." in said.stderr


@pytest.mark.parametrize(
    "words", [["verify", "--last", "x"], ["failover", "--accept-loss", "-1"]], ids=["no number", "too small"]
)
def test_a_number_that_is_none_is_refused_in_our_words_alone(words: list[str]) -> None:
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 2
    assert f"Invalid value for '{words[1]}': " in said.stderr
    assert "Input should" not in said.stderr


def test_without_a_file_in_the_working_folder_the_error_says_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["status"])
    assert said.exit_code == 2
    assert f"there is no conf/mirror.properties in {tmp_path}: name the properties file with --config" in said.stderr


def test_a_closed_or_full_stdout_is_one_line_and_a_failure() -> None:
    closed, write = os.pipe()
    os.close(closed)
    for stdout in (write, os.open("/dev/full", os.O_WRONLY)):
        run = subprocess.run([*LOCKSTEP, "--help"], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
        os.close(stdout)
        assert run.returncode == 1
        (line,) = run.stderr.splitlines()
        assert line.startswith("stdout cannot be written, so the output is lost: ")


class Unread(io.StringIO):
    """A stream whose reader went away."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_a_note_that_is_read_by_no_one_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Unread())
    assert exit_code_of(lambda: complain("a note"), ()) == 0
    monkeypatch.setattr(sys, "stdout", Unread())
    assert exit_code_of(lambda: print_line("x"), ()) == 1


def test_a_line_on_a_stdout_that_is_not_there_is_a_failure_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert exit_code_of(lambda: print_line("x"), ()) == 1


@pytest.mark.parametrize("words", [["help", "plan"], ["-h"], ["ledger", "-h"]])
def test_a_page_of_help_on_a_stdout_that_is_not_there_is_one_line_and_a_failure(words: list[str]) -> None:
    shell = ["sh", "-c", 'exec "$@" >&-', "sh"]
    run = subprocess.run([*shell, *LOCKSTEP, *words], stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    assert (run.returncode, run.stderr) == (
        1,
        "stdout cannot be written, so the output is lost: Bad file descriptor\n",
    )


def test_a_table_on_a_stdout_that_is_not_there_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert exit_code_of(lambda: print_table("t", ["c"], [["x"]]), ()) == 1
    assert capsys.readouterr().err == "stdout cannot be written, so the output is lost: Bad file descriptor\n"


def test_a_config_without_a_name_is_said_to_be_empty() -> None:
    said = CliRunner().invoke(app, ["plan", "--config", ""])
    assert said.exit_code == 2
    assert "Invalid value for '--config': it is empty: name the properties file" in said.stderr


@pytest.mark.parametrize("command", ["plan", "validate"])
def test_where_there_is_no_file_to_be_mended_no_remedy_says_to_mend_it(tmp_path: Path, command: str) -> None:
    said = CliRunner().invoke(app, [command, "--config", str(tmp_path / "none"), "-o", "json"])
    assert (said.exit_code, json.loads(said.stdout)["error"]["remedy"]) == (2, None)


def test_validate_does_not_say_to_run_validate(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("clusters=a\n")
    said = CliRunner().invoke(app, ["validate", "--config", str(tmp_path / "m"), "-o", "json"])
    assert (said.exit_code, json.loads(said.stdout)["error"]["remedy"]) == (2, None)


def test_flow_that_its_own_error_names_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    failed = Failures()
    for message in ("a->b: another process leads", "cluster b: is silent"):
        with failed.noted("a->b"):
            raise ClusterUnreachable(message)
    said = "a->b: another process leads\na->b: cluster b: is silent"
    assert with_failures({}, failed)["error"]["message"] == said
    assert capsys.readouterr().err == f"{said}\n"
