"""Configs that differ in effect (drift `effective`), as a plan, a status and the metrics tell of them.

Nothing is pending for them: they are set on neither side, so there is nothing to copy. `sinks.kinds.topics.effective`
finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sinks.model.changes import Kind

MOST_SHOWN = 20
"""Groups that a status shows: the ones with the most topics."""


class DifferingConfig(NamedTuple):
    """A config and the two values that are in force, wherever they come from."""

    kind: Kind
    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class DriftGroup:
    """A case, and for how many topics it holds; 0 for the brokers' own configs."""

    case: DifferingConfig
    topics: int

    @property
    def configs(self) -> int:
        """How many configs it is: one a topic, or one of the brokers."""
        return self.topics or 1

    def as_json(self) -> dict[str, Any]:
        """One row of the plan's `effective`, and of the `configs` of a status."""
        kind, name, source, target = self.case
        return {"kind": kind.value, "name": name, "topics": self.topics, "source": source, "target": target}


def grouped(counts: Mapping[DifferingConfig, int]) -> tuple[DriftGroup, ...]:
    """By how many topics it holds for, the most first."""
    groups = (DriftGroup(case, count if case.kind.row.per_topic else 0) for case, count in counts.items())
    return tuple(sorted(groups, key=lambda group: (-group.configs, group.case)))


def effective_as_json(groups: Iterable[DriftGroup] | None) -> dict[str, Any]:
    """The `effective` of a status: how many configs it is, null where that is not known, and the most frequent
    groups."""
    every = list(groups or ())
    return {
        "drift": None if groups is None else sum(group.configs for group in every),
        "configs": [group.as_json() for group in every[:MOST_SHOWN]],
    }
