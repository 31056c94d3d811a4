"""A source of what is polled as lists, and what the target should have of it, by a code of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sinks.kafka.ports.acl_binding import GROUP, TOPIC
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kinds.quotas.rules import keys_of
from sinks.model.changes import Key, Kind
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_levels import MemoryLevels
from tests.memory.memory_quotas import MemoryQuotas
from tests.memory.memory_users import MemoryUsers
from tests.sinks.builders import Passwords

LISTS = (Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA, Kind.BROKER_CONFIG)

Items = Mapping[Key, object]
"""What there is, by key, each with what counts of it."""


@dataclass
class Cluster:
    """The lists of one cluster."""

    alias: str
    acls: MemoryAcls
    users: MemoryUsers
    quotas: MemoryQuotas
    levels: MemoryLevels

    def items(self, kind: Kind) -> Items:
        """All that it has, whatever it shows."""
        if kind is Kind.ACL:
            return {one.key: "" for one in self.acls.bindings}
        if kind is Kind.SCRAM_USER:
            return {key: (one.iterations, one.password) for key, one in self.users.stored.items()}
        if kind is Kind.CLIENT_QUOTA:
            return keys_of(self.quotas.quotas)
        return {("", name): value for name, value in self.levels.set_at.get(DEFAULT_OF_ALL, {}).items()}

    def wanted(self, kind: Kind, passwords: Passwords) -> Items:
        """What a target should have of it, under the default policy and with all of KIP-965."""
        if kind is Kind.ACL:
            on_topics = [one for one in self.acls.bindings if one.resource_type == TOPIC]
            principals = {one.principal for one in on_topics}
            there = {replace(one, resource_name=f"{self.alias}.{one.resource_name}").key for one in on_topics}
            groups = [one for one in self.acls.bindings if one.resource_type == GROUP]
            return dict.fromkeys(there | {one.key for one in groups if one.principal in principals}, "")
        if kind is Kind.SCRAM_USER:
            named = {one.principal.removeprefix("User:") for one in self.acls.bindings if one.resource_type == TOPIC}
            users = {key: one for key, one in self.users.stored.items() if key[0] in named}
            return {key: (one.iterations, passwords.known[key[0]][0]) for key, one in users.items()}
        return self.items(kind)
