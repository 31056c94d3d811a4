"""Who is notified: listeners, and reporters of metrics."""

from __future__ import annotations

from app.properties.keys.key import MIRROR, Key, KeyScope, Live
from app.properties.value_types import CLASS, DURATION_SECONDS, TEXT, ValueType, items

TOPIC_LISTENER = Key(
    "topic.listener.class",
    CLASS,
    f"{MIRROR}DefaultTopicListener",
    "KAFKA-14903",
    "Class that is told which topics are replicated (listeners.md).",
)
GROUP_LISTENER = Key(
    "group.listener.class",
    CLASS,
    f"{MIRROR}DefaultGroupListener",
    "KAFKA-14903",
    "Class that is told which groups are kept in step (listeners.md).",
)
LISTENER_TIMEOUT = Key(
    "lockstep.listener.timeout",
    DURATION_SECONDS,
    10.0,
    "Lockstep",
    "Longest time that one call of a listener may take.",
)
WEBHOOK_URL: Key[str | None] = Key(
    "lockstep.listener.webhook.url",
    TEXT,
    None,
    "Lockstep",
    "Address that WebhookListener posts to: http or https.",
)
WEBHOOK_SECRET: Key[str | None] = Key(
    "lockstep.listener.webhook.secret",
    TEXT,
    None,
    "Lockstep",
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
    "KIP-226",
    "Classes that get the job's metrics (plugins.md).",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_URL: Key[str | None] = Key(
    "lockstep.metric.push.url",
    TEXT,
    None,
    "Lockstep",
    "Prometheus Pushgateway of PushGatewayReporter: http or https.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_INTERVAL = Key(
    "lockstep.metric.push.interval",
    DURATION_SECONDS,
    15.0,
    "Lockstep",
    "Time between two pushes. The last one comes when the job ends.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_JOB = Key(
    "lockstep.metric.push.job",
    TEXT,
    "lockstep",
    "Lockstep",
    "Label `job` of pushed metrics. Give each job that pushes to one gateway its own.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_USERNAME: Key[str | None] = Key(
    "lockstep.metric.push.username",
    TEXT,
    None,
    "Lockstep",
    "User name for the gateway.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
PUSH_PASSWORD: Key[str | None] = Key(
    "lockstep.metric.push.password",
    TEXT,
    None,
    "Lockstep",
    "Password for the gateway.",
    KeyScope.JOB,
    live=Live.REPORTERS,
)
