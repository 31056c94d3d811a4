"""What `lockstep demo --keep` says to try can be tried: addresses, and commands whose options exist."""

from __future__ import annotations

import shlex
import threading
from pathlib import Path

import pytest

from app.cli.demo_command import CONFIG, stay, what_to_try
from app.cli.lazy_commands import COMMANDS
from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from streaming.errors import LockstepError


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
    assert len(commands) == 8
    for name, *arguments in commands:
        known = {option for parameter in COMMANDS[name].load(name).params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("--")} <= known
        assert any(word.endswith("mirror.properties") for word in arguments)


def test_the_change_is_made_on_the_source_and_looked_for_on_the_target(told: list[str]) -> None:
    alter, describe = (shlex.split(line) for line in told if " configs " in line)
    assert alter[alter.index("--cluster") + 1] == "a"
    assert describe[describe.index("--cluster") + 1] == "b"
    assert describe[describe.index("--topic") + 1] == f"a.{alter[alter.index('--topic') + 1]}"


def test_the_clusters_stay_when_the_job_ends_which_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    asked, over = list[str](), threading.Event()

    def ended() -> None:
        asked.append("job")
        raise LockstepError("the job ended with exit code -9")

    def runs() -> None:
        asked.append("MM2")
        if asked.count("MM2") == 2:
            over.set()

    stay(["try this"], {"the job": ended, "MM2": runs}, over)
    assert asked == ["job", "MM2", "MM2"]
    assert capsys.readouterr().out == "\ntry this\nthe job has ended. The clusters stay until Ctrl-C.\n"
