"""A Java that does not even say its version is an error, and no wait without an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.local import java as module
from app.local.java import java
from streaming.errors import LockstepError


def test_java_that_does_not_say_its_version_is_named_after_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 20\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(module, "SAYS_VERSION_WITHIN_S", 0.2)
    with pytest.raises(LockstepError, match=r"did not answer within 0\.2 s: set JAVA_HOME"):
        java()
