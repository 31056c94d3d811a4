"""A Java's version: as the file beside it says, or as it says itself, and no wait without an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.local import java as module
from app.local.java import java
from streaming.errors import LockstepError


@pytest.fixture
def silent_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A `java` that does not say its version, in JAVA_HOME."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 20\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(module, "SAYS_VERSION_WITHIN_S", 0.2)
    return str(program)


def test_java_is_not_asked_for_the_version_that_its_release_file_says(silent_java: str, tmp_path: Path) -> None:
    release = tmp_path / "release"
    release.write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\nJAVA_VERSION_DATE="2024-01-16"\n')
    assert java() == silent_java


def test_a_java_whose_release_file_says_another_version_is_refused(silent_java: str, tmp_path: Path) -> None:
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_292"\n')
    with pytest.raises(LockstepError, match=f"{silent_java} is Java 1, 17, 21 or 25 is needed"):
        java()


def test_java_that_does_not_say_its_version_is_named_after_the_limit(silent_java: str) -> None:
    with pytest.raises(LockstepError, match=r"did not answer within 0\.2 s: set JAVA_HOME"):
        java()
