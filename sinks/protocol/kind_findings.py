"""What the last comparisons found of a controller's kinds, key by key, for status. Nothing is planned from it. Pure."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sinks.model.effective_drift import DifferingConfig, DriftGroup, grouped
from sinks.model.plan import Refusal, Unobserved
from sinks.protocol.comparison import Comparison

log = logging.getLogger(__name__)

Cases = tuple[DifferingConfig, ...]


@dataclass
class KindFindings:
    """`refused`: by key, what the target would not take. `errors`: what could not be observed of a kind that is one
    list; `unsupported`: why a cluster has nothing of it."""

    refused: dict[str, Sequence[Refusal]] = field(default_factory=dict)
    errors: tuple[Unobserved, ...] = ()
    unsupported: str | None = None
    _notes: Collection[str] = ()
    _cases: dict[str, Cases] = field(default_factory=dict)
    _shared: dict[Cases, Cases] = field(default_factory=dict)
    _groups: tuple[DriftGroup, ...] | None = ()

    def list_compared(self, comparison: Comparison, refused: Sequence[Refusal]) -> None:
        """Replace all findings: the whole list was compared. `refused`: what the plan itself refused."""
        plan, self.unsupported = comparison.plan, comparison.unsupported
        for note in plan.notes:
            if note not in self._notes:
                log.info("%s: %s", plan.flow.name, note)
        self._notes, self.errors, self.refused = plan.notes, plan.errors, {"": refused} if refused else {}

    def keys_compared(self, covered: Collection[str], comparison: Comparison) -> None:
        """A comparison of these keys, in place of what was known of them."""
        if self.refused or comparison.refused:
            self.refused = {key: why for key, why in self.refused.items() if key not in covered}
            self.refused |= comparison.refused
        if self._cases or comparison.drifts:
            for key in covered:
                self._replace(key, tuple(comparison.drifts.get(key, ())))

    def _replace(self, key: str, cases: Cases) -> None:
        # Topics differ in the same configs as a rule, so they share what is kept: 10,000 of them are a dictionary.
        if cases:
            self._cases[key] = self._shared.setdefault(cases, cases)
            self._groups = None
        elif self._cases.pop(key, None) is not None:
            self._groups = None

    def drifts(self, keys: Collection[str]) -> tuple[DriftGroup, ...]:
        """Configs that differ in effect, by case, the most frequent first. Keys that are not there are forgotten."""
        for gone in [key for key in self._cases if key not in keys]:
            del self._cases[gone]
            self._groups = None
        if self._groups is None:
            topics = Counter(self._cases.values())
            self._shared = {cases: cases for cases in topics}
            counts: Counter[DifferingConfig] = Counter()
            for cases, count in topics.items():
                counts.update(dict.fromkeys(cases, count))
            self._groups = grouped(counts)
        return self._groups
