"""Finds records again in the other cluster: many questions at once, in few passes over both logs. "Here" is the cluster
that a group comes from, "there" the other one.

1. Here: read the record that a consumer gets at the group's offset. If none is left, the group is at the end, and the
   search is over. If the record lies at or after `until`, the group has read everything before `high` there.
   Retention or DeleteRecords may have removed unread records here that the other log still has before the copy of
   this record. Then there is no answer.
2. There: choose where to begin. A narrow bracket is searched from its start, a wide one from the first record with
   the wanted timestamp. A topic that sets its own timestamps (`LogAppendTime`) is searched from the bracket's start.
3. There: find the first record like it, among a bounded number.
4. There: prove that it is the copy. Compaction or retention may have removed the copy, so that a later twin was found.
   They did not if each offset from `low` to the match was seen. Else the match counts only if no twin follows here
   before `until`.
5. Here: prove that nothing is skipped. Offsets between the group's own and the record may be transaction markers, or
   compaction removed their records. They are markers if the record before the answer there is the copy of a record
   before the group's offset here.

A topic that is not compacted now may have been once. So its `cleanup.policy` proves nothing in steps 4 and 5. It only
tells whether a search for a twin that ended early is proof enough.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass

from sinks.background import Beside, at_once
from sinks.faults import Observed
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.groups import GroupPartition, LogRange
from sinks.kafka.ports.record_reader import Ending, PartitionTime, Record, RecordReader, Span, Why
from sinks.kinds.offsets.record_search import (
    Question,
    Search,
    SearchResult,
    Turns,
    is_like,
    kept_in,
    shares_timestamps,
    without_questions_on,
)
from streaming.errors import LockstepError, prefixed
from streaming.mm2.records import TopicPartition

NARROW = 500
"""A bracket of at most this many offsets is read from its start, without a search by timestamp."""

BEFORE_A_HOLE = 100
"""Offsets before a hole, on either side, in which its last record is searched."""

AT_FIRST = 100
"""Questions in the first round; each later round has twice as many. Many at once cost less each, but a short budget
must answer some."""

LONGEST_ROUND_S = 5.0
"""Seconds that a round may take. Even with few questions it is half a dozen readings in a row. Over a slow link each
takes a fraction of a second, and a round that is broken off answers nothing."""

OUT_OF_TIME = SearchResult(reason="there was no time left for the search", passing=True)
TWIN = SearchResult(reason="the log lost records, and a later record has the same key, value and timestamp")
UNPROVEN = SearchResult(reason="the log lost records, and a later record may have the same key, value and timestamp")


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search. `records`: most records that a step reads for one question. `seconds`: after this time only
    the first round begins."""

    records: int = 2000
    seconds: float = 5.0


def find(
    questions: Collection[Question], here: RecordReader, there: RecordReader, budget: Budget
) -> dict[Question, SearchResult]:
    """Returns the answers by question. A question whose round did not begin in time has none.

    The first `AT_FIRST` questions always get an answer, so that a caller does not ask the same ones forever. All
    questions must be about the same two clusters. Raises ClusterUnreachable, RightsMissing.
    """
    last_begin = time.monotonic() + budget.seconds
    left, together = list(dict.fromkeys(questions)), AT_FIRST
    found: dict[Question, SearchResult] = {}
    while left and (together == AT_FIRST or time.monotonic() < last_begin):
        finding = _Finding(here, there, budget.records, time.monotonic() + LONGEST_ROUND_S)
        wanted = finding.read_here(left[:together])
        finding.prove(finding.search(finding.begin(wanted)))
        finding.check_holes()
        in_time = {question: answer for question, answer in finding.found.items() if answer != OUT_OF_TIME}
        found |= in_time if found else finding.found
        left, together = left[together:], 2 * together
    return found


class _Finding:
    """The steps of one round. `found` fills as questions are answered."""

    def __init__(self, here: RecordReader, there: RecordReader, most: int, deadline: float) -> None:
        self._here, self._there, self._most, self._deadline = here, there, most, deadline
        self._logs: Mapping[Question, LogRange] = {}
        self._holes = set[Question]()
        self.found: dict[Question, SearchResult] = {}

    def _scan(self, reader: RecordReader, spans: Mapping[Question, Span]) -> dict[Question, Ending]:
        """Reads spans. Returns endings of complete ones; questions whose span was cut short are answered."""
        if not spans:
            return {}
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            self.found |= dict.fromkeys(spans, OUT_OF_TIME)
            return {}
        endings = reader.scan(list(spans.values()), seconds)
        complete: dict[Question, Ending] = {}
        for question, span in spans.items():
            ending = endings[span]
            if ending.why is Why.FAULT:
                self.found[question] = _unread(reader, ending.fault)
            elif ending.why is Why.TIME:
                self.found[question] = OUT_OF_TIME
            else:
                complete[question] = ending
        return complete

    def _first(
        self, reader: RecordReader, spans: Mapping[Question, tuple[TopicPartition, int, int | None]]
    ) -> tuple[dict[Question, Record], dict[Question, Ending]]:
        """Returns the first record of each stretch (partition, start, stop), and endings of stretches without any."""
        seen = {question: list[Record]() for question in spans}
        searched = {question: Span(*stretch, 1, kept_in(seen[question], 1)) for question, stretch in spans.items()}
        endings = self._scan(reader, searched)
        firsts = {question: records[0] for question, records in seen.items() if records}
        return firsts, {question: ending for question, ending in endings.items() if question not in firsts}

    def _ends(self, reader: RecordReader, wanted: Mapping[Question, TopicPartition]) -> dict[Question, LogRange]:
        """Returns the log of the partition of each question. Questions whose log could not be read are answered."""
        seen: Observed[TopicPartition, LogRange] = reader.ends(set(wanted.values())) if wanted else Observed({})
        for question, where in wanted.items():
            if where not in seen.items:
                self.found[question] = _unread(reader, seen.errors.get(where))
        return {question: seen.items[where] for question, where in wanted.items() if where in seen.items}

    def read_here(self, questions: Collection[Question]) -> dict[Question, Record]:
        """Returns the wanted record of each question."""
        stretches = {question: (question.here, question.offset, None) for question in questions}
        seen, none = self._first(self._here, stretches)
        self.found |= {question: _at_the_end(question, ending.position) for question, ending in none.items()}
        behind_hole = {question for question, record in seen.items() if record.offset > question.offset}
        # The starts are read after the records, so that a deletion in between shows. Records are gone from a log that
        # starts behind the offset, and the group has not read them.
        logs = self._ends(self._here, {question: question.here for question in {*none, *behind_hole}})
        self.found |= {
            question: SearchResult(
                reason=f"{question.here} lost the records after the group's offset, which {question.there} may have"
            )
            for question, log in logs.items()
            if question.offset < log.start
        }
        self._holes = behind_hole | {question for question, ending in none.items() if question.offset < ending.position}
        for question, record in seen.items():
            if question.high is not None and question.until is not None and record.offset >= question.until:
                self.found.setdefault(question, SearchResult(question.high))
        return {question: record for question, record in seen.items() if question not in self.found}

    def begin(self, wanted: Mapping[Question, Record]) -> dict[Question, Search]:
        self._logs = self._ends(self._there, {question: question.there for question in wanted})
        wide = {question: record for question, record in wanted.items() if self._is_wide(question)}
        starts = {question: question.low for question in wanted} | self._by_time(wide)
        return {
            question: Search(question, wanted[question], start)
            for question, start in starts.items()
            if question not in self.found
        }

    def _is_wide(self, question: Question) -> bool:
        log = self._logs.get(question)
        return log is not None and _least(question.high, log.end) - max(question.low, log.start) > NARROW

    def _by_time(self, wanted: Mapping[Question, Record]) -> dict[Question, int]:
        """Returns the first offset of each bracket with the wanted timestamp. Questions without any are answered."""
        stretches = {question: (question.there, question.low, question.high) for question in wanted}
        firsts, none = self._first(self._there, stretches)
        self.found |= {question: _absent(question) for question in none}
        timed = {
            question: PartitionTime(question.there, wanted[question].timestamp)
            for question, record in firsts.items()
            if shares_timestamps(wanted[question], record, question.back)
        }
        offsets = self._there.offsets_for_times(set(timed.values()))
        starts: dict[Question, int] = {}
        for question, context in timed.items():
            at = offsets.items.get(context)
            if context in offsets.errors:
                self.found[question] = _unread(self._there, offsets.errors[context])
            elif at is None or at >= _least(question.high, at + 1):
                self.found[question] = _absent(question)
            else:
                starts[question] = max(question.low, at)
        return starts

    def search(self, searches: Mapping[Question, Search]) -> dict[Question, Search]:
        """Returns searches with a match. A search that began by timestamp starts again if it meets records with other
        timestamps."""
        ended = self._run(searches)
        anew = {
            question: Search(question, search.wanted, question.low)
            for question, (search, _) in ended.items()
            if search.own_time and search.start > question.low
        }
        ended |= self._run(anew)
        for question, (search, ending) in ended.items():
            if question not in self.found and search.match is None:
                too_far = f"no such record among the first {self._most} where {question.there} may have it"
                self.found[question] = SearchResult(reason=too_far) if ending.why is Why.MOST else _absent(question)
        return {question: search for question, (search, _) in ended.items() if question not in self.found}

    def _run(self, searches: Mapping[Question, Search]) -> dict[Question, tuple[Search, Ending]]:
        spans = {
            question: Span(question.there, search.start, question.high, self._most, search.take)
            for question, search in searches.items()
        }
        return {question: (searches[question], ending) for question, ending in self._scan(self._there, spans).items()}

    def prove(self, searches: Mapping[Question, Search]) -> None:
        """Answers the questions whose match is proven safe."""
        doubted = {question: search for question, search in searches.items() if not search.whole}
        compacted = self._there.compacted({question.there.topic for question in doubted}) if doubted else set()
        spans = {
            question: Span(question.here, search.wanted.offset + 1, question.until, self._most, search.is_twin)
            for question, search in doubted.items()
        }
        endings = self._scan(self._here, spans)
        for question, search in searches.items():
            if question in self.found:
                continue
            answer = SearchResult(search.match, exact=not search.own_time)
            if question in doubted:
                is_cut = self._logs[question].start > question.low
                strict = is_cut or question.there.topic in compacted
                answer = _by_ending(answer, question, endings[question], strict)
            self.found[question] = answer

    def check_holes(self) -> None:
        """Withdraws answers that could skip a record, because compaction removed it here and left it there."""
        doubted = {question: self.found[question] for question in self._holes if question in self.found}
        places = {question: answer.offset for question, answer in doubted.items() if answer.offset is not None}
        at_end = {question: question.there for question, answer in doubted.items() if answer.markers_only}
        places |= {question: log.end for question, log in self._ends(self._there, at_end).items()}
        before = {question: list[Record]() for question in places}
        copies = {question: list[Record]() for question in places}
        here = self._scan(
            self._here, {question: _before(question.here, question.offset, before[question]) for question in places}
        )
        there = self._scan(
            self._there, {question: _before(question.there, places[question], copies[question]) for question in here}
        )
        for question, ending in there.items():
            last = copies[question][-1:] if ending.position >= places[question] else []
            if not any(is_like(record, copy, question.back) for copy in last for record in before[question]):
                gap = (
                    f"compaction may have removed records after the group's offset from {question.here}, which "
                    f"{question.there} has"
                )
                # The end there moves on while MM2 copies records.
                self.found[question] = SearchResult(reason=gap, passing=doubted[question].markers_only)


def _before(where: TopicPartition, offset: int, seen: list[Record]) -> Span:
    """Returns the offsets right before this one. Their records go into `seen`."""
    return Span(where, max(0, offset - BEFORE_A_HOLE), offset, BEFORE_A_HOLE + 1, kept_in(seen))


def _least(high: int | None, other: int) -> int:
    return other if high is None else min(high, other)


def _at_the_end(question: Question, end: int) -> SearchResult:
    if question.offset > end:
        return SearchResult(reason=f"{question.here} can be read only up to {end}", passing=True)
    return SearchResult(reason=f"{question.here} has no record after the group's offset", end=end, passing=True)


def _absent(question: Question) -> SearchResult:
    return SearchResult(reason=f"{question.there} has no such record where it should be", passing=question.high is None)


def _unread(reader: RecordReader, fault: object) -> SearchResult:
    return SearchResult(
        reason=prefixed(f"cluster {reader.alias}", fault or "the partition was not listed"), passing=True
    )


def _by_ending(answer: SearchResult, question: Question, ending: Ending, strict: bool) -> SearchResult:
    """Returns the answer after the search for a twin. `strict`: the copy may be gone, so only a complete search
    counts."""
    if ending.why is Why.TAKEN:
        return TWIN
    is_whole = ending.why is not Why.MOST and question.until is not None and not question.foreign
    return answer if is_whole or not strict else UNPROVEN


# Searches groups' records in the other cluster, within a budget, and remembers the answers while they hold.


SEARCH_REST = 2.0
"""Seconds until a search is repeated whose answer may change."""

QUESTIONS_IN_A_PASS = 500
"""Most questions in one pass. A question without an answer keeps its turn."""

BESIDE_PASSES = Budget(seconds=0.75)
"""Budget of a search beside the passes: it begins no further round after this time, so that passes soon get its
answers."""

WAITED_FOR = 0.25
"""Seconds that a pass waits for a search of at most `AT_FIRST` questions, which needs less. For a larger search a pass
does not wait, so that other groups and kinds go on."""

AT_LEISURE, EVERY_QUESTION = Budget(seconds=120.0), 1_000_000_000
"""Budget and most questions of a command, which asks once."""


@dataclass
class _Search:
    """A running search that began `at` (monotonic seconds). `wanted`: the question of each group and partition then."""

    wanted: Mapping[GroupPartition, Question]
    at: float
    answers: Future[dict[Question, SearchResult]]


class MatchCache:
    """Answers at which offset a group's next record lies in the other cluster. Keeps known answers, and runs one search
    at a time with readers of its own."""

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
        """Returns all answers known now. All questions must have the same direction. Raises ClusterUnreachable,
        RightsMissing."""
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
        """Takes in the answers of a search. Waits up to `seconds` for its end. Raises the error of the search."""
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
    """Opens readers of both clusters. The target is read with aborted copies, because they lie before the copy that
    counts."""
    readers = source.records(settings.isolation), target.records("read_uncommitted")
    return MatchCache(*readers, AT_LEISURE, EVERY_QUESTION) if at_leisure else MatchCache(*readers, beside=beside)
