"""The values of a pass: kinds, changes, observations, outcomes.

A `Change` is one difference between what the target has and what it should have. The side that is missing tells the
operation (create, update, delete), so a change cannot contradict its own operation.
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
from sinks.model.registry import ABSENT
from sinks.model.registry import Kind as Kind
from sinks.model.registry import Op as Op


@dataclass(frozen=True, slots=True)
class ScramSpec:
    """A SCRAM credential without its secret."""

    iterations: int
    version: str = ""
    """Version of the provider's password that the credential is made from; "" on one that Lockstep did not write."""
    known_as: str = field(default="", compare=False)
    """Name of the user on the source, by which the provider knows the password."""

    def as_json(self) -> dict[str, Any]:
        return {"iterations": self.iterations, "version": self.version}


Value = str | int | TopicSpec | ScramSpec
"""One side of a change. An ACL's value is its permission, which its key holds as well; a group's is its offset."""


def value_as_json(value: Value | None) -> Any:
    """A side of a change as JSON: strings and numbers as they are, topics and credentials as objects."""
    return value.as_json() if isinstance(value, TopicSpec | ScramSpec) else value


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `before`: what the target has. `after`: what it should have. None is absence.

    Raises ValueError for equal sides, for a key of the wrong shape, and for an operation that its kind does not allow.
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
            raise ValueError(f"{self.kind}: the key {self.key} must have the parts {row.key_fields}")
        if self.op not in row.allowed:
            raise ValueError(f"{self.kind} {self.key}: {self.op} is not allowed")
        if row.by_permission and self.key[-1] not in (ALLOW, DENY):
            raise ValueError(f"{self.kind} {self.key}: the permission must be ALLOW or DENY")
        if isinstance(self.before, TopicSpec) and isinstance(self.after, TopicSpec):
            self._check_growth(self.before, self.after)
        if isinstance(self.before, int) and isinstance(self.after, int) and self.after < self.before:
            raise ValueError(f"{self.kind} {self.key}: offsets move only forward ({self.before} to {self.after})")

    def _check_growth(self, before: TopicSpec, after: TopicSpec) -> None:
        if after.partitions < before.partitions:
            raise ValueError(f"{self.key[0]}: partitions never shrink ({before.partitions} to {after.partitions})")

    @property
    def op(self) -> Op:
        """Returns the operation, which follows from the side that is absent."""
        if self.before is None:
            return Op.CREATE
        return Op.DELETE if self.after is None else Op.UPDATE

    @property
    def order(self) -> tuple[int, Key]:
        """Sort key in a plan: rank of the operation in the registry, then the key."""
        row = self.kind.row
        return row.order[(self.op, self.key[-1]) if row.by_permission else self.op], self.key

    @property
    def label(self) -> str:
        return key_as_text(self.kind, self.key)

    def as_json(self) -> dict[str, Any]:
        return {
            **subject_as_json(self.kind, self.op.value, self.key),
            "before": value_as_json(self.before),
            "after": value_as_json(self.after),
        }


def key_as_json(kind: Kind, key: Key) -> dict[str, str | int | None]:
    """Returns `{"topic": "a.orders", "name": "retention.ms"}` and the like. A partition is a number, an absent part is
    null."""
    fields = zip(kind.row.key_fields, key, strict=True)
    return {name: None if part == ABSENT else int(part) if name in kind.row.numbers else part for name, part in fields}


def subject_as_json(kind: Kind, op: str, key: Key) -> dict[str, Any]:
    """Returns kind, operation and key of a plan's row as JSON."""
    return {"kind": kind.value, "op": op, "key": key_as_json(kind, key)}


def key_as_text(kind: Kind, key: Key) -> str:
    """Returns the present parts of a key for people, joined; a default entity reads `<default>`."""
    if not kind.row.nullable:
        return " ".join(key)
    return " ".join(part or "<default>" for part in key if part != ABSENT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one change: applied if `error` is None. `already`: another client had made the change before."""

    change: Change
    error: ItemFault | None = None
    already: bool = False

    @property
    def result(self) -> str:
        """`applied` or `failed`. A change that another client had made counts as applied."""
        return "failed" if self.error else "applied"

    def as_json(self) -> dict[str, Any]:
        """Returns one row of the `outcomes` of `lockstep apply`."""
        what = subject_as_json(self.change.kind, self.change.op.value, self.change.key)
        return what | {"result": self.result, "error": str(self.error) if self.error else None}


def count_by(changes: Iterable[Change]) -> dict[Kind, dict[Op, int]]:
    """Counts changes by kind and operation. A kind that occurs has all three operations."""
    counts: dict[Kind, dict[Op, int]] = {}
    for change in changes:
        counts.setdefault(change.kind, dict.fromkeys(Op, 0))[change.op] += 1
    return counts


def compact_json(value: Any) -> bytes:
    """Returns the JSON of a value in as few bytes of memory as it needs.

    The bytes that `orjson.dumps` returns keep its buffer, 4 KiB for a few words (seen with 3.13). The ledger keeps
    millions of short keys in memory, so they are copied.
    """
    return bytes(memoryview(orjson.dumps(value)))
