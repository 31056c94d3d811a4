"""Who is told what is replicated: for `topic.listener.class`, `group.listener.class`.

LogListener keeps compacted topics on the target, WebhookListener posts signed JSON; docs/listeners.md.
"""

from __future__ import annotations

from sinks.notify.listeners import DefaultGroupListener, DefaultTopicListener, GroupListener, TopicListener
from sinks.notify.log_listener import LogListener
from sinks.notify.webhook import WebhookListener

__all__ = [
    "DefaultGroupListener",
    "DefaultTopicListener",
    "GroupListener",
    "LogListener",
    "TopicListener",
    "WebhookListener",
]
