"""Listeners that a flow calls.

For `topic.listener.class`, `group.listener.class`, `lockstep.failover.listener.class`. LogListener writes to compacted
topics on the target, WebhookListener posts signed JSON; see docs/listeners.md.
"""

from __future__ import annotations

from sinks.notify.log_listener import LogListener
from sinks.notify.webhook import WebhookListener
from sinks.plugins.listeners import (
    DefaultFailoverListener,
    DefaultGroupListener,
    DefaultTopicListener,
    FailoverListener,
    GroupListener,
    TopicListener,
)

__all__ = [
    "DefaultFailoverListener",
    "DefaultGroupListener",
    "DefaultTopicListener",
    "FailoverListener",
    "GroupListener",
    "LogListener",
    "TopicListener",
    "WebhookListener",
]
