"""Which groups a flow follows. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sinks.flow_settings import FlowSettings


def chosen_groups(settings: FlowSettings, names: Iterable[str]) -> list[str]:
    """Groups that are followed, sorted."""
    return sorted(group for group in names if is_followed(settings, group))


def is_followed(settings: FlowSettings, group: str) -> bool:
    """Whether the filter lets a group through. The group without a name, whose commits brokers take for the sake of old
    consumers, is none: no Admin client asks for it, nor commits for it."""
    return bool(group) and settings.group_filter.should_replicate_group(group)
