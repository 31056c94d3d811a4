"""The keys that Lockstep reads: type, default, scope, meaning.

A key of scope FLOW is written `a->b.KEY` for one flow, or `KEY` for all. Any key of MM2's may carry the prefix
`lockstep.` in front (`lockstep.KEY`, `lockstep.a->b.KEY`) or after the flow (`a->b.lockstep.KEY`), and then wins.
Defaults of MM2's keys are MM2 4.3.1's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from app.properties.value_types import (
    BOOLEAN,
    CLASS,
    DURATION_SECONDS,
    FOLDER,
    PATTERNS,
    TEXT,
    TOKEN,
    TOPIC_PART,
    WORDS,
    ValueType,
    integer,
    items,
    number,
    one_of,
    secret,
    some_of,
)
from sinks.kinds.brokers.rules import DEFAULT_PROPERTIES
from sinks.model.registry import Kind
from streaming.mm2 import replication_filters

T = TypeVar("T")

MIRROR = "org.apache.kafka.connect.mirror."


class KeyScope(Enum):
    """What a key holds for."""

    JOB = "the whole job"
    FLOW = "a flow, or all of them"
    CLUSTER = "one cluster, behind its alias"


class Live(Enum):
    """What a running job does when the key changes in its file."""

    FLOW = "at once"
    QUERY = "at once; the query restarts"
    BATCH = "at once; flows continue"
    REPORTERS = "at once; reporters get the new values"
    JOB = "with a restart of the job"


REPLACES_FLOWS = frozenset({Live.FLOW, Live.QUERY})
"""Changes that replace the flow, or reconfigure its plug-ins, because the flow's settings are made from these keys."""


@dataclass(frozen=True)
class Key(Generic[T]):
    """One key. `kip`: the Kafka proposal or issue that introduced it. Empty: it is MM2's, or Lockstep's own if it
    begins with `lockstep.`. `prefixed`: Lockstep reads it only with the prefix `lockstep.`."""

    name: str
    type: ValueType[T]
    default: T
    doc: str
    scope: KeyScope = KeyScope.FLOW
    prefixed: bool = False
    live: Live = Live.FLOW
    kip: str = ""


def _at_start(name: str, type: ValueType[T], default: T, doc: str) -> Key[T]:
    return Key(name, type, default, doc, KeyScope.JOB, live=Live.JOB)


def _of_push(name: str, type: ValueType[T], default: T, doc: str) -> Key[T]:
    return Key(name, type, default, doc, KeyScope.JOB, live=Live.REPORTERS)


def _of_encoder(name: str, type: ValueType[T], default: T, doc: str) -> Key[T]:
    return Key(name, type, default, doc, KeyScope.JOB, kip="KIP-226")


def _interval(name: str, polled: str) -> Key[int | None]:
    doc = f"Seconds between two polls of {polled}. Unset: Lockstep polls at its own pace."
    return Key(name, integer(1, unit="seconds"), None, doc, prefixed=True)


def _own_factor(name: str, topic: str) -> Key[int | None]:
    doc = f"Replicas of the {topic} when it is created. -1: the broker's default. Unset: one per broker, 3 at most."
    return Key(name, REPLICAS, None, doc)


REPLICAS = integer(1, 32767, besides=(-1,))

# Which clusters and flows there are, what is replicated, and how it is named.

CLUSTERS: Key[tuple[str, ...]] = _at_start(
    "clusters",
    WORDS,
    (),
    "Aliases of all clusters. A cluster's settings begin with its alias, as in a.bootstrap.servers.",
)
CONFIG_PROVIDERS: Key[tuple[str, ...]] = _at_start(
    "config.providers", WORDS, (), "Names of further config providers. env, file and dir always exist."
)
ENABLED = Key("enabled", BOOLEAN, False, "Keep the flow in step; written as a->b.enabled.", live=Live.JOB)
TOPICS = Key("topics", PATTERNS, (".*",), "Topics that are replicated, by their names on the source.")
TOPICS_EXCLUDE = Key(
    "topics.exclude",
    PATTERNS,
    items(replication_filters.DEFAULT_TOPICS_EXCLUDE),
    "Topics that are left out although `topics` matches them.",
)
TOPIC_FILTER = Key(
    "topic.filter.class",
    CLASS,
    f"{MIRROR}DefaultTopicFilter",
    "Class that decides which topics are replicated. The default follows `topics` and `topics.exclude`.",
)
GROUPS = Key("groups", PATTERNS, (".*",), "Consumer groups whose offsets are kept in step.")
GROUPS_EXCLUDE = Key(
    "groups.exclude",
    PATTERNS,
    items(replication_filters.DEFAULT_GROUPS_EXCLUDE),
    "Groups that are left out although `groups` matches them.",
)
GROUP_FILTER = Key(
    "group.filter.class",
    CLASS,
    f"{MIRROR}DefaultGroupFilter",
    "Class that decides which groups are kept in step. The default follows `groups` and `groups.exclude`.",
)
POLICY = Key(
    "replication.policy.class",
    CLASS,
    f"{MIRROR}DefaultReplicationPolicy",
    "Class that names remote topics (orders of a is a.orders on b) and MM2's internal topics. Use the same as MM2.",
    live=Live.QUERY,
    kip="KIP-690",
)
SEPARATOR = Key(
    "replication.policy.separator",
    TOPIC_PART,
    ".",
    "Text between the alias and the topic in the name of a remote topic.",
    live=Live.QUERY,
    kip="KIP-690",
)
INTERNAL_SEPARATOR = Key(
    "replication.policy.internal.topic.separator.enabled",
    BOOLEAN,
    True,
    "Use replication.policy.separator in the names of MM2's internal topics too. false: a dot.",
    live=Live.QUERY,
    kip="KAFKA-15102",
)
COPIER = Key(
    "lockstep.copier",
    one_of("mm2", "offset-preserving"),
    "mm2",
    "What copies the records. offset-preserving: a copier that gives each record the offset and each topic the name "
    "that it has on the source, and writes no topics of its own (docs/copiers.md).",
    live=Live.QUERY,
)
COPIER_KEEPS = Key(
    "lockstep.copier.keeps",
    some_of(*(kind.value for kind in Kind)),
    ("topic",),
    "Kinds that an offset-preserving copier keeps in step itself: Lockstep compares them and writes none of them.",
)
OFFSET_SYNCS_LOCATION = Key(
    "offset-syncs.topic.location",
    one_of("source", "target"),
    "source",
    "Cluster on which MM2 keeps its offset-syncs topic.",
    live=Live.QUERY,
)


# Configs of topics and of brokers.

SYNC_TOPIC_CONFIGS = Key(
    "sync.topic.configs.enabled",
    BOOLEAN,
    True,
    "Keep the configs of remote topics as they are on the source.",
    kip="KIP-894",
)
CONFIG_EXCLUDE = Key(
    "config.properties.exclude",
    PATTERNS,
    items(replication_filters.CONFIG_PROPERTIES_EXCLUDE),
    "Topic configs that Lockstep never touches on the target.",
)
CONFIG_FILTER = Key(
    "config.property.filter.class",
    CLASS,
    f"{MIRROR}DefaultConfigPropertyFilter",
    "Class that decides which topic configs are kept in step. The default follows `config.properties.exclude`.",
)
USE_DEFAULTS_FROM = Key(
    "use.defaults.from",
    one_of("source", "target"),
    "target",
    "Cluster whose default the target uses for a config that the source topic does not set.",
    kip="KIP-894",
)
USE_INCREMENTAL = Key(
    "use.incremental.alter.configs",
    one_of("requested", "required", "never"),
    "requested",
    "How configs are written. requested: one by one, or all of a topic at once on old brokers. required: "
    "one by one, else the flow is in ERROR. never: all at once, which undoes what another client changes "
    "in the same moment.",
    kip="KIP-894",
)
REFRESH_TOPICS = Key("refresh.topics.enabled", BOOLEAN, True, "Create missing remote topics and grow their partitions.")
REPLICATION_FACTOR = Key(
    "replication.factor",
    REPLICAS,
    2,
    "Replicas of remote topics when they are created. -1: the broker's default.",
)
HEARTBEATS_REPLICATION = Key(
    "heartbeats.replication.enabled",
    BOOLEAN,
    True,
    "MM2 copies heartbeats topics, even if `topics` does not match them. Lockstep reads the copies.",
)
REFRESH_TOPICS_INTERVAL = _interval("refresh.topics.interval.seconds", "topics")
SYNC_TOPIC_CONFIGS_INTERVAL = _interval("sync.topic.configs.interval.seconds", "configs")
TOPIC_DELETES = Key(
    "lockstep.sync.topic.deletes.enabled",
    BOOLEAN,
    False,
    "Delete a remote topic that Lockstep created, with its records, when its topic is gone from the source.",
)
SYNC_BROKER_CONFIGS = Key(
    "lockstep.sync.broker.configs.enabled",
    BOOLEAN,
    False,
    "Keep the cluster-wide dynamic configs of the source's brokers on the target's.",
)
BROKER_CONFIG_PROPERTIES = Key(
    "lockstep.broker.config.properties",
    PATTERNS,
    items(DEFAULT_PROPERTIES),
    "Dynamic configs that lockstep.sync.broker.configs.enabled keeps in step; never listeners, SSL and SASL.",
)


# Offsets of consumer groups.

SYNC_GROUP_OFFSETS = Key(
    "sync.group.offsets.enabled",
    BOOLEAN,
    False,
    "Commit the source's group offsets on the target, for groups without members there.",
)
SYNC_GROUP_OFFSETS_INTERVAL = _interval("sync.group.offsets.interval.seconds", "groups")
EMIT_CHECKPOINTS = Key(
    "emit.checkpoints.enabled",
    BOOLEAN,
    False,
    "Write checkpoints as MM2 does, so that MM2's connector for them can be switched off.",
    prefixed=True,
)
OFFSET_TRANSLATION = Key(
    "lockstep.offset.translation",
    one_of("matched", "conservative"),
    "matched",
    "How source offsets become target offsets. matched finds the record itself; conservative uses MM2's "
    "offset-syncs alone, so groups read more twice.",
)


# Who is notified: listeners, and reporters of metrics.

TOPIC_LISTENER = Key(
    "topic.listener.class",
    CLASS,
    f"{MIRROR}DefaultTopicListener",
    "Class that Lockstep notifies of the replicated topics (listeners.md).",
    kip="KAFKA-14903",
)
GROUP_LISTENER = Key(
    "group.listener.class",
    CLASS,
    f"{MIRROR}DefaultGroupListener",
    "Class that Lockstep notifies of the groups kept in step (listeners.md).",
    kip="KAFKA-14903",
)
LISTENER_TIMEOUT = Key(
    "lockstep.listener.timeout", DURATION_SECONDS, 10.0, "Longest time that one call of a listener may take."
)
WEBHOOK_URL: Key[str | None] = Key(
    "lockstep.listener.webhook.url", TEXT, None, "Address that WebhookListener posts to: http or https."
)
WEBHOOK_SECRET: Key[str | None] = Key(
    "lockstep.listener.webhook.secret",
    TEXT,
    None,
    "Secret with which WebhookListener signs its requests by HMAC-SHA256.",
)
JMX_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"
METRIC_REPORTERS: Key[tuple[str, ...]] = Key(
    "metric.reporters",
    ValueType(
        lambda text: tuple(CLASS.parse(one) for one in items(text)),
        "classes, separated by commas, each as package.module:Class; those with Java names are left to MM2",
    ),
    (JMX_REPORTER,),
    "Classes that get the job's metrics (plugins.md).",
    KeyScope.JOB,
    live=Live.REPORTERS,
    kip="KIP-226",
)
PUSH_URL: Key[str | None] = _of_push(
    "lockstep.metric.push.url", TEXT, None, "Prometheus Pushgateway of PushGatewayReporter: http or https."
)
PUSH_INTERVAL = _of_push(
    "lockstep.metric.push.interval",
    DURATION_SECONDS,
    15.0,
    "Time between two pushes. The last one comes when the job ends.",
)
PUSH_JOB = _of_push(
    "lockstep.metric.push.job",
    TEXT,
    "lockstep",
    "Label `job` of pushed metrics. Give each job that pushes to one gateway its own.",
)
PUSH_USERNAME: Key[str | None] = _of_push("lockstep.metric.push.username", TEXT, None, "User name for the gateway.")
PUSH_PASSWORD: Key[str | None] = _of_push("lockstep.metric.push.password", TEXT, None, "Password for the gateway.")


# Where the job keeps what is its own, listens and logs.

CHECKPOINT_DIR = _at_start(
    "lockstep.checkpoint.dir",
    FOLDER,
    Path(".lockstep/checkpoints"),
    "Folder of Spark's checkpoint and of the local copy of the clusters' ids (safety.md).",
)
HTTP_HOST = _at_start("lockstep.http.host", TEXT, "127.0.0.1", "Address of the job's page, API and metrics (http.md).")
HTTP_PORT = _at_start(
    "lockstep.http.port", integer(0, 65535), 9464, "Port of the page, the API and the metrics. 0: a free one."
)
HTTP_TOKEN: Key[str | None] = _at_start(
    "lockstep.http.token",
    TOKEN,
    None,
    "Token that every request must carry (`Authorization: Bearer`). Required unless lockstep.http.host is "
    "a loopback address.",
)
LOG_FORMAT = _at_start(
    "lockstep.log.format",
    one_of("text", "json"),
    "text",
    "Format of log lines on stderr. json: an object a line, with flow and pass.",
)


# How often and how much is polled, read and compared.

TRIGGER_INTERVAL = Key(
    "lockstep.trigger.interval",
    DURATION_SECONDS,
    10.0,
    "Longest time that a micro-batch lasts, and so until MM2's records are read. Passes do not wait for it.",
    KeyScope.JOB,
    live=Live.BATCH,
)
PASS_MIN_INTERVAL = Key(
    "lockstep.pass.min.interval",
    DURATION_SECONDS,
    0.2,
    "Shortest time between two passes of a flow.",
    KeyScope.JOB,
    live=Live.BATCH,
)
OBSERVE_SHARE = Key(
    "lockstep.observe.share",
    number(0.001, 1),
    0.1,
    "Share of the time that a flow may spend on polling the source's topic configs (0.1: a tenth). Unused "
    "time is saved, up to 30 seconds.",
)
OBSERVE_RATE = Key(
    "lockstep.observe.rate",
    integer(0, unit="topics a second"),
    0,
    "Most topics whose configs a flow polls per second, whatever lockstep.observe.share allows. 0: no limit.",
)
FULL_COMPARISON_INTERVAL = Key(
    "lockstep.full.comparison.interval",
    DURATION_SECONDS,
    60.0,
    "Time between two comparisons of everything on both sides. The flows of a job take turns and wait "
    "half an interval at most.",
)
SHARD_TOPICS = Key("lockstep.shard.topics", integer(1, unit="topics"), 2000, "Most topics in one request for configs.")
HEARTBEAT_TIMEOUT = Key(
    "lockstep.heartbeat.timeout", DURATION_SECONDS, 30.0, "Age of MM2's newest heartbeat above which a flow is `STALE`."
)


# ACLs, SCRAM users, and how passwords are kept.

SYNC_TOPIC_ACLS = Key(
    "sync.topic.acls.enabled",
    BOOLEAN,
    True,
    "Keep literal ACLs of replicated topics on the target, without ALLOW WRITE, as MM2 does.",
)
SYNC_FULL_ACL = Key(
    "sync.full.acl.enabled",
    BOOLEAN,
    False,
    "Keep all ACLs of replicated topics: also prefixes, WRITE, groups and transactional ids, and their SCRAM users.",
    kip="KIP-965",
)
ACL_DELETES = Key(
    "lockstep.sync.acl.deletes.enabled",
    BOOLEAN,
    True,
    "Delete ACLs that Lockstep created when the source no longer has them.",
)
ACL_PRINCIPALS: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals", PATTERNS, (".*",), "Principals whose ACLs are synced, by their names on the source."
)
ACL_PRINCIPALS_EXCLUDE: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals.exclude",
    PATTERNS,
    (),
    "Principals whose ACLs are left out although lockstep.acl.principals matches them.",
)
ACL_MAPPING = Key(
    "lockstep.acl.principal.mapping",
    TEXT,
    "DEFAULT",
    "Names of principals on the target, as rules like ssl.principal.mapping.rules (KIP-371).",
)
ACL_PROTECTED: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals.protected",
    PATTERNS,
    (),
    "Principals of the target whose ACLs, SCRAM users and quotas Lockstep never touches. Principals that "
    "its client settings name are always protected.",
)
SCRAM_ADOPT: Key[tuple[str, ...]] = Key(
    "lockstep.scram.users.adopt",
    PATTERNS,
    (),
    "SCRAM users of the target that get the source's passwords although Lockstep did not create them.",
)
ACL_STAGE_WRITES = Key(
    "lockstep.acl.stage.writes",
    BOOLEAN,
    False,
    "Hold ALLOW WRITE of topics back until the target takes over (`promote`, `failover`). ALLOW ALL is "
    "READ until then.",
)
ACL_WILDCARD_DENIES = Key(
    "lockstep.acl.wildcard.denies.enabled",
    BOOLEAN,
    False,
    "With sync.full.acl.enabled, copy a DENY of all groups or transactional ids (*). It also holds for "
    "the target's own applications.",
)
KEY_LENGTHS = ("128", "192", "256")
CREDENTIAL_PROVIDER = Key(
    "lockstep.credential.provider.class",
    CLASS,
    "lockstep.credentials:FileCredentialProvider",
    "Class that returns the passwords of SCRAM users (access.md).",
    KeyScope.JOB,
)
CREDENTIAL_STORE = Key(
    "lockstep.credential.store",
    ValueType(FOLDER.parse, "a file or folder on this machine"),
    Path(".lockstep/credentials"),
    "Encrypted file of FileCredentialProvider, or the folder of DirectoryCredentialProvider.",
    KeyScope.JOB,
)
ENCODER_SECRET: Key[str | None] = _of_encoder(
    "password.encoder.secret",
    secret("; a shorter one from before may stay as password.encoder.old.secret"),
    None,
    "Secret that encrypts the credential store and passwords among overrides.",
)
ENCODER_OLD_SECRET: Key[str | None] = _of_encoder(
    "password.encoder.old.secret",
    TEXT,
    None,
    "The previous secret, until all passwords are encrypted with the new one.",
)
ENCODER_KEYFACTORY = _of_encoder(
    "password.encoder.keyfactory.algorithm",
    one_of(*(f"PBKDF2WithHmacSHA{bits}" for bits in (512, 384, 256, 224, 1))),
    "PBKDF2WithHmacSHA512",
    "How the key is derived from password.encoder.secret.",
)
ENCODER_CIPHER = _of_encoder(
    "password.encoder.cipher.algorithm",
    one_of("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"),
    "AES/GCM/NoPadding",
    "The cipher for these passwords. The default is GCM, which binds a password to its user or key; KIP-226 has CBC.",
)
ENCODER_KEY_LENGTH = _of_encoder(
    "password.encoder.key.length",
    ValueType(lambda text: int(KEY_LENGTHS[KEY_LENGTHS.index(text)]), ", ".join(KEY_LENGTHS), KEY_LENGTHS),
    256,
    "Length of that key in bits. Kafka's default is 128.",
)
ENCODER_ITERATIONS = _of_encoder(
    "password.encoder.iterations", integer(1024, 1_000_000), 210_000, "Rounds that derive that key. KIP-226 has 4096."
)


# What protects the target: which clusters are meant, who may write the ledger, and what a plan may delete.

OPENABLE = ("addresses", "classes", "deletions", "kinds", "limits", "mappings", "references")

CLUSTER_ID: Key[str | None] = Key(
    "lockstep.cluster.id",
    TEXT,
    None,
    "Id of the cluster that the alias's address must lead to. Without it, the id at first contact counts.",
    KeyScope.CLUSTER,
)
LEDGER_SECRET: Key[str | None] = Key(
    "lockstep.ledger.secret",
    secret(),
    None,
    "Secret that signs each entry of the ledger. Entries without that signature are refused (safety.md).",
)
LEDGER_REPLICATION_FACTOR = _own_factor("lockstep.ledger.replication.factor", "ledger")
AUDIT_REPLICATION_FACTOR = _own_factor("lockstep.audit.replication.factor", "audit topic")
OVERRIDES_ALLOWED: Key[tuple[str, ...]] = _at_start(
    "lockstep.overrides.allowed",
    some_of(*OPENABLE),
    (),
    "What overrides in the ledger may set besides harmless keys: safety.md lists the keys of each word (configs.md).",
)
MAX_DELETE_PERCENT = Key(
    "lockstep.limits.max.delete.percent",
    number(0, 100),
    30.0,
    "Percent of a kind's owned items that one plan may delete. More is refused until `lockstep apply --force`.",
)
MAX_DELETE_MINIMUM = Key(
    "lockstep.limits.max.delete.minimum",
    integer(0, unit="items"),
    10,
    "Fewer owned items than this count as this many: with 10 and 30 percent, up to 3 deletions are allowed.",
)
MAX_CREATE = Key(
    "lockstep.limits.max.create",
    integer(1, unit="items"),
    50_000,
    "Most items of a kind that the job creates within an hour; topics count by partitions. More is held "
    "until `lockstep apply --force`.",
)


# The failover: what makes a flow ready for it, how a fence is proven, and who is notified.

FAILOVER_MAX_LOSS = Key(
    "lockstep.failover.max.loss.records",
    integer(0),
    0,
    "Most uncopied records, in all topics together, of a flow that `preflight` calls ready.",
)
FAILOVER_MAX_LOSS_AGE = Key(
    "lockstep.failover.max.loss.age",
    DURATION_SECONDS,
    60.0,
    "Greatest age of an uncopied record of a flow that `preflight` calls ready. A busy flow always has some under way.",
)
FAILOVER_MAX_DRIFT = Key(
    "lockstep.failover.max.drift",
    integer(0),
    0,
    "Most differences of any kind of a flow that `preflight` and the page call ready.",
)
FAILOVER_MAX_GROUPS_SKIPPING = Key(
    "lockstep.failover.max.groups.skipping",
    integer(0),
    0,
    "Most partitions in which groups may skip records on the target, of a flow that `preflight` calls ready.",
)
FAILOVER_FENCE_PROOF = Key(
    "lockstep.failover.fence.proof",
    DURATION_SECONDS,
    10.0,
    "Time without new records on the fenced topics that proves the fence.",
)
FAILOVER_ENDS_INTERVAL = Key(
    "lockstep.failover.ends.interval",
    DURATION_SECONDS,
    5.0,
    "Shortest time between two readings of the source's ends. A failover without the source predicts its "
    "loss from the last one.",
)
FAILOVER_PREFLIGHT_INTERVAL = Key(
    "lockstep.failover.preflight.interval.seconds",
    integer(0),
    60,
    "Seconds between two preflights of a running job. 0: none. They take a tenth of the time at most.",
)
FAILOVER_LISTENER = Key(
    "lockstep.failover.listener.class",
    CLASS,
    "lockstep.listeners:DefaultFailoverListener",
    "Class that a failover command calls with each state it reaches, to switch clients over for instance "
    "(failover.md).",
)
FAILOVER_PROGRAM: Key[str | None] = Key(
    "lockstep.failover.program.path",
    TEXT,
    None,
    "Program that a failover command starts for each state it reaches, with the state as JSON on standard "
    "input (failover.md).",
)


# Comparing the records of both sides while the job runs.

VERIFY_ENABLED = Key(
    "lockstep.verify.enabled",
    BOOLEAN,
    False,
    "Compare the records of both sides while the job runs (verify.md). Needs READ on the topics of both sides.",
)
VERIFY_RATE = Key(
    "lockstep.verify.rate",
    integer(1024, unit="bytes a second"),
    1024 * 1024,
    "Average bytes per second that this comparison reads on each side, without compression.",
)


_DECLARED = {key.name: key for key in list(globals().values()) if isinstance(key, Key)}

TABLE: Mapping[str, Key[Any]] = _DECLARED | {
    switch.name: Key(switch.name, BOOLEAN, False, switch.doc)
    for kind in Kind
    for switch in kind.row.enabled_by
    if switch.name not in _DECLARED
}
"""All keys by name: those declared above, and the switches of all kinds."""
