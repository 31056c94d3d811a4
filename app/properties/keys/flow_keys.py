"""Which clusters and flows there are, what is replicated, and how it is named."""

from __future__ import annotations

from app.properties.keys.key import MIRROR, Key, KeyScope, Live
from app.properties.value_types import BOOLEAN, CLASS, PATTERNS, TOPIC_PART, WORDS, items, one_of
from streaming.mm2 import replication_filters

CLUSTERS: Key[tuple[str, ...]] = Key(
    "clusters",
    WORDS,
    (),
    "MM2",
    "Aliases of all clusters. A cluster's settings begin with its alias, as in a.bootstrap.servers.",
    KeyScope.JOB,
    live=Live.JOB,
)
CONFIG_PROVIDERS: Key[tuple[str, ...]] = Key(
    "config.providers",
    WORDS,
    (),
    "MM2",
    "Names of further config providers. env, file and dir always exist.",
    KeyScope.JOB,
    live=Live.JOB,
)
ENABLED = Key("enabled", BOOLEAN, False, "MM2", "Keep the flow in step; written as a->b.enabled.", live=Live.JOB)
TOPICS = Key("topics", PATTERNS, (".*",), "MM2", "Topics that are replicated, by their names on the source.")
TOPICS_EXCLUDE = Key(
    "topics.exclude",
    PATTERNS,
    items(replication_filters.DEFAULT_TOPICS_EXCLUDE),
    "MM2",
    "Topics that are left out although `topics` matches them.",
)
TOPIC_FILTER = Key(
    "topic.filter.class",
    CLASS,
    f"{MIRROR}DefaultTopicFilter",
    "MM2",
    "Class that decides which topics are replicated. The default follows `topics` and `topics.exclude`.",
)
GROUPS = Key("groups", PATTERNS, (".*",), "MM2", "Consumer groups whose offsets are kept in step.")
GROUPS_EXCLUDE = Key(
    "groups.exclude",
    PATTERNS,
    items(replication_filters.DEFAULT_GROUPS_EXCLUDE),
    "MM2",
    "Groups that are left out although `groups` matches them.",
)
GROUP_FILTER = Key(
    "group.filter.class",
    CLASS,
    f"{MIRROR}DefaultGroupFilter",
    "MM2",
    "Class that decides which groups are kept in step. The default follows `groups` and `groups.exclude`.",
)
POLICY = Key(
    "replication.policy.class",
    CLASS,
    f"{MIRROR}DefaultReplicationPolicy",
    "KIP-690",
    "Class that names remote topics (orders of a is a.orders on b) and MM2's internal topics. Use the same as MM2.",
    live=Live.QUERY,
)
SEPARATOR = Key(
    "replication.policy.separator",
    TOPIC_PART,
    ".",
    "KIP-690",
    "Text between the alias and the topic in the name of a remote topic.",
    live=Live.QUERY,
)
INTERNAL_SEPARATOR = Key(
    "replication.policy.internal.topic.separator.enabled",
    BOOLEAN,
    True,
    "KAFKA-15102",
    "Use replication.policy.separator in the names of MM2's internal topics too. false: a dot.",
    live=Live.QUERY,
)
MM2_VERSION = Key(
    "lockstep.mm2.version",
    one_of("3", "4"),
    "4",
    "Lockstep",
    "Which Kafka the MM2 that runs this flow is of: 3 never replicates topics whose names end in .internal or "
    "-internal, 4 does (KIP-1074). Say 4 again when you upgrade MM2.",
)
OFFSET_SYNCS_LOCATION = Key(
    "offset-syncs.topic.location",
    one_of("source", "target"),
    "source",
    "MM2",
    "Cluster on which MM2 keeps its offset-syncs topic.",
    live=Live.QUERY,
)
