"""Where groups' records lie in the other cluster: asked within a budget, and remembered as long as it holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from sinks.cluster.records import RecordReader
from sinks.matching import Budget, find
from sinks.offset_memory import Place
from streaming.matching import Found, Question, Turns

REST = 2.0
"""Seconds until a question is asked again whose answer may be another one by then."""

AT_ONCE = 500
"""Questions in one walk at the most; those for which there was no time keep their turn."""

IN_A_WALK = Budget(seconds=0.75)
"""What a walk spends on reading records: the other kinds of its flow wait for it."""

AT_LEISURE = Budget(seconds=120.0)
"""For a command."""


class Matches:
    """A `Find` over both clusters of a flow; its readers are its own."""

    def __init__(
        self,
        source: RecordReader,
        target: RecordReader,
        budget: Budget = IN_A_WALK,
        at_once: int = AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._target, self._budget, self._clock = source, target, budget, clock
        self._turns = Turns(REST, at_once)

    def __call__(self, wanted: Mapping[Place, Question]) -> dict[Place, Found]:
        """All that is known now. The questions all go the same way. Raises ClusterUnreachable, RightsMissing."""
        now = self._clock()
        chosen = self._turns.choose(wanted, now)
        if chosen:
            here, there = (self._target, self._source) if chosen[0].back else (self._source, self._target)
            self._turns.learn(wanted, find(chosen, here, there, self._budget), now)
        known = {place: self._turns.known(place, question) for place, question in wanted.items()}
        return {place: found for place, found in known.items() if found is not None}

    def forget(self, groups: Collection[str], topics: Collection[str] = ()) -> None:
        """Groups that are gone, and topics that were made again."""
        self._turns.forget_groups(groups)
        for topic in topics:
            self._turns.forget_topic(topic)

    def close(self) -> None:
        """Lets go of the readers' consumers."""
        self._source.close()
        self._target.close()
