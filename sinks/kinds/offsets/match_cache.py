"""Searches groups' records in the other cluster, within a budget, and remembers the answers while they hold."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass

from sinks.background import Beside, at_once
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.groups import GroupPartition
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.offsets.record_finder import AT_FIRST, Budget, find
from sinks.kinds.offsets.record_search import Question, SearchResult, Turns, without_questions_on
from streaming.errors import LockstepError

SEARCH_REST = 2.0
"""Seconds until a search is repeated whose answer may be another one by then."""

QUESTIONS_IN_A_PASS = 500
"""Most questions in one pass. Questions without an answer keep their turn."""

BESIDE_PASSES = Budget(seconds=0.75)
"""A search begins no further round after so long, so that passes get what it found."""

WAITED_FOR = 0.25
"""Seconds that a pass waits for a search with at most `AT_FIRST` questions, which is longer than it takes. Groups that
need no record, and the other kinds of the flow, do not wait for a larger search."""

AT_LEISURE, EVERY_QUESTION = Budget(seconds=120.0), 1_000_000_000
"""For a command, which asks once."""


@dataclass
class _Search:
    """A search under way since `at`. `wanted`: the question of each group and partition then."""

    wanted: Mapping[GroupPartition, Question]
    at: float
    answers: Future[dict[Question, SearchResult]]


class MatchCache:
    """A `Find` over both clusters of a flow. It has readers of its own, for one search at a time."""

    def __init__(
        self,
        source: RecordReader,
        target: RecordReader,
        budget: Budget = BESIDE_PASSES,
        questions: int = QUESTIONS_IN_A_PASS,
        beside: Beside = at_once,
    ) -> None:
        self._beside = beside
        self._under_way: _Search | None = None
        self._fault: LockstepError | None = None
        self._source, self._target, self._budget = source, target, budget
        self._turns = Turns(SEARCH_REST, questions)

    def __call__(self, wanted: Mapping[GroupPartition, Question]) -> dict[GroupPartition, SearchResult]:
        """Returns all answers known now. All questions go the same way. Raises ClusterUnreachable, RightsMissing."""
        self._take_in(0.0)
        self._turns.want(wanted, now := time.monotonic())
        if self._under_way is None:
            if chosen := self._turns.choose():
                self._begin(chosen, now)
            else:
                self._fault = None
        if self._under_way is not None and self._fault is not None:
            # The fault holds until another search has come to its end.
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
        """Takes in what a search found. Waits so long for its end. Raises what the search raised."""
        if (search := self._under_way) is not None and wait([search.answers], seconds).done:
            self._under_way, self._fault = None, None
            try:
                self._turns.learn(search.wanted, search.answers.result(), search.at)
            except LockstepError as error:
                self._fault = error
                raise

    def forget(self, groups: Collection[str], topics: Collection[str] = ()) -> None:
        """Forgets groups that are gone, and topics that were recreated."""
        self._turns.forget(groups, topics)
        if (search := self._under_way) is not None:
            search.wanted = without_questions_on(search.wanted, groups, topics)

    def close(self) -> None:
        """Closes the readers' consumers once no search uses them."""
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
    """Opens readers of both clusters. The target is read with aborted copies: they lie before the copy that counts."""
    readers = source.records(settings.isolation), target.records("read_uncommitted")
    return MatchCache(*readers, AT_LEISURE, EVERY_QUESTION) if at_leisure else MatchCache(*readers, beside=beside)
