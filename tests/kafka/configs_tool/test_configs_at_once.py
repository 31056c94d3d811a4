"""Two who alter at once on real brokers: each is told what became of it, and what one alone names stays."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.output import DONE, FAILED
from app.configs_tool.alter import ConcurrentAlteration, checked, known_configs, validate, write
from app.local.jars import PROJECT
from app.local.waiting import wait_for
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import ConfigEntity, ResourceType
from tests.kafka.configs_tool.conftest import SOON, Three
from tests.kafka.configs_tool.write_proxy import at_writes

pytestmark = pytest.mark.endurance

TWO = ConfigEntity(ResourceType.BROKER, "2")
BROKER = ("--entity-type", "brokers", "--entity-name", "2")
NAME, OTHER = "background.threads", "num.io.threads"


@pytest.fixture
def shared(three: Three) -> Iterator[Three]:
    """Broker 2 has one value of its own."""
    three.levels.alter({TWO: {NAME: "11"}})
    wait_for(lambda: three.own(TWO) == {NAME: "11"}, SOON, "broker 2 to have its value alone")
    yield three
    three.levels.alter({TWO: dict.fromkeys((NAME, OTHER))})
    wait_for(lambda: three.own(TWO) == {}, SOON, "broker 2 to have nothing of its own")


def has(three: Three, **values: str) -> None:
    """Waits until broker 2 has exactly these."""
    wanted = {name.replace("_", "."): value for name, value in values.items()}
    wait_for(lambda: three.own(TWO) == wanted, SOON, f"broker 2 to have {wanted}, not {three.own(TWO)}")


def started(three: Three, added: str, log: Path) -> subprocess.Popen[bytes]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "app.main", "configs", "--bootstrap-server", three.cluster.bootstrap]
    with log.open("wb") as out:
        arguments = [*command, "--alter", *BROKER, "--add-config", added]
        return subprocess.Popen(arguments, cwd=PROJECT, stdout=out, stderr=out)


def both(three: Three, folder: Path, first: str, second: str) -> list[tuple[int, str]]:
    """Two commands that run side by side: exit codes, and what they said."""
    logs = [folder / "first.log", folder / "second.log"]
    children = [started(three, added, log) for added, log in zip((first, second), logs, strict=True)]
    try:
        return [(child.wait(timeout=3 * SOON), log.read_text()) for child, log in zip(children, logs, strict=True)]
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_two_commands_for_different_configs_of_a_broker_are_both_done(shared: Three, tmp_path: Path) -> None:
    ran = both(shared, tmp_path, f"{NAME}=12", f"{OTHER}=9")
    assert [code for code, _ in ran] == [DONE, DONE], ran
    has(shared, background_threads="12", num_io_threads="9")


def test_of_two_commands_for_the_same_config_one_holds_and_who_fails_is_told_why(shared: Three, tmp_path: Path) -> None:
    ran = both(shared, tmp_path, f"{NAME}=12", f"{NAME}=13")
    now = shared.own(TWO)[NAME]
    assert now in ("12", "13")
    assert DONE in [code for code, _ in ran], ran
    for code, said in ran:
        assert code == DONE or (code == FAILED and "another client" in said), ran


@pytest.mark.parametrize(("theirs", "now"), [(("--add-config", f"{NAME}=12"), "12"), (("--delete-config", NAME), None)])
def test_what_kafkas_tool_wrote_between_look_and_write_is_told_and_stays(
    shared: Three, theirs: tuple[str, str], now: str | None
) -> None:
    alteration, _ = checked(TWO, {NAME: "13", OTHER: "9"}, known_configs(shared.levels, TWO))
    validate(shared.levels, alteration)
    shared.kafka_configs("--alter", *BROKER, *theirs)
    wait_for(lambda: shared.own(TWO).get(NAME) == now, SOON, "the broker to show what Kafka's tool wrote")
    with pytest.raises(ConcurrentAlteration, match=rf"{NAME} is {now or 'not set'}, was 11; nothing was written"):
        write(shared.levels, alteration, lambda seconds: False)
    assert shared.own(TWO) == ({NAME: now} if now else {})


def test_other_config_that_kafkas_tool_wrote_in_between_stays_beside_ours(shared: Three) -> None:
    alteration, _ = checked(TWO, {NAME: "13"}, known_configs(shared.levels, TWO))
    validate(shared.levels, alteration)
    shared.kafka_configs("--alter", *BROKER, "--add-config", f"{OTHER}=9")
    assert write(shared.levels, alteration, lambda seconds: False) in (True, False)
    has(shared, background_threads="13", num_io_threads="9")


def test_what_comes_right_before_the_write_is_overwritten_in_the_named_configs_alone(shared: Three) -> None:
    def theirs() -> None:
        shared.levels.alter({TWO: {NAME: "12", OTHER: "9"}})
        shared.shows(TWO, NAME, ("12", Origin.BROKER), ("10", Origin.DEFAULT))

    with at_writes(shared.cluster, before=theirs) as bootstrap:
        ran = shared.run("--alter", *BROKER, "--add-config", f"{NAME}=13", client={"bootstrap.servers": bootstrap})
    assert ran.code == DONE, ran
    has(shared, background_threads="13", num_io_threads="9")


def test_what_comes_right_behind_the_write_holds_and_the_command_says_so(shared: Three) -> None:
    def theirs() -> None:
        shared.levels.alter({TWO: {NAME: "12"}})
        shared.shows(TWO, NAME, ("12", Origin.BROKER), ("10", Origin.DEFAULT))

    with at_writes(shared.cluster, after=theirs) as bootstrap:
        ran = shared.run("--alter", *BROKER, "--add-config", f"{NAME}=13", client={"bootstrap.servers": bootstrap})
    assert ran.code == FAILED, ran
    assert f"written, but another client wrote at the same time, and its values won: {NAME} is 12, was 11" in ran.err
    has(shared, background_threads="12")
