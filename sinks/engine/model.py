"""The values that everything passes through: kinds, changes, observations, outcomes.

A `Change` is one difference between what the target has and what it should have. Which operation that is follows
from the side that is missing, so a change can never contradict its own operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sinks.faults import ItemFault
from sinks.kafka.ports.cluster import TopicSpec

Key = tuple[str, ...]


class Kind(str, Enum):
    """What can be kept in step, one kind of resource each."""

    TOPIC = "topic"
    TOPIC_CONFIG = "topic-config"
    ACL = "acl"
    SCRAM_USER = "scram-user"
    BROKER_CONFIG = "broker-config"
    GROUP_OFFSET = "group-offset"

    def __str__(self) -> str:
        return self.value


class Op(str, Enum):
    """What a change does to the target."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"

    def __str__(self) -> str:
        return self.value


KEY_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.TOPIC: ("topic",),
    Kind.TOPIC_CONFIG: ("topic", "name"),
    Kind.ACL: ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission"),
    Kind.SCRAM_USER: ("user", "mechanism"),
    Kind.BROKER_CONFIG: ("broker", "name"),
    Kind.GROUP_OFFSET: ("group", "topic", "partition"),
}
"""The names of a key's parts, in order, as the plan's JSON shows them. The broker "" is all of them: the cluster-wide
default."""

ALLOWED: Mapping[Kind, frozenset[Op]] = {
    Kind.TOPIC: frozenset({Op.CREATE, Op.UPDATE, Op.DELETE}),
    Kind.TOPIC_CONFIG: frozenset({Op.CREATE, Op.UPDATE, Op.DELETE}),
    Kind.ACL: frozenset({Op.CREATE, Op.DELETE}),
    Kind.SCRAM_USER: frozenset({Op.CREATE, Op.UPDATE, Op.DELETE}),
    Kind.BROKER_CONFIG: frozenset({Op.CREATE, Op.UPDATE, Op.DELETE}),
    Kind.GROUP_OFFSET: frozenset({Op.CREATE, Op.UPDATE}),
}
"""What may happen to a kind at all. An update of a topic is the growth of its partitions; they never shrink. An ACL is
its key: there is nothing to update. A group's offsets only move forward."""

DENY, ALLOW = "DENY", "ALLOW"

ORDER: Mapping[tuple[Kind, Op, str], int] = {
    (Kind.TOPIC, Op.CREATE, ""): 0,
    (Kind.TOPIC, Op.UPDATE, ""): 1,
    (Kind.TOPIC_CONFIG, Op.CREATE, ""): 2,
    (Kind.TOPIC_CONFIG, Op.UPDATE, ""): 3,
    (Kind.TOPIC_CONFIG, Op.DELETE, ""): 4,
    (Kind.BROKER_CONFIG, Op.CREATE, ""): 5,
    (Kind.BROKER_CONFIG, Op.UPDATE, ""): 6,
    (Kind.BROKER_CONFIG, Op.DELETE, ""): 7,
    (Kind.SCRAM_USER, Op.CREATE, ""): 8,
    (Kind.SCRAM_USER, Op.UPDATE, ""): 9,
    (Kind.ACL, Op.CREATE, DENY): 10,
    (Kind.ACL, Op.CREATE, ALLOW): 11,
    (Kind.ACL, Op.DELETE, ALLOW): 12,
    (Kind.ACL, Op.DELETE, DENY): 13,
    (Kind.GROUP_OFFSET, Op.CREATE, ""): 14,
    (Kind.GROUP_OFFSET, Op.UPDATE, ""): 15,
    (Kind.SCRAM_USER, Op.DELETE, ""): 16,
    (Kind.TOPIC, Op.DELETE, ""): 17,
}
"""In which order changes are applied, by kind, operation and an ACL's permission.

Topics exist before they are configured, and have their own configs before the brokers' defaults move. A DENY is in
force before the ALLOW that it restricts, and until that is gone. Deletions of what others need come last.
"""


@dataclass(frozen=True, slots=True)
class ScramSpec:
    """A SCRAM credential without its secret: iterations, and which version of the provider's password it is made from.

    `version` is "" where it is not known: on a credential that was there before Lockstep. `known_as`: the user on the
    source, by whom the provider knows the password.
    """

    iterations: int
    version: str = ""
    known_as: str = field(default="", compare=False)

    def as_json(self) -> dict[str, Any]:
        """For the plan and the audit."""
        return {"iterations": self.iterations, "version": self.version}


Value = str | int | TopicSpec | ScramSpec
"""One side of a change. An ACL's is its permission, which is in the key as well; a group's is its offset."""


def value_as_json(value: Value | None) -> Any:
    """A side of a change as JSON: strings and numbers as they are, topics and credentials as objects."""
    return value.as_json() if isinstance(value, TopicSpec | ScramSpec) else value


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `before` is what the target has, `after` what it should have; `None` is absence.

    Raises ValueError for equal sides, for a key of the wrong shape and for an operation that its kind does not allow.
    """

    kind: Kind
    key: Key
    before: Value | None
    after: Value | None

    def __post_init__(self) -> None:
        if self.before == self.after:
            raise ValueError(f"{self.kind} {self.key}: both sides are {self.before!r}, that is no change")
        if len(self.key) != len(KEY_FIELDS[self.kind]):
            raise ValueError(f"{self.kind}: the key {self.key} has not the parts {KEY_FIELDS[self.kind]}")
        if self.op not in ALLOWED[self.kind]:
            raise ValueError(f"{self.kind} {self.key}: {self.op} is not allowed")
        if self.kind is Kind.ACL and self.key[-1] not in (ALLOW, DENY):
            raise ValueError(f"acl {self.key}: the permission is ALLOW or DENY")
        if isinstance(self.before, TopicSpec) and isinstance(self.after, TopicSpec):
            self._check_growth(self.before, self.after)
        if isinstance(self.before, int) and isinstance(self.after, int) and self.after < self.before:
            raise ValueError(f"group-offset {self.key}: offsets move only forward ({self.before} to {self.after})")

    def _check_growth(self, before: TopicSpec, after: TopicSpec) -> None:
        if after.partitions < before.partitions:
            raise ValueError(f"{self.key[0]}: partitions never shrink ({before.partitions} to {after.partitions})")

    @property
    def op(self) -> Op:
        """Derived from which side is absent."""
        if self.before is None:
            return Op.CREATE
        return Op.DELETE if self.after is None else Op.UPDATE

    @property
    def order(self) -> tuple[int, Key]:
        """The place in a plan: by `ORDER`, then by key."""
        return ORDER[(self.kind, self.op, self.key[-1] if self.kind is Kind.ACL else "")], self.key

    def as_json(self) -> dict[str, Any]:
        """The change as the plan shows it."""
        return {
            "kind": self.kind.value,
            "op": self.op.value,
            "key": key_as_json(self.kind, self.key),
            "before": value_as_json(self.before),
            "after": value_as_json(self.after),
        }


def key_as_json(kind: Kind, key: Key) -> dict[str, str | int]:
    """`{"topic": "a.orders", "name": "retention.ms"}` and the like; a partition is a number."""
    fields = zip(KEY_FIELDS[kind], key, strict=True)
    return {name: int(part) if name == "partition" else part for name, part in fields}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one change: applied when `error` is None. `already`: it was so before, by somebody else's hand."""

    change: Change
    error: ItemFault | None = None
    already: bool = False

    @property
    def result(self) -> str:
        """`applied` or `failed`. What was so already counts as applied: the target is as it should be."""
        return "failed" if self.error else "applied"

    def as_json(self) -> dict[str, Any]:
        """One row of `apply`'s outcomes."""
        return {
            "kind": self.change.kind.value,
            "op": self.change.op.value,
            "key": key_as_json(self.change.kind, self.change.key),
            "result": self.result,
            "error": str(self.error) if self.error else None,
        }


def count_by(changes: Iterable[Change]) -> dict[Kind, dict[Op, int]]:
    """How many changes of each kind and operation; every kind seen has all three operations."""
    counts: dict[Kind, dict[Op, int]] = {}
    for change in changes:
        counts.setdefault(change.kind, dict.fromkeys(Op, 0))[change.op] += 1
    return counts
