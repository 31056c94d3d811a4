"""What differs in effect (drift `effective`), kept across passes that look at some topics each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from sinks.engine.effective_drift import DifferingConfig, DriftGroup, grouped
from sinks.kinds.topics.effective import Drift


class TopicDrifts:
    """By upstream topic, the cases that were there at the last look at it.

    Topics differ in the same configs as a rule, so they share what is kept: 10,000 of them are a dictionary.
    """

    def __init__(self) -> None:
        self._cases: dict[str, tuple[DifferingConfig, ...]] = {}
        self._shared: dict[tuple[DifferingConfig, ...], tuple[DifferingConfig, ...]] = {}
        self._groups: tuple[DriftGroup, ...] | None = ()

    def replace(self, covered: Collection[str], found: Mapping[str, Sequence[Drift]]) -> None:
        """What a look at these topics found instead of what was known of them."""
        for topic in covered:
            drifts = found.get(topic)
            if drifts:
                cases = tuple(drift.case for drift in drifts)
                self._cases[topic] = self._shared.setdefault(cases, cases)
                self._groups = None
            elif self._cases.pop(topic, None) is not None:
                self._groups = None

    def keep(self, topics: Collection[str]) -> None:
        """Forgets the topics that are not among these."""
        gone = [topic for topic in self._cases if topic not in topics]
        for topic in gone:
            del self._cases[topic]
        if gone:
            self._groups = None

    def groups(self) -> tuple[DriftGroup, ...]:
        """What is known of all topics, by case; the most frequent first."""
        if self._groups is None:
            topics = Counter(self._cases.values())
            self._shared = {cases: cases for cases in topics}
            counts: Counter[DifferingConfig] = Counter()
            for cases, count in topics.items():
                counts.update(dict.fromkeys(cases, count))
            self._groups = grouped(counts)
        return self._groups
