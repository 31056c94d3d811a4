"""The keys that protect the target, and the guard that is made from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.properties.mistakes import ConfigurationError
from app.settings import Settings, load
from app.wiring import guard
from sinks.faults import WrongCluster
from sinks.flow_settings import Safety
from sinks.ledger.ledger import Ledger
from sinks.ledger.pins import FILE, PinFile, Pins
from streaming.flow import Flow
from tests.memory.memory_cluster import MemoryCluster

AB = Flow("a", "b")
BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
PINNED = Pins({"a": "id-of-a", "b": "id-of-b"}, "lockstep-ledger.a.internal")


def written(folder: Path, *lines: str) -> Path:
    path = folder / "m.properties"
    path.write_text(BASE + f"lockstep.checkpoint.dir={folder / 'checkpoints'}\n" + "\n".join(lines))
    return path


def settings_of(folder: Path, *lines: str) -> Settings:
    return load(written(folder, *lines))


@pytest.mark.parametrize("key", ["b.lockstep.cluster.id", "lockstep.b.cluster.id"])
def test_id_of_a_cluster_is_said_behind_its_alias(tmp_path: Path, key: str) -> None:
    found = settings_of(tmp_path, f"{key}=id-of-b")
    assert found.flows[0].safety == Safety({"b": "id-of-b"}, tmp_path / "checkpoints" / FILE)
    assert not [warning for warning in found.warnings if warning.key.endswith("cluster.id")]


@pytest.mark.parametrize("key", ["lockstep.cluster.id", "a->b.lockstep.cluster.id"])
def test_id_that_is_said_for_no_cluster_changes_nothing_and_is_warned_about(tmp_path: Path, key: str) -> None:
    found = settings_of(tmp_path, f"{key}=id-of-b")
    assert found.flows[0].safety.cluster_ids == {}
    assert [warning.message for warning in found.warnings if warning.key == key] == [
        "holds for one cluster, behind its alias: write ALIAS.lockstep.cluster.id; this line changes nothing"
    ]


def test_secret_and_replication_factors_hold_for_a_flow(tmp_path: Path) -> None:
    lines = ("lockstep.ledger.secret=sixteen characters", "a->b.lockstep.ledger.replication.factor=2")
    found = settings_of(tmp_path, *lines, "lockstep.audit.replication.factor=-1").flows[0].safety
    assert (found.ledger_secret, found.ledger_factor, found.audit_factor) == ("sixteen characters", 2, -1)
    assert "sixteen" not in repr(found)
    assert found.reverse_secret == "sixteen characters"


def test_the_secret_of_the_flow_the_other_way_round_is_known_by_its_own_line(tmp_path: Path) -> None:
    lines = ("lockstep.ledger.secret=sixteen characters", "b->a.lockstep.ledger.secret=the one of b->a alone")
    found = settings_of(tmp_path, *lines).flows[0].safety
    assert (found.ledger_secret, found.reverse_secret) == ("sixteen characters", "the one of b->a alone")
    assert "alone" not in repr(found)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("lockstep.ledger.secret=too short", "its value is not allowed; allowed: text of at least 16 characters"),
        ("lockstep.ledger.replication.factor=0", "'0' is not allowed"),
        ("lockstep.overrides.allowed=everything", "allowed: a list of addresses, classes, deletions"),
    ],
)
def test_wrong_value_is_a_mistake_and_a_secret_is_not_shown(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as error:
        settings_of(tmp_path, line)
    assert "too short" not in str(error.value)


def test_job_s_guard_makes_the_local_file_and_a_command_s_reads_it(tmp_path: Path) -> None:
    one = settings_of(tmp_path).flows[0]
    source, target, new = (MemoryCluster(alias, f"id-of-{alias}") for alias in ("a", "b", "new"))
    ledger = Ledger(one.internal.ledger, target, target, 1)
    guard(one, source, target).check(ledger)
    assert not (tmp_path / "checkpoints").exists()
    guard(one, source, target, job=True).check(ledger)
    assert PinFile(tmp_path / "checkpoints" / FILE, create=False).of(AB) == PINNED
    with pytest.raises(WrongCluster, match="leads to the cluster id-of-new"):
        guard(one, source, new).check_ids()


def test_ledger_reset_shows_the_clusters_and_forgets_them_only_when_it_is_confirmed(tmp_path: Path) -> None:
    path, pins = written(tmp_path), PinFile(tmp_path / "checkpoints" / FILE, create=True)
    pins.keep(AB, PINNED)
    declined = CliRunner().invoke(app, ["ledger", "reset", "--config", str(path)], input="n\n")
    assert (declined.exit_code, pins.of(AB)) == (1, PINNED)
    assert "a: id-of-a" in declined.output
    assert CliRunner().invoke(app, ["ledger", "reset", "--config", str(path), "--yes"]).exit_code == 0
    assert pins.of(AB) is None
    again = CliRunner().invoke(app, ["ledger", "reset", "--config", str(path), "--yes"])
    assert "has nothing about this flow" in again.output


def test_ledger_sign_needs_a_secret(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["ledger", "sign", "--config", str(written(tmp_path))])
    assert "set lockstep.ledger.secret" in found.output
    assert found.exit_code == 2
