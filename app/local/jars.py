"""Kafka's own jars, fetched once by the Ivy that pyspark ships: nothing but Java is needed."""

from __future__ import annotations

import fcntl
import subprocess
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pyspark
from rich.console import Console

from app.local.java import java
from streaming.errors import LockstepError

KAFKA = "4.3.1"
"""The version of brokers, tools and MM2."""

Artifact = tuple[str, str, str]
"""Organisation, name, version."""

ARTIFACTS: tuple[Artifact, ...] = (
    ("org.apache.kafka", "kafka_2.13", KAFKA),
    ("org.apache.kafka", "connect-mirror", KAFKA),
    ("org.apache.kafka", "kafka-tools", KAFKA),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)
PROJECT = Path(__file__).resolve().parent.parent.parent
ROOT = PROJECT / ".lockstep" / "jars"

MODULE = """<ivy-module version="2.0">
  <info organisation="lockstep" module="local"/>
  <configurations defaultconfmapping="default->default"><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
DEPENDENCY = '    <dependency org="{}" name="{}" rev="{}" transitive="{}"/>'
IVY_LINES = 12


def kafka_jars(root: Path = ROOT) -> list[Path]:
    """The jars of brokers, tools and MM2, about 55 MB; fetched at the first call (a minute), and whole or not at all.

    Raises LockstepError where Java is missing or the download fails.
    """
    return fetched(root / f"kafka-{KAFKA}", ARTIFACTS)


def fetched(folder: Path, artifacts: Sequence[Artifact], *, alone: bool = False) -> list[Path]:
    """The jars of these artifacts in `folder`; `alone`: without those that they need. Raises LockstepError."""
    root = folder.parent
    if not folder.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        with (root / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _fetch(root, folder, artifacts, alone)
    return sorted(folder.glob("*.jar"))


def _fetch(root: Path, folder: Path, artifacts: Sequence[Artifact], alone: bool) -> None:
    with tempfile.TemporaryDirectory(dir=root, prefix="part-") as part:
        work = Path(part)
        dependencies = "\n".join(DEPENDENCY.format(*artifact, str(not alone).lower()) for artifact in artifacts)
        (work / "ivy.xml").write_text(MODULE.format(dependencies=dependencies), encoding="utf-8")
        code, said = _run(_ivy(work), folder)
        jars = {path.name for path in (work / "libs").glob("*.jar")}
        if code or not jars >= {f"{name}-{version}.jar" for _, name, version in artifacts}:
            raise LockstepError(
                f"Kafka's jars could not be fetched. Maven Central must be within reach (through a proxy: set "
                f"JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=… -Dhttps.proxyPort=…); or put the jars into {folder}. "
                f"Ivy says:\n{said}"
            )
        (work / "libs").rename(folder)


def _ivy(work: Path) -> list[str]:
    """One invocation for all; with its cache and its idea of a home folder in `work`, so that neither need exist."""
    ivy = next(iter(Path(pyspark.__file__).parent.glob("jars/ivy-2*.jar")), None)
    if ivy is None:
        raise LockstepError("pyspark came without its Ivy jar: install pyspark 4.0 from PyPI")
    return [
        *(java(), f"-Duser.home={work}", "-jar", str(ivy)),
        *("-ivy", str(work / "ivy.xml"), "-confs", "default", "-cache", str(work / "cache")),
        *("-retrieve", f"{work}/libs/[artifact]-[revision].[ext]"),
    ]


def _run(command: list[str], folder: Path) -> tuple[int, str]:
    """Runs Ivy with a line of progress on stderr; returns its exit code and the end of what it said."""
    console = Console(stderr=True)
    console.print(f"Fetching jars into {folder} (once; Kafka's are about 55 MB)", soft_wrap=True)
    last: deque[str] = deque(maxlen=IVY_LINES)
    found = downloaded = 0
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy,
        console.status("resolving") as status,
    ):
        for line in ivy.stdout or ():
            last.append(line.rstrip())
            found += line.startswith("\tfound ")
            downloaded += line.startswith("\t[SUCCESSFUL ]")
            status.update(f"{downloaded} of {found} jars" if downloaded else f"resolving: {found} modules found")
    return ivy.returncode, "\n".join(last)
