"""`lockstep credentials` on real clusters: writes them, and logs in as the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import javaproperties
import pytest
from typer.testing import CliRunner

from app.cli.credentials_command import app
from app.cli.lazy_commands import app as lockstep
from app.local.broker import ADMIN
from app.local.waiting import wait_for
from app.wiring import admin_of
from sinks.kafka.jvm.jvm_users import JvmUsers
from sinks.kafka.ports.users import Upsertion
from tests.conftest import Clusters

SOON = 180.0
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


@pytest.fixture
def config(clusters: Clusters, tmp_path: Path) -> Path:
    ends = {"a": clusters.a, "b": clusters.b}
    logins = {
        f"{alias}.{name}": value for alias, end in ends.items() for name, value in end.client_properties(ADMIN).items()
    }
    keys = {
        "clusters": "a,b",
        "a->b.enabled": "true",
        "password.encoder.secret": "the secret of this test",
        "lockstep.credential.store": str(tmp_path / "credentials"),
    }
    path = tmp_path / "mirror.properties"
    path.write_text(javaproperties.dumps(logins | keys, timestamp=False), encoding="latin-1")
    return path


def run(config: Path, *arguments: str, given: str | None = None) -> int:
    return CliRunner().invoke(app, [*arguments, "--config", str(config)], input=given).exit_code


def audited(config: Path, user: str) -> list[tuple[str, str]]:
    """The clusters to which a password of the user was written, as the audit topic has them."""
    words = ["audit", "--kind", "credential", "--resource", user, "--since", "1h", "-o", "json"]
    events = json.loads(CliRunner().invoke(lockstep, [*words, "--config", str(config)]).stdout)["events"]
    return [(event["key"]["cluster"], event["result"]) for event in events]


def logins(config: Path, user: str) -> dict[tuple[str, str | None], bool]:
    ended = CliRunner().invoke(app, ["verify", user, "--config", str(config), "-o", "json"])
    return {(row["cluster"], row["mechanism"]): row["works"] for row in json.loads(ended.stdout)["logins"]}


def work(config: Path, user: str, expected: Mapping[tuple[str, str | None], bool]) -> None:
    """A broker takes over a credential a moment after the controller has it."""
    wait_for(lambda: logins(config, user) == expected, SOON, f"the logins of {user} to be {expected}")


def test_a_user_is_made_on_both_clusters_verified_and_given_another_password(config: Path, unique: str) -> None:
    both: dict[tuple[str, str | None], bool] = {("a", SHA_512): True, ("b", SHA_512): True}
    assert run(config, "set", unique, "--both", "--password-file", "-", given="first") == 0
    work(config, unique, both)
    assert run(config, "rotate", unique, "--password-file", "-", given="second") == 0
    work(config, unique, both)
    assert run(config, "verify", unique) == 0
    assert audited(config, unique) == [("b", "applied"), ("a", "applied")] * 2


def test_verify_says_on_which_cluster_it_fails(config: Path, clusters: Clusters, unique: str) -> None:
    users = JvmUsers(admin_of("a", clusters.a.client_properties()))
    users.upsert([Upsertion(unique, SHA_256, 8192, "of the source"), Upsertion(unique, SHA_512, 4096, "of the source")])
    assert run(config, "set", unique, "--password-file", "-", given="of the source") == 0
    work(config, unique, {("a", SHA_256): True, ("a", SHA_512): True, ("b", None): False})
    assert run(config, "set", unique, "--target", "--password-file", "-", given="of the source") == 0
    work(config, unique, {(alias, mechanism): True for alias in "ab" for mechanism in (SHA_256, SHA_512)})
    users.upsert([Upsertion(unique, SHA_512, 4096, "another")])
    work(config, unique, {("a", SHA_256): True, ("a", SHA_512): False, ("b", SHA_256): True, ("b", SHA_512): True})
    assert run(config, "verify", unique) == 1
