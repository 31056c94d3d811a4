"""Configs that differ in effect (drift `effective`), as the plan, the status and the metrics show them.

Such a config is set on neither side, so Lockstep has nothing to copy. `sinks.kinds.effective` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sinks.model.changes import Kind

MOST_SHOWN = 20
"""Most groups of differing configs that a status shows: those with the most topics."""


class DifferingConfig(NamedTuple):
    """A config, and the value in force on each side, whether set on the topic, on the broker or by default."""

    kind: Kind
    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class DriftGroup:
    """Configs that differ in the same way on several topics, and the number of these topics; 0 for the brokers' own
    configs."""

    case: DifferingConfig
    topics: int

    @property
    def configs(self) -> int:
        """Number of configs: one per topic, or one for the brokers."""
        return self.topics or 1

    def as_json(self) -> dict[str, Any]:
        """Returns one row of `effective` in a plan, and of `configs` in a status."""
        kind, name, source, target = self.case
        return {"kind": kind.value, "name": name, "topics": self.topics, "source": source, "target": target}


def grouped(counts: Mapping[DifferingConfig, int]) -> tuple[DriftGroup, ...]:
    groups = (DriftGroup(case, count if case.kind.row.per_topic else 0) for case, count in counts.items())
    return tuple(sorted(groups, key=lambda group: (-group.configs, group.case)))


def effective_as_json(groups: Iterable[DriftGroup] | None) -> dict[str, Any]:
    """Returns `effective` of a status: the number of configs (null if unknown), and the most frequent groups."""
    every = list(groups or ())
    return {
        "drift": None if groups is None else sum(group.configs for group in every),
        "configs": [group.as_json() for group in every[:MOST_SHOWN]],
    }
