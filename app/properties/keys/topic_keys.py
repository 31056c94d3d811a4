"""Topics and their configs, and those of brokers."""

from __future__ import annotations

from app.properties.keys.key import MIRROR, NO_REST, POLL_INTERVAL_TEXT, Acts, Key
from app.properties.value_types import BOOLEAN, CLASS, PATTERNS, integer, items, one_of
from sinks.kinds.brokers.rules import DEFAULT_PROPERTIES
from streaming.mm2 import replication_filters

SYNC_TOPIC_CONFIGS = Key(
    "sync.topic.configs.enabled",
    BOOLEAN,
    True,
    "KIP-894",
    "Keep the configs of remote topics as they are on the source.",
)
CONFIG_EXCLUDE = Key(
    "config.properties.exclude",
    PATTERNS,
    items(replication_filters.CONFIG_PROPERTIES_EXCLUDE),
    "MM2",
    "Topic configs that Lockstep never touches on the target.",
)
CONFIG_FILTER = Key(
    "config.property.filter.class",
    CLASS,
    f"{MIRROR}DefaultConfigPropertyFilter",
    "MM2",
    "Class that decides which topic configs are kept in step. The default follows `config.properties.exclude`.",
)
USE_DEFAULTS_FROM = Key(
    "use.defaults.from",
    one_of("source", "target"),
    "target",
    "KIP-894",
    "Whose default holds on the target for a config that the source topic does not set.",
)
USE_INCREMENTAL = Key(
    "use.incremental.alter.configs",
    one_of("requested", "required", "never"),
    "requested",
    "KIP-894",
    "How configs are written. requested: one by one, or all of a topic at once on old brokers. required: "
    "one by one, else the flow is in ERROR. never: all at once, which undoes what another client changes "
    "in the same moment.",
)
REFRESH_TOPICS = Key(
    "refresh.topics.enabled",
    BOOLEAN,
    True,
    "MM2",
    "Create missing remote topics and grow their partitions.",
)
REPLICATION_FACTOR = Key(
    "replication.factor",
    integer(1, 32767, besides=(-1,)),
    2,
    "MM2",
    "Replicas of remote topics when they are created. -1: the broker's default.",
)
HEARTBEATS_REPLICATION = Key(
    "heartbeats.replication.enabled",
    BOOLEAN,
    True,
    "MM2",
    "MM2 copies heartbeats topics, even if `topics` does not match them. Lockstep reads the copies.",
)
REFRESH_TOPICS_INTERVAL: Key[int | None] = Key(
    "refresh.topics.interval.seconds",
    integer(1, unit="seconds"),
    None,
    "MM2",
    f"{POLL_INTERVAL_TEXT} topics. {NO_REST}",
    acts=Acts.PREFIXED,
)
SYNC_TOPIC_CONFIGS_INTERVAL: Key[int | None] = Key(
    "sync.topic.configs.interval.seconds",
    integer(1, unit="seconds"),
    None,
    "MM2",
    f"{POLL_INTERVAL_TEXT} configs. {NO_REST}",
    acts=Acts.PREFIXED,
)
TOPIC_DELETES = Key(
    "lockstep.sync.topic.deletes.enabled",
    BOOLEAN,
    False,
    "Lockstep",
    "Delete a remote topic that Lockstep created, with its records, when its topic is gone from the source.",
)
SYNC_BROKER_CONFIGS = Key(
    "lockstep.sync.broker.configs.enabled",
    BOOLEAN,
    False,
    "Lockstep",
    "Keep the cluster-wide dynamic configs of the source's brokers on the target's.",
)
BROKER_CONFIG_PROPERTIES = Key(
    "lockstep.broker.config.properties",
    PATTERNS,
    items(DEFAULT_PROPERTIES),
    "Lockstep",
    "Dynamic configs that lockstep.sync.broker.configs.enabled keeps in step; never listeners, SSL and SASL.",
)
