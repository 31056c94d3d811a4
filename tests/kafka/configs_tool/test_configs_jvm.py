"""The Java process behind the command: none is left, and one that does not start is told."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psutil
import pytest

from app.local.java_gateway import GatewayProcess
from streaming.errors import LockstepError


def test_process_that_is_closed_is_gone() -> None:
    with closing(GatewayProcess()) as started:
        pid = int(started.gateway().jvm.java.lang.ProcessHandle.current().pid())
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)


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


def test_missing_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(LockstepError, match="install Java 17 or 21"):
        GatewayProcess()
