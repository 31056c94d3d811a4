"""Computes the options for spark-submit: the user's over Lockstep's defaults, with the Kafka connector.

`python app/spark/submit_options.py [spark-submit options]` prints them, one a line, for spark-submit.sh.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

if __name__ == "__main__":
    # Run as a file, so that no folder that happens to be the working directory is searched for our packages.
    sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

import javaproperties

from app.local.jar_sets import own_home
from app.local.jars import connector_jars, named_jars
from streaming.errors import LockstepError

DEFAULTS_FOLDER = Path(__file__).resolve().parent / "defaults"
SPARK_DEFAULTS = DEFAULTS_FOLDER / "spark-defaults.conf"
LOG4J = DEFAULTS_FOLDER / "log4j2.properties"

JARS = "spark.jars"
PACKAGES = "spark.jars.packages"
MASTER = "spark.master"
AUTHENTICATE = "spark.authenticate"
DEPLOY_MODE = "spark.submit.deployMode"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SHELL = "pyspark-shell"
"""The last word of PYSPARK_SUBMIT_ARGS. Spark requires it."""

OTHERS_MAY_WRITE = 0o022
"""Mode bits of a file that group or others may write."""

LOAD_SPARK_DEFAULTS = "--load-spark-defaults"
"""Flag of spark-submit: also reads `spark-defaults.conf` beside `--properties-file`, whose lines win."""

SUBMIT_FLAGS: Mapping[str, str] = {
    "--jars": JARS,
    "--packages": PACKAGES,
    "--deploy-mode": DEPLOY_MODE,
    "--driver-java-options": JAVA_OPTIONS,
}
"""Properties by the flag of spark-submit that sets the same. The flag wins."""

CONNECTOR = "spark-sql-kafka-0-10"
"""Part of the name of every Kafka connector for Spark, as a file and as a package."""


class UnsupportedDeployMode(LockstepError):
    """The options ask Spark to start the driver on another machine."""


def defaults(path: Path = SPARK_DEFAULTS) -> dict[str, str]:
    """Parses `spark-defaults.conf` (name, white space, value) in Java's properties format, as Spark does."""
    with path.open(encoding="utf-8") as file:
        return {name: value.strip() for name, value in javaproperties.load(file).items()}


def with_lockstep(
    given: Mapping[str, str], connector: Callable[[], Sequence[Path]], *, local: bool = False
) -> dict[str, str]:
    """Returns the user's Spark properties over Lockstep's defaults. The connector's jars join the user's, which
    `spark.jars` and LOCKSTEP_JARS name.

    `connector`: called unless the user names a connector. `local`: all of Spark is in the driver's JVM, which creates
    the secret of its RPC by itself. Raises UnsupportedDeployMode, LockstepError.
    """
    if given.get(DEPLOY_MODE, "").strip() == "cluster":
        raise UnsupportedDeployMode(
            "--deploy-mode cluster is not supported: Spark would start the driver without the properties file, its "
            "secrets and its HTTP address. Start it in client mode, the default, on the machine where the driver shall "
            "run. On Kubernetes that is a pod of its own (`--master k8s://… --conf spark.driver.host=…`), on YARN a "
            "gateway host"
        )
    merged = {**defaults(), **({AUTHENTICATE: "true"} if local else {}), **given}
    said = given.get(JAVA_OPTIONS, "")
    merged[JAVA_OPTIONS] = " ".join([f"-Dlog4j2.configurationFile={LOG4J.as_uri()}", *_archived(said), said]).strip()
    own = [jar for jar in given.get(JARS, "").split(",") if jar] + [str(jar) for jar in named_jars()]
    if own:
        merged[JARS] = ",".join(own)
    if not any(CONNECTOR in named for named in (given.get(PACKAGES, ""), *own)):
        merged[JARS] = ",".join([*own, *map(str, connector())])
    return merged


def class_archive() -> Path:
    """Returns the file of classes that `app.spark.class_archive` creates. Raises LockstepError if others can write
    it."""
    return own_home() / "class-archives" / "spark.jsa"


def _archived(said: str) -> Sequence[str]:
    """Returns Java's options that load classes from the archive, if it exists and only this user or root can write it.
    `said`: the user's Java options; what they say about archives wins. Java silently ignores an archive that does not
    fit."""
    if "Archive" in said:
        return ()
    try:
        archive = class_archive()
        found = [archive.stat(), archive.parent.stat()]
    except (OSError, LockstepError):
        return ()
    ours = all(one.st_uid in (0, os.geteuid()) and not one.st_mode & OTHERS_MAY_WRITE for one in found)
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off") if ours else ()


@dataclass(frozen=True)
class Given:
    """Parsed options of spark-submit: properties from flags and `--conf`, the properties file, and all others."""

    properties: Mapping[str, str]
    file: Path | None
    rest: Sequence[str]

    def all(self) -> dict[str, str]:
        """Returns the properties over the file's lines. Raises LockstepError if the file cannot be read."""
        if self.file is None:
            return dict(self.properties)
        try:
            return {**defaults(self.file), **self.properties}
        except (OSError, ValueError) as error:
            raise LockstepError(f"--properties-file {self.file} cannot be read: {error}") from error


def given_by(options: Sequence[str]) -> Given:
    confs: dict[str, str] = {}
    flags: dict[str, str] = {}
    file: Path | None = None
    rest: list[str] = []
    left = list(_words(options))
    while left:
        word = left.pop(0)
        if word in SUBMIT_FLAGS and left:
            flags[SUBMIT_FLAGS[word]] = left.pop(0)
        elif word in ("--conf", "-c") and left and "=" in left[0]:
            name, _, value = left.pop(0).partition("=")
            confs[name] = value
        elif word == "--properties-file" and left:
            file = Path(left.pop(0))
        else:
            rest.append(word)
    return Given({**confs, **flags}, file, rest)


def _words(options: Sequence[str]) -> Sequence[str]:
    """Splits each `--flag=value` into two words."""
    return [
        word
        for option in options
        for word in (option.split("=", 1) if option.startswith("--") and "=" in option else [option])
    ]


LOCAL_MASTER = re.compile(r"local(\[[^\]]*\])?")
"""Masters with which all of Spark is one JVM, as in `SecurityManager.initializeAuth`."""


def is_local(options: Sequence[str]) -> bool:
    """Returns whether the driver's JVM is all of Spark with these options of spark-submit. Raises LockstepError."""
    given = given_by(options)
    named = [master for flag, master in pairwise(given.rest) if flag == "--master"]
    master = named[-1] if named else given.all().get(MASTER, os.environ.get("MASTER", "local"))
    return LOCAL_MASTER.fullmatch(master) is not None


def submit_options(options: Sequence[str], connector: Callable[[], Sequence[Path]]) -> list[str]:
    """Returns the options for spark-submit. `connector`: as in `with_lockstep`. Raises LockstepError.

    A properties file of the user stays a file: its content may be secret, and command lines are visible.
    """
    given = given_by(options)
    said = defaults() if given.file is None else given.all()
    merged = with_lockstep(given.all(), connector, local=is_local(options))
    options = ["--properties-file", str(given.file or SPARK_DEFAULTS)]
    for name, value in merged.items():
        if name in given.properties or said.get(name) != value:
            options += ["--conf", f"{name}={value}"]
    return [*options, *given.rest]


def split_environment(arguments: str, connector: Callable[[], Sequence[Path]]) -> tuple[dict[str, str], list[str]]:
    """Splits PYSPARK_SUBMIT_ARGS into properties and other options. Raises LockstepError.

    A flag among the other options, such as `--jars`, would win over the merged properties. Spark reads its own
    `spark-defaults.conf` if the user names no other file.
    """
    options = shlex.split(arguments or SHELL)
    given = given_by(options)
    own = [] if given.file else [LOAD_SPARK_DEFAULTS]
    return with_lockstep(given.all(), connector, local=is_local(options)), [*own, *given.rest]


if __name__ == "__main__":
    try:
        print("\n".join(submit_options(sys.argv[1:], connector_jars)))  # noqa: T201 - this is what spark-submit.sh reads
    except LockstepError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2 if isinstance(error, UnsupportedDeployMode) else 1)
