"""A canary on real brokers: a value that goes well is everywhere afterwards, one that does not is nowhere."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.output import FAILED
from app.local.jars import PROJECT
from app.local.waiting import wait_for
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ResourceType
from tests.kafka.configs_tool.conftest import SOON, Three

NAME = "background.threads"
ONE, TWO = (ConfigEntity(ResourceType.BROKER, name) for name in "12")
CANARY = ("--alter", "--entity-type", "brokers", "--entity-default", "--canary", "2")


@pytest.fixture
def quiet(three: Three, unique: str) -> Iterator[Three]:
    """The config is set nowhere, and a topic has a replica on every broker."""
    name = f"{unique}-canary"
    three.create(name, TopicSpec(1, 3))
    wait_for(lambda: not three.kafka.replicas().under_replicated, SOON, "all replicas")
    yield three
    for entity in (TWO, DEFAULT_OF_ALL):
        three.levels.alter({entity: {NAME: None}})
    for entity in (ONE, TWO):
        wait_for(lambda one=entity: value(three, one) == "10", SOON, "the value to be the built-in one")


def value(three: Three, entity: ConfigEntity) -> str | None:
    """What is in force at a broker."""
    return three.levels.describe([entity]).items[entity][NAME].value


def started(three: Three, log: Path) -> subprocess.Popen[bytes]:
    """A canary of five minutes, which a test ends: a broker may take long to stop on a busy machine."""
    command = [sys.executable, "-m", "app.main", "configs", "--bootstrap-server", three.cluster.bootstrap]
    arguments = [*command, *CANARY, "--canary-time", "300", "--add-config", f"{NAME}=12"]
    with log.open("wb") as out:
        child = subprocess.Popen(arguments, cwd=PROJECT, stdout=out, stderr=out, start_new_session=True)
    wait_for(lambda: "watching for 300 s" in log.read_text(), SOON, f"the canary to be watched (log {log})")
    assert (value(three, TWO), value(three, ONE)) == ("12", "10")
    return child


def test_value_that_goes_well_is_the_default_of_all_and_no_override_is_left(quiet: Three) -> None:
    quiet.done(*CANARY, "--canary-time", "2", "--add-config", f"{NAME}=12")
    for entity in (ONE, TWO):
        wait_for(lambda entity=entity: value(quiet, entity) == "12", SOON, "the value in force")
    wait_for(lambda: NAME not in quiet.own(TWO), SOON, "the canary's override to be gone")
    assert quiet.own(DEFAULT_OF_ALL)[NAME] == "12"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_it_gets_everything_as_it_was(quiet: Three, tmp_path: Path, number: int) -> None:
    log = tmp_path / "canary.log"
    child = started(quiet, log)
    child.send_signal(number)
    assert child.wait(SOON) == FAILED
    assert "taken back: everything is as it was before" in log.read_text()
    wait_for(lambda: value(quiet, TWO) == "10", SOON, "the value to be taken back")
    assert NAME not in {**quiet.own(TWO), **quiet.own(DEFAULT_OF_ALL)}


def test_replicas_that_fall_behind_take_it_back(quiet: Three, tmp_path: Path) -> None:
    log = tmp_path / "canary.log"
    child = started(quiet, log)
    quiet.cluster.stop_node(3)
    try:
        assert child.wait(SOON) == FAILED
    finally:
        quiet.cluster.start_node(3)
    assert "partitions are under-replicated that were not before" in log.read_text()
    wait_for(lambda: value(quiet, TWO) == "10", SOON, "the value to be taken back")
    assert NAME not in {**quiet.own(TWO), **quiet.own(DEFAULT_OF_ALL)}
