"""The offsets of groups' records in the other cluster: looked up within a budget, remembered as long as they hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.offsets.group_partition import GroupPartition
from sinks.kinds.offsets.record_finder import Budget, find
from sinks.kinds.offsets.record_search import Question, SearchResult, Turns

SEARCH_REST = 2.0
"""Seconds until a search is repeated whose answer may be another one by then."""

QUESTIONS_IN_A_PASS = 500
"""Questions in one pass at the most; those for which there was no time keep their turn."""

IN_A_PASS = Budget(seconds=0.75)
"""What a pass spends on reading records: the other kinds of its flow wait for it."""

AT_LEISURE, EVERY_QUESTION = Budget(seconds=120.0), 1_000_000_000
"""For a command, which comes once."""


class MatchCache:
    """A `Find` over both clusters of a flow; its readers are its own."""

    def __init__(
        self,
        source: RecordReader,
        target: RecordReader,
        budget: Budget = IN_A_PASS,
        at_once: int = QUESTIONS_IN_A_PASS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._target, self._budget, self._clock = source, target, budget, clock
        self._turns = Turns(SEARCH_REST, at_once)

    def __call__(self, wanted: Mapping[GroupPartition, Question]) -> dict[GroupPartition, SearchResult]:
        """All that is known now. The questions all go the same way. Raises ClusterUnreachable, RightsMissing."""
        now = self._clock()
        chosen = self._turns.choose(wanted, now)
        if chosen:
            here, there = (self._target, self._source) if chosen[0].back else (self._source, self._target)
            self._turns.learn(wanted, find(chosen, here, there, self._budget), now)
        known = {key: self._turns.known(key, question) for key, question in wanted.items()}
        return {key: found for key, found in known.items() if found is not None}

    def forget(self, groups: Collection[str], topics: Collection[str] = ()) -> None:
        """Groups that are gone, and topics that were recreated."""
        self._turns.forget_groups(groups)
        for topic in topics:
            self._turns.forget_topic(topic)

    def close(self) -> None:
        """Lets go of the readers' consumers."""
        self._source.close()
        self._target.close()


def open_matches(settings: FlowSettings, source: ClusterPorts, target: ClusterPorts, *, at_leisure: bool) -> MatchCache:
    """Over both clusters of a flow. On the target an aborted copy lies before the one that counts: it is read, too."""
    readers = source.records(settings.isolation), target.records("read_uncommitted")
    return MatchCache(*readers, AT_LEISURE, EVERY_QUESTION) if at_leisure else MatchCache(*readers)
