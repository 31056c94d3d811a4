"""Base classes of local brokers, MM2 and the job: a `with` block starts and stops them.

Also their logging configuration: warnings to stdout, and MM2's line that it has started.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from app.local.java import JavaProcess, stop_all
from app.local.waiting import wait_for

T = TypeVar("T", bound="Startable")


class Startable(ABC):
    """Calls `start` at the start of a `with` block and `stop` at its end."""

    @abstractmethod
    def start(self) -> None:
        """Starts the service."""

    @abstractmethod
    def stop(self) -> object:
        """Stops the service, if it runs."""

    def __enter__(self: T) -> T:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class JavaService(Startable):
    """A service of Java processes, with logs in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._processes: list[JavaProcess] = []

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes if process.runs]

    def check(self) -> None:
        """Raises LockstepError with the end of its log if a process has ended."""
        for process in self._processes:
            process.check()

    def stop(self) -> None:
        """Stops every process with SIGTERM; data stays."""
        stop_all(self._processes)
        self._processes = []

    def kill(self) -> None:
        """Sends SIGKILL to every process, as a crash; data stays."""
        for process in self._processes:
            process.kill()
        self._processes = []

    def _wait_for(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        """Waits until `ready` returns True. Raises LockstepError after stopping everything."""
        try:
            wait_for(ready, timeout, what)
        except BaseException:
            self.stop()
            raise


LOG4J_2: Final = """status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %X{connector.context}%m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.mirror.name = org.apache.kafka.connect.mirror
logger.mirror.level = info
"""
LOG4J_1: Final = """log4j.rootLogger = WARN, out
log4j.appender.out = org.apache.log4j.ConsoleAppender
log4j.appender.out.layout = org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern = %d %p %c{1} %X{connector.context}%m%n
log4j.logger.org.apache.kafka.connect.mirror = INFO
"""
"""The log4j configuration of Kafka 3 and 2."""

FILES: Final[Mapping[str, tuple[str, str]]] = {
    "log4j2.properties": ("log4j2.configurationFile", LOG4J_2),
    "log4j.properties": ("log4j.configuration", LOG4J_1),
}
"""By file name: Java's property for the file, and its text. Each Kafka version has one of the two libraries."""


def logging_options(folder: Path) -> list[str]:
    """Writes the logging configurations into the folder. Returns the JVM options that use them."""
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    for name, (option, text) in FILES.items():
        path = folder.resolve() / name
        path.write_text(text, encoding="utf-8")
        options.append(f"-D{option}={path.as_uri()}")
    return options
