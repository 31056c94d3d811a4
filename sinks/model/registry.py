"""All kinds of resources that Lockstep syncs, one row each. No other module lists them. Pure.

Settings, the job, plan, apply, status, rights, metrics and the generated pages read this table. The controller and the
writer of a kind are in `sinks.kinds.<package>.controller` (`sinks.kinds.assembly` says what it must have).

The ranks in `order` form one sequence for all kinds. Lockstep creates topics before it configures them, and sets their
own configs before the brokers' defaults. It creates a DENY before the ALLOW that it restricts, and deletes it after
that ALLOW. It deletes last what other items need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from sinks.kafka.ports.acl_binding import ALLOW, DENY
from streaming.message_words import Word

ABSENT = "\0"
"""A part of a key that is absent: null in JSON. Kafka allows no such name. `""` is a default entity."""


class Op(Word):
    """The operation of a change on the target."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class On(str, Enum):
    """The type of resource that a right names; the docs show these words."""

    CLUSTER = "the cluster"
    UPSTREAM = "replicated topics"
    REMOTE = "remote topics"
    OFFSET_SYNCS = "MM2's offset-syncs"
    CHECKPOINTS = "MM2's checkpoints"
    HEARTBEATS = "MM2's heartbeats"
    REPLICATED_HEARTBEATS = "MM2's replicated heartbeats"
    LEDGER = "Lockstep's ledger"
    AUDIT = "Lockstep's audit topic"
    GROUPS = "consumer groups"
    TRANSACTIONAL_IDS = "transactional ids"
    COMMITS = "the topic of groups' commits"
    TOPICS_LOG = "the topic of LogListener for topics"
    GROUPS_LOG = "the topic of LogListener for groups"
    DRILL_TOPIC = "the drill's topic"
    DRILL_COPY = "the copy of the drill's topic"
    DRILL_GROUPS = "the drill's groups"


class FlowSide(str, Enum):
    """A side of a flow. OFFSET_SYNCS: the side that `offset-syncs.topic.location` names."""

    SOURCE = "source"
    TARGET = "target"
    OFFSET_SYNCS = "source, or target with offset-syncs.topic.location=target"


@dataclass(frozen=True, slots=True)
class RequiredRight:
    """Operations that the job needs on a resource while a kind is enabled, and why."""

    side: FlowSide
    on: On
    operations: tuple[str, ...]
    why: str
    condition: str = ""
    """When the job needs them, in the docs' words; "": whenever the kind is enabled."""
    also: str | None = None
    """Attribute of `FlowSettings` that must be true as well."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A property that enables a kind. A key that no other table declares is off by default. `doc`: its line in the
    docs."""

    name: str
    doc: str = ""


@dataclass(frozen=True)
class KindRow:
    """One kind of resource."""

    package: str
    """Folder below `sinks.kinds` with the controller and the writer; two kinds may share one."""
    key_fields: tuple[str, ...]
    """Names of a key's parts, in order, as the plan's JSON shows them."""
    order: Mapping[Any, int]
    """The operations that the kind allows, each with its rank among all steps of a plan. If the key ends in a
    permission: by operation and permission."""
    written_with: Mapping[Op, str] = field(default_factory=dict)
    """Operation of Kafka's ACLs that the job needs for each operation of a plan."""
    owned: bool = True
    """Lockstep records in the ledger what it creates of the kind. It deletes only what the ledger lists."""
    limited: bool = True
    """The deletion limit counts the kind's deletions."""
    together: bool = False
    """The writer sends all operations in one request."""
    content: bool = False
    """The value moves all the time, as offsets do. So no digest holds it, and an update is no audit event."""
    data: bool = False
    """A deletion destroys records. The ledger then knows an owned item by its topic id."""
    of_principals: bool = False
    """Items belong to principals, which several sources may have. `lockstep.acl.principals` selects them. Each flow
    into a target publishes what it wants, so that no flow deletes what another still wants."""
    shown_late: bool = False
    """A broker may show a new item minutes after its creation. Lockstep does not create it again meanwhile."""
    versioned: bool = False
    """The ledger keeps the version that Lockstep wrote, for example of a password."""
    numbers: frozenset[str] = frozenset()
    """Parts of the key that are numbers."""
    nullable: frozenset[str] = frozenset()
    """Parts of the key that may be `ABSENT`."""
    enabled_by: tuple[Switch, ...] = ()
    """Each of these properties enables the kind. None: the settings decide otherwise."""
    interval_key: str | None = None
    """MM2's property for the poll interval."""
    in_a_request: int | None = None
    """Most changes that the writer gets in one call; None: the default of all kinds."""
    rights: tuple[RequiredRight, ...] = field(default=())

    @property
    def per_topic(self) -> bool:
        """Whether each item belongs to one topic, whose name begins its key."""
        return self.key_fields[:1] == ("topic",)

    @cached_property
    def by_permission(self) -> bool:
        """Whether the order depends on the permission at the end of the key."""
        return any(isinstance(step, tuple) for step in self.order)

    @cached_property
    def allowed(self) -> frozenset[Op]:
        return frozenset(step[0] if isinstance(step, tuple) else step for step in self.order)


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
