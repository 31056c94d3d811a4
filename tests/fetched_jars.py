"""Jars that tests alone need."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from app.local.jar_sets import NEWEST_CONNECTOR, JarSet

CHECKSUMS: Final = Path(__file__).resolve().parent / "checksums"

OLD_CLASSES: Final = JarSet(
    "kafka-server-common-3.9.1", (("org.apache.kafka", "kafka-server-common", "3.9.1"),), True, CHECKSUMS
)
"""Classes that Kafka 4 no longer has."""

MIRROR_CLIENT: Final = JarSet(
    f"connect-mirror-client-{NEWEST_CONNECTOR.clients}",
    (("org.apache.kafka", "connect-mirror-client", NEWEST_CONNECTOR.clients),),
    True,
    CHECKSUMS,
)
"""Kafka's own replication policies and MirrorClient, for the class path of the driver."""

SETS: Final = (OLD_CLASSES, MIRROR_CLIENT)
