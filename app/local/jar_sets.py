"""The sets of jars to download, each with its list of SHA-256 checksums, and their folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streaming.errors import LockstepError

KAFKA: Final = "4.3.1"
"""The Kafka version of brokers, tools and MM2."""

PROJECT: Final = Path(__file__).resolve().parent.parent.parent
CHECKSUMS: Final = Path(__file__).resolve().parent / "checksums"
HOME: Final = "LOCKSTEP_HOME"
"""Environment variable: the folder for downloaded jars and the demo, whatever the working directory."""

NAMED: Final = "LOCKSTEP_JARS"
"""Environment variable: jars of the operator, separated by commas, for example with a callback handler's class."""

Artifact = tuple[str, str, str]
"""Organisation, name and version of a Maven artifact."""


@dataclass(frozen=True)
class JarSet:
    """Artifacts that are downloaded together, into a folder of this name. `alone`: without their dependencies.
    `checksums`: the folder of `<name>.sha256`, which lists every jar of the set in the format of `sha256sum`.
    """

    name: str
    artifacts: tuple[Artifact, ...]
    alone: bool = False
    checksums: Path = CHECKSUMS

    @property
    def list_file(self) -> Path:
        return self.checksums / f"{self.name}.sha256"

    def expected(self) -> dict[str, str]:
        """Returns SHA-256 in hexadecimal, by file name."""
        lines = self.list_file.read_text(encoding="utf-8").splitlines()
        return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


LOG4J_2: Final[Artifact] = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
"""The logging library of Kafka 4."""


def kafka_set(version: str, modules: Iterable[str], logging: Artifact = LOG4J_2, checksums: Path = CHECKSUMS) -> JarSet:
    """Returns the jar set of some modules of a Kafka version, such as `connect-mirror`, and their logging libraries."""
    artifacts = tuple(("org.apache.kafka", module, version) for module in modules)
    return JarSet(f"kafka-{version}", (*artifacts, logging), checksums=checksums)


KAFKA_JARS: Final = kafka_set(KAFKA, ("kafka_2.13", "connect-mirror", "kafka-tools"))


@dataclass(frozen=True)
class Connector:
    """Versions of Spark's Kafka connector and of its dependencies that pyspark lacks."""

    version: str
    clients: str
    pool: str

    @property
    def jars(self) -> JarSet:
        return JarSet(
            f"spark-kafka-{self.version}",
            (
                ("org.apache.spark", "spark-sql-kafka-0-10_2.13", self.version),
                ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", self.version),
                ("org.apache.kafka", "kafka-clients", self.clients),
                ("org.apache.commons", "commons-pool2", self.pool),
            ),
            alone=True,
        )


NEWEST_SPARK: Final = "4.3"
"""The Spark version of images, samples and tests."""

# Of 4.1 and later, Maven Central has the connector's token provider for 4.1.1 and 4.2.0 alone.
CONNECTORS: Final[Mapping[str, Connector]] = {
    "4.1": Connector("4.1.1", "3.9.1", "2.12.1"),
    "4.2": Connector("4.2.0", "3.9.2", "2.13.1"),
    NEWEST_SPARK: Connector("4.2.0", "3.9.2", "2.13.1"),
}
"""The newest working connector, by Spark version without its last number."""

NEWEST_CONNECTOR: Final = CONNECTORS[NEWEST_SPARK]

SETS: Final = (KAFKA_JARS, *{connector.version: connector.jars for connector in CONNECTORS.values()}.values())


def home() -> Path:
    """Returns the folder for downloaded jars and the demo: LOCKSTEP_HOME, else `.lockstep` in the checkout or the
    current folder."""
    if named := os.environ.get(HOME):
        return Path(named).expanduser().resolve()
    return (PROJECT if is_checkout() else Path.cwd()) / ".lockstep"


def own_home() -> Path:
    """Returns `home`, for files that Java runs. Raises LockstepError if another user could have written there."""
    folder = home()
    if not os.environ.get(HOME) and not is_checkout():
        check_own(folder)
    return folder


def check_own(folder: Path) -> None:
    """Raises LockstepError if another user owns the folder. That user could replace files after Lockstep compared their
    checksums."""
    there = (folder.lstat(), folder.stat()) if folder.exists() else ()
    if any(found.st_uid not in (0, os.geteuid()) for found in there) or any(
        found.st_mode & stat.S_IWOTH for found in there if not stat.S_ISLNK(found.st_mode)
    ):
        raise LockstepError(
            f"{folder} belongs to another user, or every user may write it. Lockstep does not use its jars: name a "
            f"folder of your own in the environment variable {HOME}"
        )


def is_checkout() -> bool:
    """Returns whether this code runs from a checkout, which has `spark-submit.sh`, and not from an installation."""
    return (PROJECT / "spark-submit.sh").is_file()
