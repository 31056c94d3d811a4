"""Who is notified: listeners, and reporters of metrics."""

from __future__ import annotations

from app.properties.keys.key import MIRROR, Key, KeyScope, Live
from app.properties.value_types import CLASS, DURATION_SECONDS, TEXT, ValueType, items

TOPIC_LISTENER = Key(
    "topic.listener.class",
    CLASS,
    f"{MIRROR}DefaultTopicListener",
    "KAFKA-14903",
    "The class that is told which topics are replicated; lockstep.listeners:LogListener and "
    "lockstep.listeners:WebhookListener come with Lockstep (listeners.md).",
)
GROUP_LISTENER = Key(
    "group.listener.class",
    CLASS,
    f"{MIRROR}DefaultGroupListener",
    "KAFKA-14903",
    "The class that is told which groups are kept in step; lockstep.listeners:LogListener and "
    "lockstep.listeners:WebhookListener come with Lockstep (listeners.md).",
)
LISTENER_TIMEOUT = Key(
    "lockstep.listener.timeout",
    DURATION_SECONDS,
    10.0,
    "Lockstep",
    "How long one call of topic.listener.class or group.listener.class may take.",
)
WEBHOOK_URL: Key[str | None] = Key(
    "lockstep.listener.webhook.url",
    TEXT,
    None,
    "Lockstep",
    "Where WebhookListener posts topics and groups to: http or https.",
)
WEBHOOK_SECRET: Key[str | None] = Key(
    "lockstep.listener.webhook.secret",
    TEXT,
    None,
    "Lockstep",
    "What WebhookListener signs its requests with, by HMAC-SHA256 (listeners.md).",
)
JMX_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"
METRIC_REPORTERS: Key[tuple[str, ...]] = Key(
    "metric.reporters",
    ValueType(
        lambda text: tuple(CLASS.parse(one) for one in items(text)),
        "classes, separated by commas, each as package.module:Class; those with Java names are left to MM2",
    ),
    (JMX_REPORTER,),
    "KIP-226",
    "Classes that get the job's metrics; lockstep.reporters:PushGatewayReporter comes with Lockstep (metrics.md).",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_URL: Key[str | None] = Key(
    "lockstep.metric.push.url",
    TEXT,
    None,
    "Lockstep",
    "The Prometheus Pushgateway that PushGatewayReporter pushes to: http or https.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_INTERVAL = Key(
    "lockstep.metric.push.interval",
    DURATION_SECONDS,
    15.0,
    "Lockstep",
    "Time between two pushes to the gateway; the last one comes when the job ends.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_JOB = Key(
    "lockstep.metric.push.job",
    TEXT,
    "lockstep",
    "Lockstep",
    "What the label `job` says of metrics that are pushed; another name for each job of Lockstep that pushes "
    "to one gateway.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_USERNAME: Key[str | None] = Key(
    "lockstep.metric.push.username",
    TEXT,
    None,
    "Lockstep",
    "The user name with which it pushes, where the gateway asks for one.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_PASSWORD: Key[str | None] = Key(
    "lockstep.metric.push.password",
    TEXT,
    None,
    "Lockstep",
    "The password of that user name.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
