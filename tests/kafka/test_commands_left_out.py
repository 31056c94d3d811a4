"""What commands leave out on real clusters is said: paused kinds, names that are not replicated, clusters that are
down, and a time limit that is kept."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.lazy_commands import app
from app.local.ports import free_ports
from tests.conftest import Clusters
from tests.kafka.staging import client_of, create, write_properties

TIME_LIMIT = 60
"""Seconds for each request, where a command is not told another."""


@pytest.fixture(scope="module")
def config(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flow's topics are one, `left-out`, with a config that differs."""
    folder = tmp_path_factory.mktemp("left-out")
    port = str(free_ports(1)[0])
    with client_of(clusters.a) as source:
        create(source, "left-out", 1, {"retention.ms": "3600000"})
    own = {"lockstep.http.port": port, "admin.timeout.ms": f"{TIME_LIMIT}000"}
    return write_properties(folder, clusters.a, clusters.b, "left-out", **own)


def lockstep(config: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--config", str(config)])


def test_a_paused_kind_is_said_by_plan_apply_and_status_until_it_is_resumed(config: Path) -> None:
    assert lockstep(config, "apply", "--yes").exit_code == 0
    assert lockstep(config, "pause", "topic-config").exit_code == 0
    plan = lockstep(config, "plan")
    assert "paused: topic-config is not compared" in plan.stdout
    assert json.loads(lockstep(config, "plan", "-o", "json").stdout)["flows"][0]["paused"] == ["topic-config"]
    assert "paused: topic-config is not compared" in lockstep(config, "apply", "--yes").stdout
    kind = json.loads(lockstep(config, "status", "-o", "json").stdout)["flows"][0]["kinds"]["topic-config"]
    assert (kind["task"], kind["drift"]) == ("PAUSED", None)
    assert lockstep(config, "resume", "topic-config").exit_code == 0
    assert "paused" not in lockstep(config, "plan").stdout
    assert lockstep(config, "resume", "topic-config").exit_code == 0
    events = json.loads(lockstep(config, "audit", "--kind", "topic-config", "-o", "json").stdout)["events"]
    assert [(event["op"], event["key"]) for event in events if not event["key"]] == [("pause", {}), ("resume", {})]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("look", "left-ut"), "left-ut does not exist on a; nearest: left-out"),
        (("look", "a.left-out"), "a.left-out is the name on b: write left-out, its name on a"),
        (("offsets", "--group", "absent"), "absent does not exist on a"),
    ],
)
def test_a_name_that_is_not_replicated_is_wrong_usage(config: Path, words: tuple[str, ...], said: str) -> None:
    found = lockstep(config, *words)
    assert found.exit_code == 2
    assert said in found.stderr


def test_a_plan_of_one_kind_has_no_other(config: Path) -> None:
    document = json.loads(lockstep(config, "plan", "--kind", "acl", "-o", "json").stdout)
    assert {change["kind"] for change in document["flows"][0]["changes"]} <= {"acl"}


@pytest.fixture
def refused(config: Path, tmp_path: Path) -> Path:
    """The same flow to a target where no process listens on the port."""
    return pointed_at(config, tmp_path, f"127.0.0.1:{free_ports(1)[0]}")


def pointed_at(config: Path, folder: Path, target: str) -> Path:
    path = folder / "m.properties"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("b.bootstrap.servers")]
    path.write_text("\n".join([*lines, f"b.bootstrap.servers = {target}"]))
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("plan",),
        ("validate",),
        ("topics",),
        ("pause", "acl"),
        ("audit",),
        ("configs", "--cluster", "b", "--describe", "--topic", "x"),
    ],
)
def test_a_cluster_that_refuses_connections_costs_no_time_limit(refused: Path, words: tuple[str, ...]) -> None:
    said = lockstep(refused, *words, "-o", "json") if words[0] != "pause" else lockstep(refused, *words)
    assert said.exit_code == 1
    # So one says who waited a time limit out.
    assert "gave no answer" not in said.stdout + said.stderr
    assert "is b.bootstrap.servers right, and the cluster up?" in said.stdout + said.stderr
    if words[0] not in ("pause", "validate"):
        assert json.loads(said.stdout)["error"]["code"] == "CLUSTER_UNREACHABLE"


@pytest.fixture
def silent(config: Path, tmp_path: Path) -> Iterator[Path]:
    """The same flow to a target that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield pointed_at(config, tmp_path, f"127.0.0.1:{server.getsockname()[1]}")


def test_a_cluster_that_is_silent_costs_the_time_that_was_given(silent: Path) -> None:
    """The source, which answers, has as long on a busy machine."""
    begun = time.monotonic()
    said = lockstep(silent, "topics", "--timeout", "5")
    assert said.exit_code == 1
    assert "cluster b:" in said.stderr
    assert time.monotonic() - begun >= 5
    assert "within 5 s" in said.stderr
