"""What `lockstep demo --keep` says to try can be tried: addresses, and commands whose options exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from app.cli.lazy_commands import COMMANDS
from app.demo.demo import CONFIG, what_to_try
from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob


@pytest.fixture
def told(tmp_path: Path) -> list[str]:
    clusters = (LocalCluster(alias, tmp_path / alias) for alias in ("a", "b"))
    return what_to_try(LocalJob(CONFIG, 9464, tmp_path / "job.log"), *clusters)


def test_the_page_and_the_brokers_have_their_addresses(told: list[str]) -> None:
    text = "\n".join(told)
    assert "http://127.0.0.1:9464/" in text
    assert text.count("127.0.0.1:") == 3


def test_every_command_that_it_names_is_there_with_its_options(told: list[str]) -> None:
    commands = [shlex.split(line)[1:] for line in told if "lockstep " in line]
    assert len(commands) == 7
    for name, *arguments in commands:
        known = {option for parameter in COMMANDS[name].load(name).params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("--")} <= known
        assert any(word.endswith("mirror.properties") for word in arguments)


def test_the_change_is_made_on_the_source_and_looked_for_on_the_target(told: list[str]) -> None:
    alter, describe = (shlex.split(line) for line in told if " configs " in line)
    assert alter[alter.index("--cluster") + 1] == "a"
    assert describe[describe.index("--cluster") + 1] == "b"
    assert describe[describe.index("--topic") + 1] == f"a.{alter[alter.index('--topic') + 1]}"
