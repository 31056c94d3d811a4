"""A small Java process with Kafka's client, through which commands ask and change clusters.

It starts, and loads the classes that every command needs, while Python still imports. From the second command on it
loads its classes from an archive that the first one wrote (Java's class data sharing), which takes a third of the time.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from app.local.children import KILLED_WITHIN_S
from app.local.jar_sets import own_home
from app.local.jars import connector_jars, named_jars, pyspark_jar
from app.local.java import QUICK_START, java
from sinks.background import begun
from streaming.errors import LockstepError

PYSPARK_JARS: Final = (
    "py4j-*.jar",
    "jackson-core-2*.jar",
    "jackson-annotations-2*.jar",
    "jackson-databind-2*.jar",
    "slf4j-api-*.jar",
    "lz4-java-*.jar",
    "snappy-java-*.jar",
    "zstd-jni-*.jar",
)
"""Jars of pyspark that Kafka's client and the gateway need."""

OPTIONS: Final = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    *QUICK_START,
    "-Djava.lang.invoke.MethodHandle.COMPILE_THRESHOLD=50",
    "-Dslf4j.internal.verbosity=ERROR",
)
MAIN: Final = ("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0")
GATEWAY_STARTS_WITHIN: Final = 180.0
"""Seconds until Java must print its port, even on a busy machine."""

NICED: Final = 19
"""Nice value of a process that only writes its archive, because nothing waits for it."""

MOVES_WHOLE: Final = 'part=$1 whole=$2; shift 2; "$@" && mv "$part" "$whole" || rm -f "$part"'
ARCHIVES: Final = "class-archives"
OTHERS_MAY_WRITE: Final = 0o022
JAVA_VARIABLES: Final = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
"""Variables from which Java reads options."""
LEFT_AFTER: Final = 600.0
"""Seconds after which an incomplete archive counts as abandoned."""


class GatewayProcess:
    """The small JVM of a command. It starts with this object and ends with this program.

    It runs in a session of its own, so that Ctrl-C does not end it while this program finishes its work. Clients need a
    secret that only this program has. Raises LockstepError if Java or a jar is missing.
    """

    def __init__(self) -> None:
        self._program = java()
        jars = [*(pyspark_jar(one) for one in PYSPARK_JARS), *connector_jars(), *named_jars()]
        self._archive = _Archive(self._program, jars)
        options = (*OPTIONS, *self._archive.options())
        self._command = [
            *self._archive.around(),
            *(self._program, *options, "-cp", os.pathsep.join(map(str, jars)), *MAIN),
        ]
        try:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise self._failed() from error
        self._lock = threading.Lock()
        self._gateway: Any = None
        self._used = False

    def gateway(self) -> Any:
        """Returns py4j's gateway once the process listens. Raises LockstepError if it does not start."""
        self._used = True
        return self._reached()

    def load_classes(self) -> None:
        """Lets Java load the classes that its first Admin needs. Raises as `gateway`."""
        from sinks.kafka.jvm.java_rows import load_admin

        load_admin(self._reached())

    def _reached(self) -> Any:
        with self._lock:
            if self._gateway is None:
                self._gateway = self._connected()
            return self._gateway

    def _connected(self) -> Any:
        from app.local.gateway_client import connected

        said = _lines(self.process.stdout, 2, GATEWAY_STARTS_WITHIN)
        if len(said) < 2 or not said[0].isdigit() or not said[1]:
            raise self._failed()
        return connected(int(said[0]), said[1])

    def _failed(self) -> LockstepError:
        return LockstepError(f"{self._program} does not start: run `{self._program} {' '.join(OPTIONS)} -version`")

    def close(self) -> None:
        """Ends the process. A process that creates the archive writes it at low priority, and may outlive this
        program."""
        runs = self.process.poll() is None
        keeps = self._used and self._archive.part is not None and runs
        if runs and not keeps:
            # Before the lock: a thread that has it may be waiting for Java.
            os.killpg(self.process.pid, signal.SIGKILL)
        with self._lock:
            reached, self._gateway = self._gateway, None
        if reached is not None:
            reached.close()
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        if keeps:
            with suppress(OSError):
                os.setpriority(os.PRIO_PGRP, self.process.pid, NICED)
            return
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(KILLED_WITHIN_S)
        self._archive.give_up()


class _Archive:
    """The archive of classes that the process loads. The first process creates it, and moves it to its place once it is
    complete.

    It has no checksum, so it is used only if no other user could have written it. `part`: the unfinished archive; None
    if the process does not create one.
    """

    def __init__(self, program: str, jars: Sequence[Path]) -> None:
        digest = hashlib.sha256(repr((os.path.realpath(program), OPTIONS)).encode())
        for jar in jars:
            found = jar.stat()
            digest.update(f"{jar}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
        self._path = own_home() / ARCHIVES / f"commands-{digest.hexdigest()[:16]}.jsa"
        self.part: Path | None = None

    def options(self) -> tuple[str, ...]:
        """Returns the Java options that use the class archive, or create it; empty if neither is safe."""
        if self._path.is_file():
            is_safe = _is_own(self._path) and _is_own(self._path.parent)
            return (f"-XX:SharedArchiveFile={self._path}", "-Xshare:auto", "-Xlog:disable") if is_safe else ()
        if any("SharedArchiveFile" in os.environ.get(variable, "") for variable in JAVA_VARIABLES):
            # Java ends at once where it is to make an archive over one that is no base.
            return ()
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return ()
        if not _is_own(self._path.parent):
            return ()
        for left in self._path.parent.glob(f".{self._path.name}.*.part"):
            # Another program may have moved its own to its place meanwhile.
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > LEFT_AFTER:
                    # Of a program that was killed.
                    left.unlink()
        self.part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        return (f"-XX:ArchiveClassesAtExit={self.part}", "-Xlog:disable")

    def around(self) -> tuple[str, ...]:
        """Returns the shell command that wraps Java's. It moves a complete archive to its place after Java has ended,
        and deletes an incomplete one."""
        if self.part is None:
            return ()
        return ("/bin/sh", "-c", MOVES_WHOLE, "sh", str(self.part), str(self._path))

    def give_up(self) -> None:
        """Deletes the unfinished archive."""
        if self.part is not None:
            with suppress(OSError):
                self.part.unlink(missing_ok=True)


def _lines(output: IO[bytes] | None, number: int, within: float) -> list[str]:
    """Returns the first lines of a pipe with no other reader. Returns fewer if the pipe ends or the time runs out."""
    read, until = b"", time.monotonic() + within
    while output is not None and read.count(b"\n") < number:
        ready, _, _ = select.select([output], [], [], max(0.0, until - time.monotonic()))
        part = os.read(output.fileno(), 4096) if ready else b""
        if not part:
            break
        read += part
    return read.decode(errors="replace").split("\n")[:-1][:number]


def _is_own(path: Path) -> bool:
    found = path.stat()
    return found.st_uid == os.getuid() and not found.st_mode & OTHERS_MAY_WRITE


_lock = threading.Lock()
_running: list[GatewayProcess] = []
_adopted: list[Any] = []


def begin_jvm() -> None:
    """Starts this program's JVM without waiting for it, unless it runs. A later call reports problems with Java."""
    with suppress(LockstepError):
        begun(_process().load_classes, "classes of the JVM")


def process_jvm() -> Any:
    """Returns py4j's gateway to the only JVM of this program: the small process, or the driver's JVM in a job. Raises
    LockstepError if Java does not start."""
    return _adopted[-1] if _adopted else _process().gateway()


@contextmanager
def adopted_jvm(gateway: Any) -> Iterator[None]:
    """Uses another JVM of the program while the block runs. Ends the small process."""
    with _lock:
        small = list(_running)
        _running.clear()
        _adopted.append(gateway)
    for process in small:
        process.close()
    try:
        yield
    finally:
        _adopted.remove(gateway)


def _process() -> GatewayProcess:
    with _lock:
        if not _running:
            started = GatewayProcess()
            _running.append(started)
            atexit.register(started.close)
        return _running[0]
