"""The values that everything passes through: kinds, changes, observations, outcomes.

A `Change` is one difference between what the target has and what it should have. Which operation that is follows
from the side that is missing, so a change can never contradict its own operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from sinks.faults import ItemFault
from sinks.kafka.ports.acl_binding import ALLOW as ALLOW
from sinks.kafka.ports.acl_binding import DENY as DENY
from sinks.kafka.ports.cluster import Key as Key
from sinks.kafka.ports.cluster import TopicSpec
from sinks.model.kind_row import ABSENT
from sinks.model.kind_row import Op as Op
from sinks.model.registry import Kind as Kind


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
        row = self.kind.row
        if len(self.key) != len(row.key_fields):
            raise ValueError(f"{self.kind}: the key {self.key} has not the parts {row.key_fields}")
        if self.op not in row.allowed:
            raise ValueError(f"{self.kind} {self.key}: {self.op} is not allowed")
        if row.by_permission and self.key[-1] not in (ALLOW, DENY):
            raise ValueError(f"{self.kind} {self.key}: the permission is ALLOW or DENY")
        if isinstance(self.before, TopicSpec) and isinstance(self.after, TopicSpec):
            self._check_growth(self.before, self.after)
        if isinstance(self.before, int) and isinstance(self.after, int) and self.after < self.before:
            raise ValueError(f"{self.kind} {self.key}: offsets move only forward ({self.before} to {self.after})")

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
        """The place in a plan: by the rank of its operation in the registry, then by key."""
        row = self.kind.row
        return row.order[(self.op, self.key[-1]) if row.by_permission else self.op], self.key

    @property
    def label(self) -> str:
        """The key as people read it."""
        return key_as_text(self.kind, self.key)

    def as_json(self) -> dict[str, Any]:
        """The change as the plan shows it."""
        return {
            "kind": self.kind.value,
            "op": self.op.value,
            "key": key_as_json(self.kind, self.key),
            "before": value_as_json(self.before),
            "after": value_as_json(self.after),
        }


def key_as_json(kind: Kind, key: Key) -> dict[str, str | int | None]:
    """`{"topic": "a.orders", "name": "retention.ms"}` and the like; a partition is a number, what is absent is null."""
    fields = zip(kind.row.key_fields, key, strict=True)
    return {name: None if part == ABSENT else int(part) if name in kind.row.numbers else part for name, part in fields}


def key_as_text(kind: Kind, key: Key) -> str:
    """The key as people read it: its parts, those that are absent left out, the default of all as `<default>`."""
    if not kind.row.nullable:
        return " ".join(key)
    return " ".join(part or "<default>" for part in key if part != ABSENT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one change: applied when `error` is None. `already`: another client had done it before."""

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


def compact_json(value: Any, option: int | None = None) -> bytes:
    """As `orjson.dumps`, in as many bytes of memory as it has.

    What orjson returns keeps the room that it was written in: 4 KiB for a few words (seen with 3.13). A key of 50 bytes
    that a ledger remembers would take eighty times that.
    """
    return bytes(memoryview(orjson.dumps(value, option=option)))
