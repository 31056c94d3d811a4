"""Which clusters and flows there are, what is replicated, and how it is named."""

from __future__ import annotations

from app.properties.keys.key import MIRROR, Key, KeyScope, Live
from app.properties.value_types import BOOLEAN, CLASS, PATTERNS, TOPIC_PART, WORDS, items, one_of
from streaming.mm2 import replication_filters

CLUSTERS: Key[tuple[str, ...]] = Key(
    "clusters", WORDS, (), "MM2", "The aliases of all clusters.", KeyScope.JOB, live=Live.JOB
)
CONFIG_PROVIDERS: Key[tuple[str, ...]] = Key(
    "config.providers",
    WORDS,
    (),
    "MM2",
    "Names of config providers; env, file and dir are always there.",
    KeyScope.JOB,
    live=Live.JOB,
)
ENABLED = Key(
    "enabled", BOOLEAN, False, "MM2", "Whether the flow is kept in step; written as a->b.enabled.", live=Live.JOB
)
TOPICS = Key("topics", PATTERNS, (".*",), "MM2", "Topics that are replicated, by their names on the source.")
TOPICS_EXCLUDE = Key(
    "topics.exclude",
    PATTERNS,
    items(replication_filters.DEFAULT_TOPICS_EXCLUDE),
    "MM2",
    "Topics that are left out all the same.",
)
TOPIC_FILTER = Key("topic.filter.class", CLASS, f"{MIRROR}DefaultTopicFilter", "MM2", "The class that chooses topics.")
GROUPS = Key("groups", PATTERNS, (".*",), "MM2", "Consumer groups that are replicated.")
GROUPS_EXCLUDE = Key(
    "groups.exclude",
    PATTERNS,
    items(replication_filters.DEFAULT_GROUPS_EXCLUDE),
    "MM2",
    "Groups that are left out all the same.",
)
GROUP_FILTER = Key("group.filter.class", CLASS, f"{MIRROR}DefaultGroupFilter", "MM2", "The class that chooses groups.")
POLICY = Key(
    "replication.policy.class",
    CLASS,
    f"{MIRROR}DefaultReplicationPolicy",
    "KIP-690",
    "The class that names topics.",
    live=Live.QUERY,
)
SEPARATOR = Key(
    "replication.policy.separator", TOPIC_PART, ".", "KIP-690", "What stands between alias and topic.", live=Live.QUERY
)
INTERNAL_SEPARATOR = Key(
    "replication.policy.internal.topic.separator.enabled",
    BOOLEAN,
    True,
    "KAFKA-15102",
    "Whether the names of MM2's checkpoints and offset-syncs topics have that separator, too; false: a dot.",
    live=Live.QUERY,
)
OFFSET_SYNCS_LOCATION = Key(
    "offset-syncs.topic.location",
    one_of("source", "target"),
    "source",
    "MM2",
    "The cluster of the offset-syncs topic.",
    live=Live.QUERY,
)
