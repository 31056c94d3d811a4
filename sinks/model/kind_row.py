"""What is known of a kind of resource: one value for each, so that nothing else lists kinds (`registry`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from streaming.message_words import Word

ABSENT = "\0"
"""A part of a key that is not there, null in JSON; Kafka allows no such name. `""` is a default entity."""


class Op(Word):
    """What a change does to the target."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class On(str, Enum):
    """What a right is about; the docs show these words."""

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
    """Operations that the job needs on a resource while a kind is enabled, and why. `condition`: when, in the docs'
    words; "": whenever the kind is enabled. `also`: an attribute of `FlowSettings` that must be true as well."""

    side: FlowSide
    on: On
    operations: tuple[str, ...]
    why: str
    condition: str = ""
    also: str | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """A property that enables a kind. A key that no other table declares is off by default. `doc`: its line in the
    docs."""

    name: str
    doc: str = ""


@dataclass(frozen=True)
class KindRow:
    """One kind of resource.

    - `package`: the folder below `sinks.kinds` with its controller and writer; two kinds may share one.
    - `key_fields`: the names of a key's parts, in order, as the plan's JSON shows them; those in `numbers` are numbers,
      those in `nullable` may be `ABSENT`.
    - `order`: the operations that are allowed, each with its rank among all steps of a plan; for a kind whose key ends
      in a permission, by operation and permission.
    - `owned`: whether Lockstep owns what it creates. Only what it owns is ever deleted.
    - `limited`: whether the deletion limit counts it. `together`: all operations leave in one request.
    - `content`: it moves all the time, as records do: in no digest, and a mere update is no audit event.
    - `written_with`: the operation of Kafka's ACLs that each of ours needs.
    - `enabled_by`: one of these properties is enough; none: the settings decide otherwise.
    - `in_a_request`: so many changes reach its writer together; None: as many as of most kinds.
    - `interval_key`: MM2's property for how often it is polled.
    - `data`: a deletion destroys records; owned items are then known by the topic's id.
    - `of_principals`: it is about principals, which several sources may have. `lockstep.acl.principals` covers it.
      Flows into one target claim what they want of it, so that none deletes what another still wants.
    - `shown_late`: a broker may show minutes later what it created: until then it is not created once more.
    - `versioned`: the ledger keeps which version of the item was written, as it does of passwords.
    """

    package: str
    key_fields: tuple[str, ...]
    order: Mapping[Any, int]
    written_with: Mapping[Op, str] = field(default_factory=dict)
    owned: bool = True
    limited: bool = True
    together: bool = False
    content: bool = False
    data: bool = False
    of_principals: bool = False
    shown_late: bool = False
    versioned: bool = False
    numbers: frozenset[str] = frozenset()
    nullable: frozenset[str] = frozenset()
    enabled_by: tuple[Switch, ...] = ()
    interval_key: str | None = None
    in_a_request: int | None = None
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
