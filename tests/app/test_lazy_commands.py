"""The list of commands is there without importing any, and each is imported when it is called."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import COMMANDS, app

HEAVY = ("pyspark", "confluent_kafka", "py4j", "httpx", "uvicorn", "fastavro", "rich.progress", "numpy")


def imported(*arguments: str) -> set[str]:
    """Which heavy modules a command has imported when it ends."""
    code = (
        "import sys\nfrom app.main import main\n"
        f"sys.argv[1:] = {list(arguments)}\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('imported', *[name for name in {HEAVY} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split()[1:])


def test_the_list_of_commands_imports_neither_spark_nor_a_client() -> None:
    assert imported("--help") == set()


@pytest.mark.parametrize("command", ["validate", "plan", "rights"])
def test_a_command_that_looks_once_imports_neither_spark_nor_a_server(command: str) -> None:
    assert imported(command, "--config", "nowhere").isdisjoint({"pyspark", "uvicorn", "rich.progress", "numpy"})


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_list_has_its_help(name: str) -> None:
    said = CliRunner().invoke(app, [name, "--help"])
    assert said.exit_code == 0
    assert f"Usage: lockstep {name} " in said.output
    assert "install-completion" not in said.output


def test_a_command_that_is_not_there_is_wrong_usage() -> None:
    said = CliRunner().invoke(app, ["nothing"])
    assert said.exit_code == 2
    assert "No such command 'nothing'" in said.output
