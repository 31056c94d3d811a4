"""A callback handler of an operator's own, in a jar: it reads tokens from a file, as handlers of cloud providers do."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Final

import pytest

from app.local.jars import connector_jars

HANDLER: Final = "acme.TokenFile"
FILE_OPTION: Final = "acmeTokenFile"
SOURCE: Final = Path(__file__).resolve().with_name("TokenFile.java")


def handler_jar(folder: Path) -> Path:
    """The jar, compiled now; the test is skipped where Java has no compiler."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("no javac on PATH: it comes with a JDK")
    jar = folder / "acme-login.jar"
    (clients,) = (str(one) for one in connector_jars() if one.name.startswith("kafka-clients"))
    subprocess.run([compiler, "-cp", clients, "-d", str(folder), str(SOURCE)], check=True, timeout=900)
    with zipfile.ZipFile(jar, "w") as file:
        for made in (folder / "acme").glob("*.class"):
            file.write(made, f"acme/{made.name}")
    return jar
