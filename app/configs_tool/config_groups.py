"""KIP-226's groups of broker configs that change at run time, and the level where each should be set.

Newer configs are in its groups, or in groups of their own. Source: `org.apache.kafka.server.config.DynamicBrokerConfig`
of Kafka 4.3; this table equals its `dynamicConfigUpdateModes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class ConfigLevel(str, Enum):
    """Where a config should be set. A cluster-wide one may be overridden on a broker, as a trial."""

    CLUSTER_WIDE = "cluster-wide"
    PER_BROKER = "per-broker"


@dataclass(frozen=True, slots=True)
class Group:
    """Configs that belong together. `per_listener`: they can only be set under `listener.name.<listener>.`."""

    title: str
    level: ConfigLevel
    names: frozenset[str]
    per_listener: bool = False


def _prefixed(prefix: str, names: str) -> frozenset[str]:
    return frozenset(f"{prefix}{name}" for name in names.split())


STORES = _prefixed(
    "ssl.",
    "key.password keystore.certificate.chain keystore.key keystore.location keystore.password keystore.type "
    "truststore.certificates truststore.location truststore.password truststore.type",
)
LISTENERS = (
    _prefixed("", "cordoned.log.dirs listener.security.protocol.map listeners principal.builder.class")
    | _prefixed(
        "ssl.",
        "cipher.suites client.auth enabled.protocols endpoint.identification.algorithm engine.factory.class "
        "keymanager.algorithm protocol provider secure.random.implementation trustmanager.algorithm",
    )
    | _prefixed("sasl.", "enabled.mechanisms jaas.config mechanism.inter.broker.protocol")
    | _prefixed(
        "sasl.kerberos.",
        "kinit.cmd min.time.before.relogin principal.to.local.rules service.name ticket.renew.jitter "
        "ticket.renew.window.factor",
    )
    | _prefixed("sasl.login.refresh.", "buffer.seconds min.period.seconds window.factor window.jitter")
)
THREADS = _prefixed(
    "", "background.threads num.io.threads num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers"
)
CLEANER = _prefixed(
    "log.cleaner.",
    "backoff.ms dedupe.buffer.size io.buffer.load.factor io.buffer.size io.max.bytes.per.second threads",
)
TOPIC_DEFAULTS = (
    _prefixed("compression.", "gzip.level lz4.level type zstd.level")
    | _prefixed(
        "log.cleaner.",
        "delete.retention.ms max.compaction.lag.ms min.cleanable.ratio min.compaction.lag.ms",
    )
    | _prefixed(
        "log.",
        "cleanup.policy flush.interval.messages flush.interval.ms index.interval.bytes index.size.max.bytes "
        "local.retention.bytes local.retention.ms message.timestamp.after.max.ms message.timestamp.before.max.ms "
        "message.timestamp.type preallocate retention.bytes retention.ms roll.jitter.ms roll.ms segment.bytes "
        "segment.delete.delay.ms",
    )
    | _prefixed("", "message.max.bytes min.insync.replicas unclean.leader.election.enable")
)
CONNECTIONS = _prefixed("max.", "connection.creation.rate connections connections.per.ip connections.per.ip.overrides")
THROTTLES = _prefixed(
    "",
    "follower.replication.throttled.rate leader.replication.throttled.rate "
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
COORDINATORS = _prefixed(
    "",
    "group.consumer.assignment.interval.ms group.coordinator.cached.buffer.max.bytes "
    "group.share.assignment.interval.ms group.streams.assignment.interval.ms producer.id.expiration.ms "
    "share.coordinator.cached.buffer.max.bytes transaction.partition.verification.enable",
)
TIERED = _prefixed("", "follower.fetch.last.tiered.offset.enable") | _prefixed(
    "remote.",
    "fetch.max.wait.ms list.offsets.request.timeout.ms log.index.file.cache.total.size.bytes "
    "log.manager.copier.thread.pool.size log.manager.copy.max.bytes.per.second "
    "log.manager.expiration.thread.pool.size log.manager.fetch.max.bytes.per.second "
    "log.manager.follower.thread.pool.size log.reader.threads",
)

CONFIG_GROUPS: tuple[Group, ...] = (
    Group("SSL key and trust stores", ConfigLevel.PER_BROKER, STORES, per_listener=True),
    Group("threads", ConfigLevel.CLUSTER_WIDE, THREADS),
    Group("metrics reporters", ConfigLevel.CLUSTER_WIDE, frozenset({"metric.reporters", "config.providers"})),
    Group("log cleaner", ConfigLevel.CLUSTER_WIDE, CLEANER),
    Group("default topic configs", ConfigLevel.CLUSTER_WIDE, TOPIC_DEFAULTS),
    Group("listeners and security", ConfigLevel.PER_BROKER, LISTENERS),
    Group("connection limits", ConfigLevel.CLUSTER_WIDE, CONNECTIONS),
    Group("replication throttles", ConfigLevel.CLUSTER_WIDE, THROTTLES),
    Group("coordinators", ConfigLevel.CLUSTER_WIDE, COORDINATORS),
    Group("tiered storage", ConfigLevel.CLUSTER_WIDE, TIERED),
)
GROUP_OF: Mapping[str, Group] = {name: group for group in CONFIG_GROUPS for name in group.names}

LISTENER = re.compile(r"listener\.name\.([^.]*)\.(.*)", re.DOTALL)
"""Matches a listener's own config: the listener (1), the config's name (2), which may begin with a mechanism."""

LISTENER_ANYWHERE = frozenset({"max.connection.creation.rate", "max.connections", "num.network.threads"})
"""Configs that can be set for a listener and also cluster-wide."""

INSTEAD: Mapping[str, str] = {
    "log.flush.scheduler.interval.ms": "log.flush.interval.ms",
    "log.retention.hours": "log.retention.ms",
    "log.retention.minutes": "log.retention.ms",
    "log.roll.hours": "log.roll.ms",
    "log.roll.jitter.hours": "log.roll.jitter.ms",
}
"""Configs that brokers read only at their start, each with the equivalent one that changes at run time."""


def base_name(name: str) -> str:
    """Returns a config's name without its listener."""
    match = LISTENER.fullmatch(name)
    return match[2] if match else name
