"""On real clusters: which ones are meant, and a ledger that commands refuse until the operator has signed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.local.waiting import wait_for
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.seal import Seal
from sinks.model.changes import Kind
from tests.conftest import Clusters
from tests.kafka.staging import SOON, client_of, write_properties

SOURCE, SECRET = "trusting", "a secret of sixteen or more"
LEDGER = f"lockstep-ledger.{SOURCE}.internal"


@dataclass
class Stage:
    """A flow that no job runs, and clients of both clusters."""

    config: Path
    source: KafkaCluster
    target: KafkaCluster

    def run(self, *command: str) -> str:
        """What a command says; an exception counts as what it says."""
        found = CliRunner().invoke(app, [*command, "--config", str(self.config)])
        return found.output + (str(found.exception) if found.exception else "")

    def write(self, **lines: str) -> None:
        """Appends keys to the file."""
        text = self.config.read_text()
        self.config.write_text(
            text + "".join(f"{name.replace('__', '.')} = {value}\n" for name, value in lines.items())
        )


@pytest.fixture
def stage(clusters: Clusters, tmp_path: Path) -> Iterator[Stage]:
    config = write_properties(tmp_path, clusters.a, clusters.b, "trusting-.*", source=SOURCE)
    with client_of(clusters.a) as source, client_of(clusters.b) as target:
        yield Stage(config, source, target)
        target.delete_topics([LEDGER])
        wait_for(lambda: LEDGER not in target.list_topics(), SOON, "the ledger to be gone")


def test_exchanged_addresses_write_nothing_to_the_source(stage: Stage, clusters: Clusters) -> None:
    assert "topic is paused" in stage.run("pause", "topic")
    stage.write(trusting__bootstrap__servers=clusters.b.bootstrap, b__bootstrap__servers=clusters.a.bootstrap)
    for command in (("pause", "acl"), ("apply", "--yes"), ("validate",)):
        assert "are exchanged. Nothing is written" in stage.run(*command)
    assert LEDGER not in stage.source.list_topics()


def test_id_in_the_file_must_be_the_cluster_s(stage: Stage) -> None:
    stage.write(b__lockstep__cluster__id="another")
    assert "b.lockstep.cluster.id says another: nothing is written" in stage.run("pause", "topic")
    assert LEDGER not in stage.target.list_topics()


def test_unsigned_ledger_is_refused_under_a_secret_until_it_was_signed(stage: Stage) -> None:
    assert "topic is paused" in stage.run("pause", "topic")
    stage.write(lockstep__ledger__secret=SECRET)
    assert "it is not signed" in stage.run("pause", "acl")
    assert "records are signed" in stage.run("ledger", "sign", "--yes")
    assert "acl is paused" in stage.run("pause", "acl")
    signed = Ledger(LEDGER, stage.target, None, 1, seal=Seal(f"{SOURCE}->b", SECRET))
    assert signed.paused() == {Kind.TOPIC, Kind.ACL}
    stage.target.append_log(LEDGER, [(b'["PAUSED","topic"]', None)])
    assert "it is not signed" in stage.run("validate")


def test_ledger_keeps_its_name_under_another_separator_for_those_who_sign_it_and_ask_for_rights(stage: Stage) -> None:
    assert "topic is paused" in stage.run("pause", "topic")
    stage.write(replication__policy__separator="_", lockstep__ledger__secret=SECRET)
    assert f"->b: {LEDGER}" in stage.run("ledger", "sign", "--yes")
    assert "acl is paused" in stage.run("pause", "acl")
    assert f"may write or delete {LEDGER}: " in stage.run("validate", "--rights")


def test_ledger_that_something_else_made_is_refused(stage: Stage) -> None:
    stage.target.create_log(LEDGER, None, {"cleanup.policy": "delete"})
    assert "cleanup.policy=delete, under which it forgets" in stage.run("pause", "topic")
    assert stage.target.read_log(LEDGER) == []


def test_validate_says_who_may_write_the_ledger(stage: Stage) -> None:
    said = stage.run("validate", "--rights")
    assert f"may write or delete {LEDGER}: " in said
    assert "its entries are not signed" in said


def test_first_contact_of_a_command_pins_both_clusters_in_the_ledger(stage: Stage) -> None:
    stage.run("pause", "topic")
    known = Ledger(LEDGER, stage.target, None, 1)
    assert known.get(Entry.CLUSTER_ID, SOURCE) == stage.source.cluster_id()
    assert known.get(Entry.CLUSTER_ID, "b") == stage.target.cluster_id()
