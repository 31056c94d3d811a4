"""Runs Java programs: finds `java`, and starts a main class as a child process with a log file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from app.local import children
from streaming.errors import LockstepError

VERSIONS = (17, 21, 25)
"""Java versions on which both Spark 4 and Kafka 4 run."""

QUICK_START = ("-XX:TieredStopAtLevel=1",)
"""JVM options for short runs, as in tests: a broker starts with two thirds of the CPU time, but runs slower."""

RELEASE = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)

SAYS_VERSION_WITHIN_S = 30.0

LOG_LINES = 20


def java() -> str:
    """Returns the path of a suitable `java`: JAVA_HOME's, else PATH's. Raises LockstepError if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        where = f"in JAVA_HOME={home}" if home else "on PATH"
        raise LockstepError(f"no java {where}: install Java 17, 21 or 25, and set JAVA_HOME to it")
    if _version(found) not in VERSIONS:
        raise LockstepError(f"{found} is Java {_version(found)}, 17, 21 or 25 is needed: set JAVA_HOME to one of them")
    return found


@cache
def _version(program: str) -> int | None:
    """Returns the Java version from the file that every JDK has beside its programs. Without that file, asks the
    program."""
    with suppress(OSError):
        said = (Path(program).resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
        if found := RELEASE.search(said):
            return int(found.group(1))
    try:
        ended = subprocess.run(
            [program, "-version"], capture_output=True, text=True, check=False, timeout=SAYS_VERSION_WITHIN_S
        )
    except subprocess.TimeoutExpired:
        waited = f"{SAYS_VERSION_WITHIN_S:g} s"
        raise LockstepError(
            f"{program} -version did not answer within {waited}: set JAVA_HOME to a Java 17, 21 or 25 that does"
        ) from None
    said = ended.stderr
    found = re.search(r'version "(\d+)', said)
    return int(found.group(1)) if found else None


class JavaProcess:
    """A process of one main class. It starts when this object is created, and ends with the `with` block or the
    program. `environment`: further variables."""

    def __init__(
        self,
        main: str,
        arguments: Sequence[str],
        classpath: Sequence[Path],
        log: Path,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.main, self.log = main, log
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log_start = log.stat().st_size if log.exists() else 0
        joined = os.pathsep.join(str(path) for path in classpath)
        self._child = children.spawn([java(), *options, "-cp", joined, main, *arguments], log, environment=environment)

    def __enter__(self) -> JavaProcess:
        return self

    def __exit__(self, *_: object) -> None:
        stop_all([self])

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def runs(self) -> bool:
        return self._child.poll() is None

    def output(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode("utf-8", errors="replace")

    def check(self) -> None:
        """Raises LockstepError with the end of its output if the process has ended."""
        code = self._child.poll()
        if code is not None:
            end = "\n".join(self.output().splitlines()[-LOG_LINES:])
            raise LockstepError(f"{self.main} ended with exit code {code}; the end of {self.log}:\n{end}")

    def succeeded(self) -> bool:
        """Returns whether the process has ended without error. Raises LockstepError with the end of its output if it
        failed."""
        code = self._child.poll()
        if code:
            self.check()
        return code == 0

    def kill(self) -> None:
        children.kill(self._child)

    def stop(self) -> None:
        """Sends SIGTERM, then SIGKILL if the process does not end."""
        children.stop(self._child)


def stop_all(processes: Sequence[JavaProcess]) -> None:
    """Stops all processes at the same time as `JavaProcess.stop` does, because nodes of one quorum wait for each
    other."""
    children.stop(*(process._child for process in processes))
