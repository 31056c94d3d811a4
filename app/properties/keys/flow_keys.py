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
    "The aliases of all clusters; what is set for one begins with its alias, as a.bootstrap.servers does.",
    KeyScope.JOB,
    live=Live.JOB,
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
    "Topics that are left out although `topics` names them.",
)
TOPIC_FILTER = Key(
    "topic.filter.class",
    CLASS,
    f"{MIRROR}DefaultTopicFilter",
    "MM2",
    "The class that decides which topics are replicated; the default goes by `topics` and `topics.exclude`.",
)
GROUPS = Key("groups", PATTERNS, (".*",), "MM2", "Consumer groups whose offsets are kept in step, by their ids.")
GROUPS_EXCLUDE = Key(
    "groups.exclude",
    PATTERNS,
    items(replication_filters.DEFAULT_GROUPS_EXCLUDE),
    "MM2",
    "Groups that are left out although `groups` names them.",
)
GROUP_FILTER = Key(
    "group.filter.class",
    CLASS,
    f"{MIRROR}DefaultGroupFilter",
    "MM2",
    "The class that decides which groups are kept in step; the default goes by `groups` and `groups.exclude`.",
)
POLICY = Key(
    "replication.policy.class",
    CLASS,
    f"{MIRROR}DefaultReplicationPolicy",
    "KIP-690",
    "The class that names remote topics (orders of a is a.orders on b) and MM2's internal topics; the same as MM2's.",
    live=Live.QUERY,
)
SEPARATOR = Key(
    "replication.policy.separator",
    TOPIC_PART,
    ".",
    "KIP-690",
    "What stands between the alias and the topic in the name of a remote topic.",
    live=Live.QUERY,
)
INTERNAL_SEPARATOR = Key(
    "replication.policy.internal.topic.separator.enabled",
    BOOLEAN,
    True,
    "KAFKA-15102",
    "Whether replication.policy.separator stands in the names of MM2's checkpoints and offset-syncs topics, "
    "too; false: a dot.",
    live=Live.QUERY,
)
OFFSET_SYNCS_LOCATION = Key(
    "offset-syncs.topic.location",
    one_of("source", "target"),
    "source",
    "MM2",
    "On which cluster MM2 keeps its offset-syncs topic, which says what offset a record has on the other side.",
    live=Live.QUERY,
)
