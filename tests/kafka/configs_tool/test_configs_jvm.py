"""The Java process behind the command: none is left, and one that does not start is told."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from app.local import java_gateway
from app.local.java_gateway import GatewayProcess
from app.local.waiting import wait_for
from streaming.errors import LockstepError

SOON = 180.0


def test_process_that_is_closed_is_gone() -> None:
    with closing(GatewayProcess()) as started:
        pid = int(started.gateway().jvm.java.lang.ProcessHandle.current().pid())
        assert psutil.pid_exists(pid)
    # One that makes the archive of classes writes it first.
    wait_for(lambda: not psutil.pid_exists(pid), SOON, "the process to be gone")


def test_java_that_does_not_start_is_told_with_a_command_that_shows_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17.0.1"\' >&2 || exit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(LockstepError, match=f"{program} does not start: run"), closing(GatewayProcess()) as started:
        started.gateway()


def test_java_that_starts_and_says_nothing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    version = '[ "$1" = -version ] && echo \'openjdk version "17.0.1"\' >&2 && exit'
    program.write_text(f"#!/bin/sh\n{version}\nexec cat >/dev/null\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java_gateway, "GATEWAY_STARTS_WITHIN", 0.5)
    with pytest.raises(LockstepError, match=f"{program} does not start: run"), closing(GatewayProcess()) as started:
        started.gateway()


def test_nobody_waits_for_the_archive_of_classes_and_the_next_process_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(java_gateway, "own_home", lambda: tmp_path)
    first = GatewayProcess()
    first.gateway().jvm.java.lang.System.currentTimeMillis()
    os.killpg(first.process.pid, signal.SIGSTOP)
    first.close()
    assert not list(tmp_path.glob("*/*.jsa"))
    os.killpg(first.process.pid, signal.SIGCONT)
    wait_for(lambda: bool(list(tmp_path.glob("*/*.jsa"))), SOON, "the archive")
    assert first.process.wait(SOON) == 0
    assert not list(tmp_path.glob("*/.*"))
    with closing(GatewayProcess()) as second:
        assert any("SharedArchiveFile" in word for word in psutil.Process(second.process.pid).cmdline())
        assert second.gateway().jvm.java.lang.System.currentTimeMillis() > 0


@pytest.mark.parametrize("variable", java_gateway.JAVA_VARIABLES)
def test_java_whose_own_options_name_an_archive_starts_and_makes_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    """Java refuses to make one archive over another."""
    monkeypatch.setattr(java_gateway, "own_home", lambda: tmp_path)
    monkeypatch.setenv(variable, f"-XX:SharedArchiveFile={tmp_path / 'another.jsa'} -Xshare:auto")
    with closing(GatewayProcess()) as started:
        assert started.gateway().jvm.java.lang.System.currentTimeMillis() > 0
    assert not list(tmp_path.glob("*/*"))


def test_missing_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(LockstepError, match="install Java 17, 21 or 25"):
        GatewayProcess()
