"""`lockstep credentials`, as far as it concerns the store alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.credentials_command import app
from app.credentials.store import open_store
from streaming.errors import LockstepError

FILE = """
clusters=a,b
a.bootstrap.servers=127.0.0.1:1
b.bootstrap.servers=127.0.0.1:2
a->b.enabled=true
password.encoder.secret=the secret of this test
password.encoder.iterations=1024
lockstep.credential.store={store}
"""


class Command:
    """Runs commands on one file."""

    def __init__(self, folder: Path) -> None:
        self.store, self.config = folder / "credentials", folder / "mirror.properties"
        self.config.write_text(FILE.format(store=self.store))

    def run(self, *arguments: str, given: str | None = None) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", str(self.config)], input=given)

    def password(self, user: str) -> str | None:
        properties = {
            "lockstep.credential.store": str(self.store),
            "password.encoder.secret": "the secret of this test",
        }
        found = open_store(properties).credential(user)
        return found.password if found else None

    def error(self, *arguments: str, given: str | None = None) -> str:
        ended = self.run(*arguments, given=given)
        assert isinstance(ended.exception, LockstepError)
        return str(ended.exception)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_a_password_comes_from_standard_input_or_a_file_and_is_not_printed(command: Command, tmp_path: Path) -> None:
    first = command.run("set", "alice", "--password-file", "-", given="geheim\n")
    (tmp_path / "password").write_text("geheim 2\r\n")
    second = command.run("set", "bob", "--password-file", str(tmp_path / "password"))
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "geheim" not in first.output + second.output
    assert (command.password("alice"), command.password("bob")) == ("geheim", "geheim 2")
    assert "geheim" not in command.store.read_text()


def test_a_password_is_never_an_argument(command: Command) -> None:
    ended = command.run("set", "alice", "geheim")
    assert ended.exit_code == 2
    assert not command.store.exists()


def test_without_a_terminal_nobody_is_asked(command: Command) -> None:
    assert "--password-file" in command.error("set", "alice")


@pytest.mark.parametrize("given", ["", "\n"])
def test_an_empty_password_is_refused(command: Command, given: str) -> None:
    assert "standard input is empty" in command.error("set", "alice", "--password-file", "-", given=given)
    assert not command.store.exists()


def test_list_shows_users_and_versions(command: Command) -> None:
    command.run("set", "alice", "--password-file", "-", given="geheim")
    (row,) = json.loads(command.run("list", "-o", "json").stdout)["users"]
    assert (row["user"], row["pending"], sorted(row)) == ("alice", None, ["pending", "user", "version"])
    assert "alice" in command.run("list").stdout


def test_remove_forgets_and_says_who_was_not_there(command: Command) -> None:
    command.run("set", "alice", "--password-file", "-", given="geheim")
    ended = command.run("remove", "alice", "bob")
    assert ended.exit_code == 1
    assert ended.stdout.splitlines() == ["alice: removed", "bob: was not stored"]
    assert command.run("remove", "alice").exit_code == 1


def test_import_takes_all_or_none(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "users.properties"
    file.write_text("alice=geheim\nbob=b\\u00e4r\n")
    assert command.run("import", str(file)).exit_code == 0
    assert (command.password("alice"), command.password("bob")) == ("geheim", "bär")
    assert "the password of carol is empty" in command.error("import", "-", given="alice=new\ncarol=\n")
    assert command.password("alice") == "geheim"


def test_verify_says_who_is_not_stored(command: Command) -> None:
    ended = command.run("verify", "alice", "-o", "json")
    assert ended.exit_code == 1
    (row,) = json.loads(ended.stdout)["logins"]
    assert (row["user"], row["works"], row["reason"]) == ("alice", False, "no credential")
    assert command.run("verify").exit_code == 0


def test_a_rotation_that_cannot_begin_leaves_nothing_under_way(command: Command) -> None:
    command.run("set", "alice", "--password-file", "-", given="old")
    command.config.write_text(command.config.read_text() + "lockstep.acl.principal.mapping=RULE:^nobody$/x/\n")
    said = command.error("rotate", "alice", "--password-file", "-", given="new")
    assert "lockstep.acl.principal.mapping gives alice no name" in said
    assert command.password("alice") == "old"
    assert json.loads(command.run("list", "-o", "json").stdout)["users"][0]["pending"] is None


def test_passwords_that_are_kept_elsewhere_are_not_written_here(command: Command) -> None:
    other = "lockstep.credential.provider.class=app.credentials.credential_providers:EnvironmentCredentialProvider\n"
    command.config.write_text(command.config.read_text() + other)
    assert "EnvironmentCredentialProvider" in command.error("set", "alice", "--password-file", "-", given="x")


def test_a_missing_secret_is_named(command: Command) -> None:
    command.config.write_text(
        command.config.read_text().replace("password.encoder.secret=the secret of this test\n", "")
    )
    assert "password.encoder.secret is missing" in command.error("set", "alice", "--password-file", "-", given="x")
