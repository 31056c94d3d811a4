"""Clusters that refuse connections: a command names all of them, in one error, and soon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.local.ports import free_ports

TIME_LIMIT = 60
"""Seconds for each request of the clients, which never hear that no process listens."""


@pytest.fixture(scope="module")
def down(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The properties of a flow between two clusters that are not there."""
    a, b, job = free_ports(3)
    file = tmp_path_factory.mktemp("down") / "mm2.properties"
    file.write_text(
        f"clusters=a,b\na.bootstrap.servers=127.0.0.1:{a}\nb.bootstrap.servers=127.0.0.1:{b}\na->b.enabled=true\n"
        f"lockstep.checkpoint.dir={file.parent}/checkpoints\nadmin.timeout.ms={TIME_LIMIT}000\n"
        f"lockstep.http.port={job}\n"
    )
    return file


@pytest.mark.parametrize(
    "words",
    [
        ["validate"],
        ["validate", "--rights"],
        ["plan"],
        ["topics"],
        ["groups"],
        ["status"],
        ["look", "t"],
        ["verify"],
        ["offsets"],
        ["offsets", "translate", "--topic", "t", "--partition", "0", "--offset", "1"],
        ["offsets", "translate", "--groups", ".*"],
        ["preflight"],
        ["cutover"],
        ["drill"],
        ["drill", "--dry-run"],
        ["adopt", "acl"],
        ["run", "--once"],
    ],
    ids=" ".join,
)
def test_every_cluster_that_refuses_is_named(words: list[str], down: Path) -> None:
    said = CliRunner().invoke(app, [*words, "--config", str(down)])
    assert said.exit_code == 1
    for alias in ("a", "b"):
        assert said.output.count(f"is {alias}.bootstrap.servers right, and the cluster up?") == 1
    # So one says who waited a time limit out.
    assert "gave no answer" not in said.output


def test_how_far_a_failover_is_nobody_knows_where_the_ledger_cannot_be_read(down: Path) -> None:
    said = CliRunner().invoke(app, ["status", "-o", "json", "--config", str(down)])
    found = json.loads(said.stdout)["flows"][0]
    assert found["failover"]["state"] is None
    assert found["reason"].startswith(f"{found['failover']['reason']}; no job answers at ")


@pytest.mark.parametrize("words", [["audit"], ["audit", "--follow"], ["pause", "acl"], ["failover"]], ids=" ".join)
def test_what_needs_the_target_alone_names_the_target_alone(words: list[str], down: Path) -> None:
    said = CliRunner().invoke(app, [*words, "--config", str(down)])
    assert said.exit_code == 1
    assert "is b.bootstrap.servers right" in said.output
    assert "is a.bootstrap.servers right" not in said.output
