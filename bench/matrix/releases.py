"""The versions of Kafka that the matrix runs: brokers in one of their modes, and MM2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from app.local.jar_sets import KAFKA_JARS, LOG4J_2, Artifact, JarSet, kafka_set

CHECKSUMS: Final = Path(__file__).resolve().parent / "checksums"
LOG4J_1: Final[Artifact] = ("org.slf4j", "slf4j-reload4j", "1.7.36")
"""How Kafka 3 and 2 log."""

BROKER: Final = ("kafka_2.13",)
BROKER_AND_MM2: Final = ("kafka_2.13", "connect-mirror")


def _jars(version: str, modules: Iterable[str] = BROKER, logging: Artifact = LOG4J_2) -> JarSet:
    return kafka_set(version, modules, logging, CHECKSUMS)


JARS_44: Final = _jars("4.4.0")
JARS_42: Final = _jars("4.2.1")
JARS_40: Final = _jars("4.0.2")
JARS_39: Final = _jars("3.9.2", BROKER_AND_MM2, LOG4J_1)
JARS_34: Final = _jars("3.4.1", logging=LOG4J_1)
JARS_28: Final = _jars("2.8.2", logging=LOG4J_1)

SETS: Final = (JARS_44, JARS_42, JARS_40, JARS_39, JARS_34, JARS_28)
"""Beside those that everything else runs with."""


RELEASES: Final[Mapping[str, JarSet]] = {
    "4.4": JARS_44,
    "4.3": KAFKA_JARS,
    "4.2": JARS_42,
    "4.0": JARS_40,
    "3.9": JARS_39,
    "3.4": JARS_34,
    "3.9-zookeeper": JARS_39,
    "2.8-zookeeper": JARS_28,
}
"""Brokers, by the name that a row says: in KRaft mode unless the name says otherwise."""


def is_zookeeper(release: str) -> bool:
    return release.endswith("-zookeeper")


MIRRORS: Final = {"4.3": KAFKA_JARS, "3.9": JARS_39}
"""MM2, by the name that a row says."""
