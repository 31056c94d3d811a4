"""Downloads jars once with pyspark's Ivy, and compares them with checksums. Needs only Java.

Ivy gets a home folder of its own, because a POM without its jar in this machine's `~/.m2` would end the download.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path

from app.local.jar_sets import CONNECTORS, KAFKA, KAFKA_JARS, NAMED, PROJECT, Connector, JarSet, own_home
from app.local.java import java
from sinks.lock_file import locked
from streaming.errors import LockstepError

__all__ = ["KAFKA", "PROJECT", "connector_jars", "fetched", "kafka_jars", "named_jars", "pyspark_jar"]

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
PART = "part-"
"""Prefix of the folder of an unfinished download."""

BLOCK = 1 << 20
"""Bytes of a jar that are read at once."""

SHOWN_EVERY = 10
"""Jars between two progress lines if stderr is not a terminal."""


def kafka_jars() -> list[Path]:
    """Returns the jars of brokers, tools and MM2, about 55 MB. The first call downloads them (a minute), all or none.
    Raises LockstepError if Java is missing or the download fails."""
    return fetched(KAFKA_JARS)


def connector_jars() -> list[Path]:
    """Returns the Kafka connector for the installed Spark, about 10 MB. Raises as `kafka_jars`."""
    # The version of the installed pyspark, which is not imported.
    spark = pyspark_jar("spark-core_*.jar").stem.split("-")[2]
    return fetched(connector_for(spark).jars)


def named_jars() -> list[Path]:
    """Returns the jars in LOCKSTEP_JARS, for every JVM with Kafka's client. Raises LockstepError if one is missing."""
    jars = [Path(name.strip()).expanduser() for name in os.environ.get(NAMED, "").split(",") if name.strip()]
    if (missing := next((jar for jar in jars if not jar.is_file() or not os.access(jar, os.R_OK)), None)) is not None:
        raise LockstepError(
            f"{NAMED} names {missing}, which this user cannot read as a file: put the jar there, or correct the "
            f"variable; several are separated by commas"
        )
    return [jar.resolve() for jar in jars]


def connector_for(spark: str) -> Connector:
    """Returns the newest connector for a version of Spark, such as `4.3.0`. Raises LockstepError if none is known."""
    connector = CONNECTORS.get(".".join(spark.split(".")[:2]))
    if connector is None:
        raise LockstepError(
            f"No Kafka connector is known for Spark {spark}: Lockstep runs on Spark {', '.join(CONNECTORS)}. Install "
            f"one of these, or name a connector yourself with --packages or --jars"
        )
    return connector


def fetched(jars: JarSet, root: Path | None = None) -> list[Path]:
    """Returns the jars of a set, in a folder of its name below `root` (default: `jars` of `home()`). Downloads them if
    needed. Raises LockstepError.

    Each call compares the jars with the checksums, even old ones. Leaves out other files in the folder.
    """
    root = root or own_home() / "jars"
    folder = root / jars.name
    if not folder.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        with _alone(root):
            if not folder.is_dir():
                _fetch(root, folder, jars)
    return _checked(folder, jars)


FETCHED_WITHIN_S = 900.0
"""Seconds to wait for another process that downloads jars."""


def _alone(root: Path) -> AbstractContextManager[object]:
    """Lets one process at a time download; others wait. Raises LockstepError."""
    lock = root / "lock"
    try:
        return locked(lock, within=FETCHED_WITHIN_S)
    except OSError as error:
        raise LockstepError(
            f"the lock {lock} of the jars' folder cannot be opened: {error.strerror}. It must be a file "
            f"that this user may write: delete what is there"
        ) from error


def pyspark_jar(pattern: str) -> Path:
    """Returns a jar of pyspark, without importing pyspark. Raises LockstepError if there is none."""
    spec = find_spec("pyspark")
    folders = spec.submodule_search_locations if spec else None
    found = next((jar for folder in folders or () for jar in Path(folder).glob(f"jars/{pattern}")), None)
    if found is None:
        raise LockstepError(f"pyspark came without its jar {pattern}: install pyspark from PyPI")
    return found


def download(work: Path, folder: Path, jars: JarSet) -> Path:
    """Downloads a set into a folder below `work`, and returns that. `folder`: the folder that an error tells the user
    to fill instead."""
    dependencies = "\n".join(DEPENDENCY.format(*artifact, str(not jars.alone).lower()) for artifact in jars.artifacts)
    (work / "ivy.xml").write_text(MODULE.format(dependencies=dependencies), encoding="utf-8")
    code, said = _run(_ivy(work), folder)
    there = {path.name for path in (work / "libs").glob("*.jar")}
    if code or not there >= {f"{name}-{version}.jar" for _, name, version in jars.artifacts}:
        raise LockstepError(
            f"the jars {jars.name} could not be fetched. Maven Central must be within reach (through a proxy: set "
            f"JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=… -Dhttps.proxyPort=…); or put the jars that {jars.list_file} names "
            f"into {folder}. Ivy says:\n{said}"
        )
    return work / "libs"


def checksums(libs: Path) -> dict[str, str]:
    """Returns SHA-256 in hexadecimal of every jar in a folder, by file name."""
    return _digests(sorted(libs.glob("*.jar")))


def _digests(files: Iterable[Path]) -> dict[str, str]:
    return {file.name: _digest(file) for file in files}


def _digest(file: Path) -> str:
    """Returns a file's SHA-256. Raises OSError for anything but a regular file, because a pipe would block for ever."""
    with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as content:
        if not stat.S_ISREG(os.fstat(content.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        digest = hashlib.sha256()
        while block := content.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _fetch(root: Path, folder: Path, jars: JarSet) -> None:
    for left in root.glob(f"{PART}*"):
        # Of a process that was killed: this one alone has the lock.
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=PART) as part:
        libs = download(Path(part), folder, jars)
        _check(jars.expected(), checksums(libs), jars)
        libs.rename(folder)


def _checked(folder: Path, jars: JarSet) -> list[Path]:
    """Returns the listed jars of a folder. Raises LockstepError if one is missing or does not match the list."""
    expected = jars.expected()
    try:
        found = _digests(jar for name in expected if (jar := folder / name).exists())
    except OSError as error:
        raise LockstepError(
            f"the jars in {folder} cannot be compared with {jars.list_file}: {error.strerror}: {error.filename}. Each "
            f"must be a regular file, or a link to one, that this user may read; or delete this folder, and the next "
            f"start fetches them again"
        ) from error
    if wrong := [f"{name} is {_state(name, found)}" for name in sorted(expected) if found.get(name) != expected[name]]:
        raise LockstepError(
            f"the jars in {folder} are not those that {jars.list_file} lists, and are not used: {'; '.join(wrong)}. "
            f"Delete this folder, and the next start fetches them again; or put the jars of the list there"
        )
    return [folder / name for name in sorted(expected)]


def _check(expected: Mapping[str, str], found: Mapping[str, str], jars: JarSet) -> None:
    """Raises LockstepError unless the folder has exactly the listed jars."""
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        what = [f"{name} is {'not in the list' if name not in expected else _state(name, found)}" for name in wrong]
        raise LockstepError(
            f"the fetched jars differ from {jars.list_file}, and are not used: {'; '.join(what)}. Fetch again; if it "
            f"stays so, something between here and Maven Central changes jars"
        )


def _state(name: str, found: Mapping[str, str]) -> str:
    return f"another file (SHA-256 {found[name]})" if name in found else "missing"


def _ivy(work: Path) -> list[str]:
    """Returns the command for one run of Ivy. Its cache and home folder are in `work`, so neither need exist."""
    return [
        *(java(), f"-Duser.home={work}", "-jar", str(pyspark_jar("ivy-2*.jar"))),
        *("-ivy", str(work / "ivy.xml"), "-confs", "default", "-cache", str(work / "cache")),
        *("-retrieve", f"{work}/libs/[artifact]-[revision].[ext]"),
    ]


def _run(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Runs Ivy with its progress on stderr. Returns its exit code and the end of its output."""
    last: deque[str] = deque(maxlen=IVY_LINES)
    found = downloaded = 0
    _say(f"fetching jars into {folder}, once", last=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        for line in ivy.stdout or ():
            last.append(line.rstrip())
            found += line.startswith("\tfound ")
            if line.startswith("\t[SUCCESSFUL ]"):
                downloaded += 1
                _say(f"{downloaded} of {found} jars", last=downloaded == found, seldom=downloaded % SHOWN_EVERY != 0)
            elif line.startswith("\tfound "):
                _say(f"resolving: {found} modules found", seldom=True)
    return ivy.returncode, "\n".join(last)


def _say(text: str, *, last: bool = False, seldom: bool = False) -> None:
    """Prints a line to stderr that the next one overwrites, unless it is the `last`. Only a terminal gets
    `seldom` lines."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}{chr(10) if last else ''}")
    elif last or not seldom:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
