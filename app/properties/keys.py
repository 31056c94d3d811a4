"""The keys that Lockstep reads: type, default, where they hold, what they mean.

A key of scope FLOW holds as `a->b.KEY` for one flow, as `KEY` for all. Any key of MM2's may carry the prefix
`lockstep.` in front (`lockstep.KEY`, `lockstep.a->b.KEY`) or after the flow (`a->b.lockstep.KEY`), and then wins.
Defaults are those of MM2 4.3.1 where the source is MM2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from app.properties.values import (
    BOOLEAN,
    CLASS,
    DURATION_SECONDS,
    FOLDER,
    PATTERNS,
    TEXT,
    TOPIC_PART,
    WORDS,
    ValueType,
    integer,
    items,
    number,
    one_of,
)
from sinks.resources import brokers
from streaming import filters

T = TypeVar("T")

MIRROR = "org.apache.kafka.connect.mirror."
JMX_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"


class Scope(Enum):
    """Where a key holds."""

    JOB = "the whole job"
    FLOW = "a flow, or all of them"


class Acts(Enum):
    """When a key makes a difference to Lockstep."""

    ALWAYS = "always"
    PREFIXED = "only with the prefix lockstep."


class Live(Enum):
    """What a running job does when the key changes in its file."""

    FLOW = "at once"
    QUERY = "at once; the query restarts"
    REPORTERS = "at once; the reporters are told"
    JOB = "with a restart of the job"


@dataclass(frozen=True)
class Key(Generic[T]):
    """One key. `source`: whose it is (MM2, a KIP, or Lockstep)."""

    name: str
    type: ValueType[T]
    default: T
    source: str
    doc: str
    scope: Scope = Scope.FLOW
    acts: Acts = Acts.ALWAYS
    live: Live = Live.FLOW


CLUSTERS: Key[tuple[str, ...]] = Key(
    "clusters", WORDS, (), "MM2", "The aliases of all clusters.", Scope.JOB, live=Live.JOB
)
CONFIG_PROVIDERS: Key[tuple[str, ...]] = Key(
    "config.providers",
    WORDS,
    (),
    "MM2",
    "Names of config providers; env, file and dir are always there.",
    Scope.JOB,
    live=Live.JOB,
)
ENABLED = Key(
    "enabled", BOOLEAN, False, "MM2", "Whether the flow is kept in step; written as a->b.enabled.", live=Live.JOB
)

TOPICS = Key("topics", PATTERNS, (".*",), "MM2", "Topics that are replicated, by their names on the source.")
TOPICS_EXCLUDE = Key("topics.exclude", PATTERNS, items(filters.TOPICS_EXCLUDE), "MM2", "Topics left out even so.")
TOPIC_FILTER = Key("topic.filter.class", CLASS, f"{MIRROR}DefaultTopicFilter", "MM2", "The class that chooses topics.")
GROUPS = Key("groups", PATTERNS, (".*",), "MM2", "Consumer groups that are replicated.")
GROUPS_EXCLUDE = Key("groups.exclude", PATTERNS, items(filters.GROUPS_EXCLUDE), "MM2", "Groups left out even so.")
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

SYNC_TOPIC_CONFIGS = Key(
    "sync.topic.configs.enabled", BOOLEAN, True, "KIP-894", "Whether remote topics get the configs of their source."
)
CONFIG_EXCLUDE = Key(
    "config.properties.exclude",
    PATTERNS,
    items(filters.CONFIG_PROPERTIES_EXCLUDE),
    "MM2",
    "Topic configs that are never touched on the target.",
)
CONFIG_FILTER = Key(
    "config.property.filter.class",
    CLASS,
    f"{MIRROR}DefaultConfigPropertyFilter",
    "MM2",
    "The class that chooses configs.",
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
    "Whether configs are written one by one; requested: unless the broker is too old for it.",
)
REFRESH_TOPICS = Key(
    "refresh.topics.enabled", BOOLEAN, True, "MM2", "Whether remote topics are created, and grown in partitions."
)
REPLICATION_FACTOR = Key(
    "replication.factor",
    integer(1, 32767, besides=(-1,)),
    2,
    "MM2",
    "Of topics that are created; -1: the broker's default.",
)
HEARTBEATS_REPLICATION = Key(
    "heartbeats.replication.enabled", BOOLEAN, True, "MM2", "Whether MM2 replicates them, filtered out or not."
)
REST, NO_REST = "Seconds between two looks at", "for Lockstep, where it is not given: every trigger."
REFRESH_TOPICS_INTERVAL: Key[int | None] = Key(
    "refresh.topics.interval.seconds", integer(1), None, "MM2", f"{REST} topics; {NO_REST}", acts=Acts.PREFIXED
)
SYNC_TOPIC_CONFIGS_INTERVAL: Key[int | None] = Key(
    "sync.topic.configs.interval.seconds", integer(1), None, "MM2", f"{REST} configs; {NO_REST}", acts=Acts.PREFIXED
)
SYNC_GROUP_OFFSETS = Key(
    "sync.group.offsets.enabled",
    BOOLEAN,
    False,
    "MM2",
    "Whether the offsets of consumer groups without members on the target are written there.",
)
SYNC_GROUP_OFFSETS_INTERVAL: Key[int | None] = Key(
    "sync.group.offsets.interval.seconds", integer(1), None, "MM2", f"{REST} groups; {NO_REST}", acts=Acts.PREFIXED
)
EMIT_CHECKPOINTS = Key(
    "emit.checkpoints.enabled",
    BOOLEAN,
    False,
    "MM2",
    "Whether Lockstep writes checkpoints as MM2 does, so that MM2's connector for them can be switched off.",
    acts=Acts.PREFIXED,
)
OFFSET_TRANSLATION = Key(
    "lockstep.offset.translation",
    one_of("matched", "conservative"),
    "matched",
    "Lockstep",
    "How an offset is translated: matched looks for the record itself on the target, conservative reads syncs alone.",
)

SYNC_BROKER_CONFIGS = Key(
    "lockstep.sync.broker.configs.enabled",
    BOOLEAN,
    False,
    "Lockstep",
    "Whether the cluster-wide dynamic configs of the source's brokers are kept on the target's.",
)
BROKER_CONFIG_PROPERTIES = Key(
    "lockstep.broker.config.properties",
    PATTERNS,
    items(brokers.DEFAULT_PROPERTIES),
    "Lockstep",
    "Which of them; those of listeners, SSL and SASL never, even if they are named here.",
)
TOPIC_LISTENER = Key(
    "topic.listener.class",
    CLASS,
    f"{MIRROR}DefaultTopicListener",
    "KAFKA-14903",
    "The class that is told which topics are replicated; sinks.notify.log_listener:LogListener and "
    "sinks.notify.webhook:WebhookListener are there.",
)
GROUP_LISTENER = Key(
    "group.listener.class",
    CLASS,
    f"{MIRROR}DefaultGroupListener",
    "KAFKA-14903",
    "The class that is told which groups are; the same two are there.",
)
LISTENER_TIMEOUT = Key(
    "lockstep.listener.timeout", DURATION_SECONDS, 10.0, "Lockstep", "How long one call of a listener may take."
)
WEBHOOK_URL: Key[str | None] = Key(
    "lockstep.listener.webhook.url", TEXT, None, "Lockstep", "Where WebhookListener posts to: http or https."
)
WEBHOOK_SECRET: Key[str | None] = Key(
    "lockstep.listener.webhook.secret", TEXT, None, "Lockstep", "What WebhookListener signs with."
)

METRIC_REPORTERS: Key[tuple[str, ...]] = Key(
    "metric.reporters",
    ValueType(
        lambda text: tuple(CLASS.parse(one) for one in items(text)),
        "classes, separated by commas, each as package.module:Class; those with Java names are left to MM2",
    ),
    (JMX_REPORTER,),
    "KIP-226",
    "Classes that get the job's metrics; sinks.notify.push_gateway:PushGatewayReporter is there.",
    Scope.JOB,
    live=Live.REPORTERS,
)
PUSH_URL: Key[str | None] = Key(
    "lockstep.metric.push.url",
    TEXT,
    None,
    "Lockstep",
    "The Prometheus Pushgateway that PushGatewayReporter pushes to: http or https.",
    Scope.JOB,
    live=Live.REPORTERS,
)
PUSH_INTERVAL = Key(
    "lockstep.metric.push.interval",
    DURATION_SECONDS,
    15.0,
    "Lockstep",
    "Time between two pushes; the last one comes when the job ends.",
    Scope.JOB,
    live=Live.REPORTERS,
)
PUSH_JOB = Key(
    "lockstep.metric.push.job",
    TEXT,
    "lockstep",
    "Lockstep",
    "The label job of what is pushed: one for each job of Lockstep that pushes there.",
    Scope.JOB,
    live=Live.REPORTERS,
)
PUSH_USERNAME: Key[str | None] = Key(
    "lockstep.metric.push.username",
    TEXT,
    None,
    "Lockstep",
    "Who pushes, where the gateway wants to know.",
    Scope.JOB,
    live=Live.REPORTERS,
)
PUSH_PASSWORD: Key[str | None] = Key(
    "lockstep.metric.push.password",
    TEXT,
    None,
    "Lockstep",
    "The password that goes with it.",
    Scope.JOB,
    live=Live.REPORTERS,
)

TRIGGER_INTERVAL = Key(
    "lockstep.trigger.interval",
    DURATION_SECONDS,
    1.0,
    "Lockstep",
    "Time between two batches.",
    Scope.JOB,
    live=Live.QUERY,
)
CHECKPOINT_DIR = Key(
    "lockstep.checkpoint.dir",
    FOLDER,
    Path(".lockstep/checkpoints"),
    "Lockstep",
    "Where Spark keeps the queries' offsets, relative to the working directory; losing it loses nothing.",
    Scope.JOB,
    live=Live.JOB,
)
HTTP_HOST = Key(
    "lockstep.http.host",
    TEXT,
    "127.0.0.1",
    "Lockstep",
    "The address of the job's server: metrics, status.",
    Scope.JOB,
    live=Live.JOB,
)
HTTP_PORT = Key(
    "lockstep.http.port",
    integer(0, 65535),
    9464,
    "Lockstep",
    "The port of that server; 0: a free one.",
    Scope.JOB,
    live=Live.JOB,
)
OBSERVE_RATE = Key(
    "lockstep.observe.rate",
    integer(0, unit="topics a second"),
    1000,
    "Lockstep",
    "How many topics' configs are looked at on the source, per flow; 0: all of them at every trigger.",
)
FULL_COMPARISON_INTERVAL = Key(
    "lockstep.full.comparison.interval", DURATION_SECONDS, 60.0, "Lockstep", "Time between comparisons of everything."
)
SHARD_TOPICS = Key(
    "lockstep.shard.topics", integer(1, unit="topics"), 2000, "Lockstep", "How many one request asks about at most."
)
HEARTBEAT_TIMEOUT = Key(
    "lockstep.heartbeat.timeout", DURATION_SECONDS, 30.0, "Lockstep", "The age from which on a heartbeat is stale."
)
MAX_DELETE_PERCENT = Key(
    "lockstep.limits.max.delete.percent",
    number(0, 100),
    30.0,
    "Lockstep",
    "The percentage of a kind that a plan may delete without --force.",
)
MAX_DELETE_MINIMUM = Key(
    "lockstep.limits.max.delete.minimum",
    integer(0, unit="items"),
    10,
    "Lockstep",
    "From how many on that limit counts.",
)
TOPIC_DELETES = Key(
    "lockstep.sync.topic.deletes.enabled",
    BOOLEAN,
    False,
    "Lockstep",
    "Whether remote topics that Lockstep created are deleted when their source is.",
)

SYNC_TOPIC_ACLS = Key(
    "sync.topic.acls.enabled",
    BOOLEAN,
    True,
    "MM2",
    "Whether literal ACLs of replicated topics are kept on the target, ALLOW WRITE left out, as MM2 does.",
)
SYNC_FULL_ACL = Key(
    "sync.full.acl.enabled",
    BOOLEAN,
    False,
    "KIP-965",
    "Whether all ACLs of replicated topics are, prefixed ones and those of groups and transactional ids as well.",
)
ACL_DELETES = Key(
    "lockstep.sync.acl.deletes.enabled",
    BOOLEAN,
    True,
    "Lockstep",
    "Whether ACLs that Lockstep created are deleted when the source has them no more.",
)
ACL_PRINCIPALS: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals", PATTERNS, (".*",), "Lockstep", "Principals whose ACLs are synced, as on the source."
)
ACL_PRINCIPALS_EXCLUDE: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals.exclude", PATTERNS, (), "Lockstep", "Principals left out even so."
)
ACL_MAPPING = Key(
    "lockstep.acl.principal.mapping",
    TEXT,
    "DEFAULT",
    "Lockstep",
    "What principals are called on the target, as rules like those of ssl.principal.mapping.rules (KIP-371).",
)

KEY_LENGTHS = ("128", "192", "256")
"""Those of AES, in bits."""

CREDENTIAL_PROVIDER = Key(
    "lockstep.credential.provider.class",
    CLASS,
    "app.credentials.providers:FileCredentialProvider",
    "Lockstep",
    "The class that knows the passwords of SCRAM users; EnvironmentCredentialProvider and DirectoryCredentialProvider "
    "stand beside the default.",
    Scope.JOB,
)
CREDENTIAL_STORE = Key(
    "lockstep.credential.store",
    ValueType(FOLDER.parse, "a file or folder on this machine"),
    Path(".lockstep/credentials"),
    "Lockstep",
    "Their encrypted file, relative to the working directory; for DirectoryCredentialProvider the folder.",
    Scope.JOB,
)
ENCODER_SECRET: Key[str | None] = Key(
    "password.encoder.secret", TEXT, None, "KIP-226", "What passwords in that file are encrypted with.", Scope.JOB
)
ENCODER_OLD_SECRET: Key[str | None] = Key(
    "password.encoder.old.secret", TEXT, None, "KIP-226", "The secret before, while it is being replaced.", Scope.JOB
)
ENCODER_KEYFACTORY = Key(
    "password.encoder.keyfactory.algorithm",
    one_of(*(f"PBKDF2WithHmacSHA{bits}" for bits in (512, 384, 256, 224, 1))),
    "PBKDF2WithHmacSHA512",
    "KIP-226",
    "How the key is made from the secret.",
    Scope.JOB,
)
ENCODER_CIPHER = Key(
    "password.encoder.cipher.algorithm",
    one_of("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"),
    "AES/CBC/PKCS5Padding",
    "KIP-226",
    "The cipher, by Java's name.",
    Scope.JOB,
)
ENCODER_KEY_LENGTH = Key(
    "password.encoder.key.length",
    ValueType(lambda text: int(KEY_LENGTHS[KEY_LENGTHS.index(text)]), ", ".join(KEY_LENGTHS), KEY_LENGTHS),
    256,
    "KIP-226",
    "Of the key, in bits; KIP-226's default, where Kafka's own is 128.",
    Scope.JOB,
)
ENCODER_ITERATIONS = Key(
    "password.encoder.iterations", integer(1024), 4096, "KIP-226", "Rounds that make the key.", Scope.JOB
)

TABLE: Mapping[str, Key[Any]] = {
    key.name: key
    for key in (
        CLUSTERS,
        CONFIG_PROVIDERS,
        ENABLED,
        TOPICS,
        TOPICS_EXCLUDE,
        TOPIC_FILTER,
        GROUPS,
        GROUPS_EXCLUDE,
        GROUP_FILTER,
        POLICY,
        SEPARATOR,
        INTERNAL_SEPARATOR,
        OFFSET_SYNCS_LOCATION,
        SYNC_TOPIC_CONFIGS,
        CONFIG_EXCLUDE,
        CONFIG_FILTER,
        USE_DEFAULTS_FROM,
        USE_INCREMENTAL,
        REFRESH_TOPICS,
        REPLICATION_FACTOR,
        HEARTBEATS_REPLICATION,
        REFRESH_TOPICS_INTERVAL,
        SYNC_TOPIC_CONFIGS_INTERVAL,
        SYNC_GROUP_OFFSETS,
        SYNC_GROUP_OFFSETS_INTERVAL,
        EMIT_CHECKPOINTS,
        SYNC_BROKER_CONFIGS,
        BROKER_CONFIG_PROPERTIES,
        TOPIC_LISTENER,
        GROUP_LISTENER,
        LISTENER_TIMEOUT,
        WEBHOOK_URL,
        WEBHOOK_SECRET,
        OFFSET_TRANSLATION,
        METRIC_REPORTERS,
        PUSH_URL,
        PUSH_INTERVAL,
        PUSH_JOB,
        PUSH_USERNAME,
        PUSH_PASSWORD,
        TRIGGER_INTERVAL,
        CHECKPOINT_DIR,
        HTTP_HOST,
        HTTP_PORT,
        OBSERVE_RATE,
        FULL_COMPARISON_INTERVAL,
        SHARD_TOPICS,
        HEARTBEAT_TIMEOUT,
        MAX_DELETE_PERCENT,
        MAX_DELETE_MINIMUM,
        TOPIC_DELETES,
        SYNC_TOPIC_ACLS,
        SYNC_FULL_ACL,
        ACL_DELETES,
        ACL_PRINCIPALS,
        ACL_PRINCIPALS_EXCLUDE,
        ACL_MAPPING,
        CREDENTIAL_PROVIDER,
        CREDENTIAL_STORE,
        ENCODER_SECRET,
        ENCODER_OLD_SECRET,
        ENCODER_KEYFACTORY,
        ENCODER_CIPHER,
        ENCODER_KEY_LENGTH,
        ENCODER_ITERATIONS,
    )
}
"""All of them, by name."""
