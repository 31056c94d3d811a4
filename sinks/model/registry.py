"""All kinds of resources that can be kept in step: one row for each, and nothing else lists them. Pure.

Settings, the job, plan, apply, status, rights, metrics and the pages of docs made from code read this table. A kind's
controller and writer are found in `sinks.kinds.<package>.controller` (`sinks.kinds.assembly` says what it must have).

The ranks in `order` form one sequence for all kinds. Topics exist before they are configured, and have their
own configs before the brokers' defaults move. A DENY is in force before the ALLOW that it restricts, and until that is
gone. Deletions of what others need come last.
"""

from __future__ import annotations

from enum import Enum

from sinks.kafka.ports.acl_binding import ALLOW, DENY
from sinks.model.kind_row import FlowSide, KindRow, On, Op, RequiredRight, Switch

SOURCE, TARGET = FlowSide.SOURCE, FlowSide.TARGET


NO_ROW = KindRow("", (), {})
"""Lets a kind be looked up by its name: `Kind("acl")`."""


class Kind(str, Enum):
    """A kind of resource that Lockstep keeps in step. `row`: what is known of the kind."""

    row: KindRow

    def __new__(cls, name: str, row: KindRow = NO_ROW) -> Kind:
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.row = row
        return kind

    def __str__(self) -> str:
        return str(self.value)

    TOPIC = (
        "topic",
        KindRow(
            package="topics",
            key_fields=("topic",),
            # An update is the growth of its partitions; they never shrink.
            order={Op.CREATE: 0, Op.UPDATE: 10, Op.DELETE: 200},
            written_with={Op.CREATE: "CREATE", Op.UPDATE: "ALTER", Op.DELETE: "DELETE"},
            data=True,
            shown_late=True,
            enabled_by=(Switch("refresh.topics.enabled"),),
            interval_key="refresh.topics.interval.seconds",
            rights=(
                RequiredRight(TARGET, On.REMOTE, ("CREATE", "ALTER"), "creates remote topics and adds partitions"),
                RequiredRight(
                    TARGET,
                    On.REMOTE,
                    ("DELETE",),
                    "deletes remote topics that it made",
                    "lockstep.sync.topic.deletes.enabled",
                    also="topic_deletes",
                ),
            ),
        ),
    )
    TOPIC_CONFIG = (
        "topic-config",
        KindRow(
            package="topics",
            key_fields=("topic", "name"),
            order={Op.CREATE: 20, Op.UPDATE: 21, Op.DELETE: 22},
            written_with=dict.fromkeys(Op, "ALTER_CONFIGS"),
            # The configs of a remote topic are its source's (KIP-894), so none of them is ours, and no limit counts.
            owned=False,
            limited=False,
            together=True,
            enabled_by=(Switch("sync.topic.configs.enabled"),),
            interval_key="sync.topic.configs.interval.seconds",
            rights=(RequiredRight(TARGET, On.REMOTE, ("ALTER_CONFIGS",), "keeps topic configs in step"),),
        ),
    )
    ACL = (
        "acl",
        KindRow(
            package="acls",
            key_fields=(
                "resource_type",
                "resource_name",
                "pattern_type",
                "principal",
                "host",
                "operation",
                "permission",
            ),
            # An ACL is its key: there is nothing to update.
            order={(Op.CREATE, DENY): 80, (Op.CREATE, ALLOW): 81, (Op.DELETE, ALLOW): 82, (Op.DELETE, DENY): 83},
            written_with=dict.fromkeys(Op, "ALTER"),
            of_principals=True,
            shown_late=True,
            enabled_by=(Switch("sync.topic.acls.enabled"), Switch("sync.full.acl.enabled")),
            rights=(
                RequiredRight(SOURCE, On.CLUSTER, ("DESCRIBE",), "reads ACLs"),
                RequiredRight(TARGET, On.CLUSTER, ("DESCRIBE", "ALTER"), "reads and writes ACLs"),
            ),
        ),
    )
    SCRAM_USER = (
        "scram-user",
        KindRow(
            package="users",
            key_fields=("user", "mechanism"),
            order={Op.CREATE: 60, Op.UPDATE: 61, Op.DELETE: 190},
            written_with=dict.fromkeys(Op, "ALTER"),
            of_principals=True,
            versioned=True,
            rights=(
                RequiredRight(SOURCE, On.CLUSTER, ("DESCRIBE",), "reads SCRAM users", "SCRAM users are synced"),
                RequiredRight(
                    TARGET,
                    On.CLUSTER,
                    ("DESCRIBE", "ALTER"),
                    "reads and writes SCRAM users",
                    "SCRAM users are synced",
                ),
            ),
        ),
    )
    BROKER_CONFIG = (
        "broker-config",
        KindRow(
            package="brokers",
            # The broker "" is all of them: the cluster-wide default.
            key_fields=("broker", "name"),
            order={Op.CREATE: 40, Op.UPDATE: 41, Op.DELETE: 42},
            written_with=dict.fromkeys(Op, "ALTER_CONFIGS"),
            enabled_by=(Switch("lockstep.sync.broker.configs.enabled"),),
            rights=(
                RequiredRight(SOURCE, On.CLUSTER, ("DESCRIBE_CONFIGS",), "reads broker configs"),
                RequiredRight(
                    TARGET, On.CLUSTER, ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"), "reads and writes broker configs"
                ),
            ),
        ),
    )
    CLIENT_QUOTA = (
        "client-quota",
        KindRow(
            package="quotas",
            key_fields=("user", "client_id", "ip", "name"),
            nullable=frozenset({"user", "client_id", "ip"}),
            order={Op.CREATE: 50, Op.UPDATE: 51, Op.DELETE: 52},
            written_with=dict.fromkeys(Op, "ALTER_CONFIGS"),
            # An entity is all or nothing, whatever becomes of each of its quotas.
            together=True,
            of_principals=True,
            enabled_by=(
                Switch(
                    "lockstep.sync.client.quotas.enabled",
                    doc="Keep client quotas on the target: users, client ids, both, defaults, addresses.",
                ),
            ),
            rights=(
                RequiredRight(SOURCE, On.CLUSTER, ("DESCRIBE_CONFIGS",), "reads client quotas"),
                RequiredRight(
                    TARGET, On.CLUSTER, ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"), "reads and writes client quotas"
                ),
            ),
        ),
    )
    GROUP_OFFSET = (
        "group-offset",
        KindRow(
            package="offsets",
            key_fields=("group", "topic", "partition"),
            numbers=frozenset({"partition"}),
            # Offsets only move forward. They are the group's, never ours.
            order={Op.CREATE: 100, Op.UPDATE: 101},
            written_with=dict.fromkeys(Op, "READ"),
            owned=False,
            content=True,
            enabled_by=(Switch("sync.group.offsets.enabled"),),
            interval_key="sync.group.offsets.interval.seconds",
            # The writer lists all groups of the target each time.
            together=True,
            in_a_request=10_000,
            rights=(
                RequiredRight(SOURCE, On.GROUPS, ("DESCRIBE",), "sees groups and their offsets"),
                RequiredRight(TARGET, On.GROUPS, ("DESCRIBE", "READ"), "sees members and offsets, and commits"),
                RequiredRight(TARGET, On.REMOTE, ("READ",), "commits offsets of these topics"),
                RequiredRight(
                    SOURCE,
                    On.UPSTREAM,
                    ("READ",),
                    "finds a group's record again on the target",
                    "sync.group.offsets.enabled, lockstep.offset.translation=matched",
                    also="matching",
                ),
            ),
        ),
    )
