"""One thing of every kind, changed again and again on the source, and whether the target has the last change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.wiring import cluster_ports
from bench.pair import BenchPair
from sinks.faults import ClusterUnreachable, Observed
from sinks.kafka.ports.acl_binding import LITERAL, TOPIC, AclBinding
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kafka.ports.users import Mechanism, Upsertion
from sinks.kinds.quotas.jvm_quotas import JvmQuotas
from sinks.kinds.quotas.quota_port import Entity
from sinks.model.changes import Kind
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

NAME, GROUP, USER = "changed", "changed-group", "changed-user"
HERE, THERE = TopicPartition(NAME, 0), TopicPartition(f"a.{NAME}", 0)
BROKER_CONFIG, QUOTA = "log.cleaner.delete.retention.ms", "producer_byte_rate"
CREDENTIAL: Final = (USER, Mechanism.SHA_256.value)
STEPS: Final = 8000
"""As many as a credential has other iterations for, between 4,096 and 16,384."""

KEYS: Mapping[str, str] = {
    "topics": f"{NAME}.*",
    "groups": GROUP,
    "sync.topic.configs.enabled": "false",
    "lockstep.sync.topic.configs.enabled": "true",
    "sync.topic.acls.enabled": "false",
    "lockstep.sync.topic.acls.enabled": "true",
    "lockstep.sync.full.acl.enabled": "true",
    "sync.group.offsets.enabled": "false",
    "lockstep.sync.group.offsets.enabled": "true",
    "lockstep.sync.broker.configs.enabled": "true",
    "lockstep.sync.client.quotas.enabled": "true",
    "lockstep.credential.provider.class": "lockstep.credentials:DirectoryCredentialProvider",
}


@dataclass
class EveryKind:
    """`step` numbers the changes; the last one is what counts. `offset`: the group's on the target that is due."""

    source: ClusterPorts
    target: ClusterPorts
    brokers: int
    root: Path
    step: int = 0
    offset: int | None = None

    def keys(self) -> dict[str, str]:
        """Of the properties file: every kind is on. Writes the user's password into a folder."""
        passwords = self.root / "passwords"
        passwords.mkdir(parents=True, exist_ok=True)
        (passwords / USER).write_text("of no use")
        return {**KEYS, "lockstep.credential.store": str(passwords)}

    def change(self, offset: int) -> None:
        """Changes something of every kind on the source; its group is at `offset`. Raises LockstepError."""
        faults = [fault for change in self.changes(offset).values() for fault in change()]
        if found := [fault for fault in faults if fault is not None]:
            raise ClusterUnreachable(f"not every change was taken: {found[0]}")

    def changes(self, offset: int) -> dict[Kind, Callable[[], Iterable[object]]]:
        """The next change of each kind: makes it, and returns what the source has against it, None where nothing."""
        self.step += 1
        source, quotas = self.source, JvmQuotas(self.source)
        quota, levels = {QUOTA: 1000.0 + self.step}, {BROKER_CONFIG: self._milliseconds}
        topic = {f"{NAME}-{self.step}": TopicSpec(1, self.brokers)}
        config = {NAME: {"retention.ms": self._milliseconds}}
        user = [Upsertion(*CREDENTIAL, self._iterations, "the source's")]
        return {
            Kind.TOPIC: lambda: source.cluster.create_topics(topic).values(),
            Kind.TOPIC_CONFIG: lambda: source.cluster.alter_topic_configs(config).values(),
            Kind.ACL: lambda: source.acls.create([self._acl(NAME)]).values(),
            Kind.SCRAM_USER: lambda: source.users.upsert(user).values(),
            Kind.CLIENT_QUOTA: lambda: quotas.alter({Entity(USER): quota}).values(),
            Kind.BROKER_CONFIG: lambda: source.levels.alter({DEFAULT_OF_ALL: levels}).values(),
            Kind.GROUP_OFFSET: lambda: source.groups.commit({GROUP: {HERE: offset}})[GROUP].values(),
        }

    def equal(self, kind: Kind) -> bool:
        """Whether this kind is as it should be on the target. Raises LockstepError."""
        there, due = self.looks()[kind]()
        return there == due

    def missing(self) -> dict[str, str]:
        """Of each kind that is not as it should be on the target, what is there; or why there is no answer."""
        try:
            seen = {kind.value: look() for kind, look in self.looks().items()}
        except LockstepError as error:
            return {"an answer": str(error)}
        return {kind: f"{there}, not {due}" for kind, (there, due) in seen.items() if there != due}

    def looks(self) -> Mapping[Kind, Callable[[], tuple[object, object]]]:
        """For each kind, what tells what the target has, and what it should have. They raise LockstepError."""
        target, quotas = self.target, JvmQuotas(self.target)
        configs, levels = target.cluster.describe_topic_configs, target.levels.describe
        user, mechanism = CREDENTIAL
        return {
            Kind.TOPIC: lambda: (f"a.{NAME}-{self.step}" in target.cluster.list_topics(), True),
            Kind.TOPIC_CONFIG: lambda: (_value(configs([THERE.topic]), "retention.ms"), self._milliseconds),
            Kind.ACL: lambda: (self._acl(THERE.topic) in target.acls.describe(), True),
            Kind.SCRAM_USER: lambda: (target.users.describe([user]).get(user, {}).get(mechanism), self._iterations),
            Kind.CLIENT_QUOTA: lambda: (quotas.describe().get(Entity(USER), {}).get(QUOTA), 1000.0 + self.step),
            Kind.BROKER_CONFIG: lambda: (_value(levels([DEFAULT_OF_ALL]), BROKER_CONFIG), self._milliseconds),
            Kind.GROUP_OFFSET: lambda: (target.groups.committed([GROUP]).items.get(GROUP, {}).get(THERE), self.offset),
        }

    @property
    def _milliseconds(self) -> str:
        return str(86_400_000 + self.step)

    @property
    def _iterations(self) -> int:
        return 4096 + self.step % STEPS

    def _acl(self, topic: str) -> AclBinding:
        # The user is named by all of them; a new host makes each another one.
        return AclBinding(
            TOPIC, topic, LITERAL, f"User:{USER}", f"10.0.{self.step // 250}.{self.step % 250}", "READ", "ALLOW"
        )


def _value(seen: Observed[Any, Mapping[str, Any]], name: str) -> str | None:
    """Of the only item that was asked for."""
    configs = next(iter(seen.items.values()), {})
    return configs[name].value if name in configs else None


def every_kind(pair: BenchPair, brokers: int = 1) -> EveryKind:
    return EveryKind(cluster_ports(pair.source), cluster_ports(pair.target), brokers, pair.root)


def tried(step: Callable[[], object]) -> bool:
    """Whether it went through; a cluster that is away is what all this is about."""
    try:
        step()
    except LockstepError:
        return False
    return True
