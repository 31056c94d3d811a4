"""Filters of topics, groups and configs.

For `topic.filter.class`, `group.filter.class`, `config.property.filter.class`.
"""

from __future__ import annotations

from streaming.mm2.replication_filters import (
    ConfigPropertyFilter,
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultTopicFilter,
    GroupFilter,
    TopicFilter,
)

__all__ = [
    "ConfigPropertyFilter",
    "DefaultConfigPropertyFilter",
    "DefaultGroupFilter",
    "DefaultTopicFilter",
    "GroupFilter",
    "TopicFilter",
]
