"""The offsets of groups' records in the other cluster: looked up within a budget, remembered as long as they hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass

from sinks.background import Beside, at_once
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.groups import GroupPartition
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.offsets.record_finder import AT_FIRST, Budget, find
from sinks.kinds.offsets.record_search import Question, SearchResult, Turns
from streaming.errors import LockstepError

SEARCH_REST = 2.0
"""Seconds until a search is repeated whose answer may be another one by then."""

QUESTIONS_IN_A_PASS = 500
"""Questions in one pass at the most; those for which there was no time keep their turn."""

BESIDE_PASSES = Budget(seconds=0.75)
"""After so long a search begins no further round, so that the passes get what it found."""

WAITED_FOR = 0.25
"""Seconds that a pass waits for a search about few, longer than it takes. Where it is about more than `AT_FIRST`, those
that need no record, and the other kinds of the flow, do not wait for it."""

AT_LEISURE, EVERY_QUESTION = Budget(seconds=120.0), 1_000_000_000
"""For a command, which comes once."""


@dataclass
class _Search:
    """One that is under way. `wanted`: who asked for what when it began at `at`."""

    wanted: Mapping[GroupPartition, Question]
    at: float
    answers: Future[dict[Question, SearchResult]]


class MatchCache:
    """A `Find` over both clusters of a flow; its readers are its own, and one search at a time has them."""

    def __init__(
        self,
        source: RecordReader,
        target: RecordReader,
        budget: Budget = BESIDE_PASSES,
        questions: int = QUESTIONS_IN_A_PASS,
        clock: Callable[[], float] = time.monotonic,
        beside: Beside = at_once,
    ) -> None:
        self._beside = beside
        self._under_way: _Search | None = None
        self._fault: LockstepError | None = None
        self._source, self._target, self._budget, self._clock = source, target, budget, clock
        self._turns = Turns(SEARCH_REST, questions)

    def __call__(self, wanted: Mapping[GroupPartition, Question]) -> dict[GroupPartition, SearchResult]:
        """All that is known now. The questions all go the same way. Raises ClusterUnreachable, RightsMissing."""
        self._take_in(0.0)
        self._turns.want(wanted, now := self._clock())
        if self._under_way is None:
            if chosen := self._turns.choose():
                self._begin(chosen, now)
            else:
                self._fault = None
        if self._under_way is not None and self._fault is not None:
            # Until another search has come to its end.
            raise self._fault
        known = {key: self._turns.known(key, question) for key, question in wanted.items()}
        return {key: found for key, found in known.items() if found is not None}

    def _begin(self, chosen: Mapping[GroupPartition, Question], now: float) -> None:
        questions = list(dict.fromkeys(chosen.values()))
        here, there = (self._target, self._source) if questions[0].back else (self._source, self._target)
        answers = self._beside(lambda: find(questions, here, there, self._budget), "record-search")
        self._under_way = _Search(chosen, now, answers)
        self._take_in(WAITED_FOR if len(questions) <= AT_FIRST else 0.0)

    def _take_in(self, seconds: float) -> None:
        """What a search found, once it is over; waits so long for its end. Raises what it raised."""
        if (search := self._under_way) is not None and wait([search.answers], seconds).done:
            self._under_way, self._fault = None, None
            try:
                self._turns.learn(search.wanted, search.answers.result(), search.at)
            except LockstepError as error:
                self._fault = error
                raise

    def forget(self, groups: Collection[str], topics: Collection[str] = ()) -> None:
        """Groups that are gone, and topics that were recreated."""
        self._turns.forget_groups(groups)
        for topic in topics:
            self._turns.forget_topic(topic)
        if (search := self._under_way) is not None:
            search.wanted = {
                key: question
                for key, question in search.wanted.items()
                if key[0] not in groups and not {key[1].topic, question.there.topic} & set(topics)
            }

    def close(self) -> None:
        """Lets go of the readers' consumers, once no search has them any more."""
        if self._under_way is None:
            self._close(None)
        else:
            self._under_way.answers.add_done_callback(self._close)

    def _close(self, _: object) -> None:
        self._source.close()
        self._target.close()


def open_matches(
    settings: FlowSettings,
    source: ClusterPorts,
    target: ClusterPorts,
    *,
    at_leisure: bool,
    beside: Beside = at_once,
) -> MatchCache:
    """Over both clusters of a flow. On the target an aborted copy lies before the one that counts: it is read, too."""
    readers = source.records(settings.isolation), target.records("read_uncommitted")
    return MatchCache(*readers, AT_LEISURE, EVERY_QUESTION) if at_leisure else MatchCache(*readers, beside=beside)
