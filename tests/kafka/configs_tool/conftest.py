"""A cluster of three brokers, and the command at it, for the tests of `lockstep configs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import javaproperties
import pytest
from py4j.java_gateway import JavaGateway
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.cli.output import DONE, FAILED
from app.configs_tool.precedence import own_levels
from app.local.waiting import wait_for
from app.wiring import admin_of, open_cluster
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import Origin, TopicSpec
from sinks.kafka.ports.config_levels import ConfigEntity, ResourceType
from streaming.errors import LockstepError
from tests.kafka.configs_tool.wire import configs_at, knows_topic
from tests.kafka.kafka_tools import CONFIGS, KafkaTools
from tests.kafka.proxied_cluster import ProxiedSecuredCluster
from tests.quick_java import QUICK_KAFKA

SOON = 180.0
NUMBERS = {ResourceType.TOPIC: 2, ResourceType.BROKER: 4}
"""Kafka's ids of them (`ConfigResource.Type`)."""


@dataclass(frozen=True)
class Three:
    """Three brokers, and what looks at them without the command."""

    cluster: ProxiedSecuredCluster
    gateway: JavaGateway
    levels: JvmLevels
    kafka: KafkaCluster
    folder: Path
    tools: KafkaTools

    def run(self, *flags: str, user: tuple[str, str] | None = None, client: Mapping[str, str] | None = None) -> Ran:
        """`lockstep configs` at the brokers' plaintext listeners, or as a user with few rights.

        `client`: Java client properties besides.
        """
        properties = self.cluster.client_properties(user) | dict(client or {})
        arguments = ["configs", "--bootstrap-server", properties.pop("bootstrap.servers"), *flags]
        if properties:
            file = self.folder / "client.properties"
            file.write_text(javaproperties.dumps(properties, timestamp=False), encoding="latin-1")
            arguments += ["--command-config", str(file)]
        result = CliRunner().invoke(app, arguments)
        if isinstance(result.exception, LockstepError):
            return Ran(FAILED, result.stdout, str(result.exception))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    def done(self, *flags: str) -> str:
        """What a command that goes well says. What it altered is known to every broker when this returns."""
        ran = self.run(*flags)
        assert ran.code == DONE, ran
        if "--alter" in flags:
            self.agree(ResourceType.BROKER, "")
            if "--topic" in flags:
                self.agree(ResourceType.TOPIC, flags[flags.index("--topic") + 1])
        return ran.out

    def agree(self, kind: ResourceType, name: str) -> None:
        """Waits until all brokers know the same of a topic, or of their default: any may be asked."""
        addresses = self.cluster.bootstrap.split(",")

        def known() -> set[bytes]:
            return {configs_at(address, NUMBERS[kind], name) for address in addresses}

        wait_for(lambda: len(known()) == 1, SOON, "all brokers to agree")

    def kafka_configs(self, *flags: str) -> str:
        """What Kafka's own tool says, which goes well."""
        return self.tools.run(CONFIGS, "--bootstrap-server", self.cluster.bootstrap, *flags)

    def levels_of(self, entity: ConfigEntity, name: str) -> list[tuple[str | None, Origin]]:
        """Value and source of each level, the one in force first; none while the broker asked has not heard of it."""
        found = self.levels.describe([entity]).items.get(entity, {})
        return [(one.value, one.origin) for one in found[name].synonyms] if name in found else []

    def shows(self, entity: ConfigEntity, name: str, *levels: tuple[str | None, Origin]) -> None:
        """Waits until an entity has exactly these levels: a broker hears a moment later what was written."""
        wait_for(lambda: self.levels_of(entity, name) == list(levels), SOON, f"{name} of {entity} to have {levels}")

    def create(self, name: str, spec: TopicSpec) -> None:
        """Returns when every broker knows the topic. One alone may hear of it later, and any may be asked."""
        assert self.kafka.create_topics({name: spec}) == {name: None}
        for address in self.cluster.bootstrap.split(","):
            wait_for(lambda address=address: knows_topic(address, name), SOON, f"{address} to know {name}")

    def own(self, entity: ConfigEntity) -> dict[str, str | None]:
        """What is set at an entity."""
        return own_levels(entity, self.levels.describe([entity]).items[entity])


class Ran(NamedTuple):
    """Exit code, and what was said."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def three(jvm: JavaGateway, kafka_tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    """One for the whole run; tests alter configs of their own."""
    folder = tmp_path_factory.mktemp("three")
    cluster = ProxiedSecuredCluster("c", folder, 3, java_options=QUICK_KAFKA)
    with cluster:
        properties = cluster.client_properties()
        levels = JvmLevels(admin_of("c", properties))
        kafka = open_cluster("c", properties)
        yield Three(cluster, jvm, levels, kafka, folder, kafka_tools)
        kafka.close()
