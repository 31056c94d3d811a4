"""A plan: the changes to write, in order, with a digest; and the changes that Lockstep refuses.

The digest depends only on the flow and its changes, in any order. So a plan reviewed yesterday can be compared with the
plan made now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import orjson

from sinks.model.changes import Change, Key, Kind, Op, count_by, key_as_text, subject_as_json
from sinks.model.effective_drift import DriftGroup
from streaming.flow import Flow

SEE_PLAN = "`lockstep plan` shows what differs, and the job's log what was tried"

CONFIRM = "make sure that this is meant, then run `lockstep apply --force`"
"""The remedy for changes that wait for a person."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that Lockstep does not try, and why."""

    kind: Kind
    op: Op
    key: Key
    reason: str
    passing: bool = False
    """Lockstep tries it in a few seconds. It makes no audit event."""
    remedy: str = field(default=SEE_PLAN, compare=False)
    """What the operator can do."""
    denied: bool = field(default=False, compare=False)
    """The cluster refused it, because the job lacks a right."""

    @property
    def subject(self) -> tuple[Kind, Op, Key]:
        """Returns what is refused, without the reason."""
        return self.kind, self.op, self.key

    @property
    def label(self) -> str:
        return key_as_text(self.kind, self.key)

    def as_json(self) -> dict[str, Any]:
        """Returns one row of the plan's `refused`."""
        return subject_as_json(self.kind, self.op.value, self.key) | {"reason": self.reason}


@dataclass(frozen=True, slots=True)
class Unobserved:
    """An item that could not be observed, and is therefore not planned."""

    kind: Kind
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Returns one row of the plan's `errors`."""
        return {"kind": self.kind.value, "reason": self.reason}


def digest_of(flow: Flow, changes: Iterable[Mapping[str, Any]]) -> str:
    """Returns `sha256:…` over a flow and its changes in their JSON form. Leaves out groups' offsets, which move all the
    time.

    Raises KeyError, ValueError, TypeError for an object that is not a change.
    """
    counted = (change for change in changes if not Kind(change["kind"]).row.content)
    rows = sorted(orjson.dumps(change, option=orjson.OPT_SORT_KEYS) for change in counted)
    return "sha256:" + hashlib.sha256(b"\n".join([flow.name.encode(), *rows])).hexdigest()


@dataclass(frozen=True)
class Plan:
    """Changes of one flow. Build it with `make_plan`, which sorts."""

    flow: Flow
    changes: tuple[Change, ...] = ()
    refused: tuple[Refusal, ...] = ()
    errors: tuple[Unobserved, ...] = ()
    existing: Mapping[Kind, int] = field(default_factory=dict)
    """Number of items that Lockstep may delete, by kind. The deletion limit is a percentage of it."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Number of items that Lockstep never writes (read-only configs, ACLs of the cluster itself), by reason."""
    notes: tuple[str, ...] = ()
    """Further facts for the operator."""
    effective: tuple[DriftGroup, ...] = ()
    """Configs that differ in effect and that no change of this plan mends. The digest leaves them out, and a plan with
    nothing else is empty."""

    @property
    def digest(self) -> str:
        return digest_of(self.flow, [change.as_json() for change in self.changes])

    def refusing_kinds(self, refused: Mapping[Kind, str], *, passing: bool = False) -> Plan:
        """Returns the plan with all changes of these kinds refused. `refused`: the reason of each kind. `passing`: see
        Refusal."""
        plan = self
        for kind, reason in refused.items():
            changes = [change for change in self.changes if change.kind is kind]
            plan = plan.refusing(changes, reason, passing=passing)
        return plan

    def noting(self, notes: Iterable[str]) -> Plan:
        return replace(self, notes=(*self.notes, *notes))

    def refusing(
        self, changes: Collection[Change], reason: str, *, passing: bool = False, remedy: str | None = None
    ) -> Plan:
        """Returns the plan with these changes refused for one reason. `remedy`: by default the one that fits
        `passing`."""
        if not changes:
            return self
        gone = frozenset(changes)
        left = tuple(change for change in self.changes if change not in gone)
        remedy = remedy or (SEE_PLAN if passing else CONFIRM)
        rows = [Refusal(change.kind, change.op, change.key, reason, passing, remedy) for change in changes]
        return replace(self, changes=left, refused=(*self.refused, *rows))

    def summary(self) -> dict[str, dict[str, int]]:
        """Counts by kind and operation, for every kind, also without changes."""
        counts = count_by(self.changes)
        return {kind.value: {op.value: counts.get(kind, {}).get(op, 0) for op in Op} for kind in Kind}

    def as_json(self) -> dict[str, Any]:
        """Returns the plan's document for one flow."""
        return {
            "source": self.flow.source,
            "target": self.flow.target,
            "digest": self.digest,
            "summary": self.summary(),
            "changes": [change.as_json() for change in self.changes],
            "refused": [refusal.as_json() for refusal in self.refused],
            "errors": [error.as_json() for error in self.errors],
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
            "effective": [group.as_json() for group in self.effective],
        }


def make_plan(
    flow: Flow,
    changes: Iterable[Change],
    *,
    refused: Iterable[Refusal] = (),
    errors: Iterable[Unobserved] = (),
    existing: Mapping[Kind, int] | None = None,
    skipped: Mapping[str, int] | None = None,
    notes: Iterable[str] = (),
    effective: Iterable[DriftGroup] = (),
) -> Plan:
    """Returns a plan with its changes in the order in which they are applied. Raises ValueError for two changes of one
    key."""
    ordered = tuple(sorted(changes, key=attrgetter("order")))
    seen: set[tuple[Kind, Key]] = set()
    for change in ordered:
        if (change.kind, change.key) in seen:
            raise ValueError(f"two changes of {change.kind} {change.key} in one plan")
        seen.add((change.kind, change.key))
    return Plan(
        flow=flow,
        changes=ordered,
        refused=tuple(sorted(refused, key=lambda row: (row.kind.value, row.key))),
        errors=tuple(dict.fromkeys(errors)),
        existing=existing or {},
        skipped=skipped or {},
        notes=tuple(notes),
        effective=tuple(effective),
    )


def join_plans(flow: Flow, plans: Iterable[Plan]) -> Plan:
    """Returns one plan of the plans of several controllers. Each has kinds of its own."""
    parts = list(plans)
    return make_plan(
        flow,
        [change for part in parts for change in part.changes],
        refused=[refusal for part in parts for refusal in part.refused],
        errors=[error for part in parts for error in part.errors],
        existing={kind: count for part in parts for kind, count in part.existing.items()},
        skipped={reason: count for part in parts for reason, count in part.skipped.items()},
        notes=[note for part in parts for note in part.notes],
        effective=[group for part in parts for group in part.effective],
    )
