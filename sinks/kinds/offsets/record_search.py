"""Finds a record in the other cluster: the questions, the test for the same record, and the turns of questions.

A question takes the record that a group gets next, and searches it on the other side between two pairs of a history.
MM2 sends in order, so the first record like it skips nothing: the copy lies there or later. That holds only while the
copy exists. If compaction or retention removed it, the search finds a later twin (the same key, value and timestamp),
and the group would skip records. So such a match counts only with a proof that there is no twin: see
`sinks.kinds.offsets.record_finder`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from sinks.kafka.ports.groups import GroupPartition
from sinks.kafka.ports.record_reader import Record, Stamp
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True, slots=True)
class Question:
    """At which offset of `there`, from `low` up to `high`, is the record that a consumer gets at `offset` of `here`?"""

    here: TopicPartition
    offset: int
    there: TopicPartition
    low: int
    """Offset there of the last pair at or before `offset`."""
    high: int | None
    """Offset there of the next pair, not included; None: up to the end."""
    until: int | None = None
    """Records before `high` there have their originals before this offset here: the next pair's or, on the way to the
    target, the source's end. None: unknown."""
    back: bool = False
    """`here` is on the target, `there` on the source."""
    generation: int = 0
    """Number of truncations of both logs so far. An answer from before a truncation does not answer a question from
    after it."""
    foreign: bool = False
    """Other clients than MM2 may write the log there."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to a question."""

    offset: int | None = None
    """Offset at which to continue: that of the first record like the wanted one, or `high` if that record lies after
    everything before `high`. None: not found, or not proven safe (see `reason`)."""
    reason: str | None = None
    exact: bool = True
    """The timestamps agree too. Else an earlier record of the same key and value may have been found."""
    end: int | None = None
    """The log's end here, if a consumer gets nothing between the group's offset and this end."""
    passing: bool = False
    """A later search may find another answer."""

    @property
    def markers_only(self) -> bool:
        """Whether only markers, aborted and compacted records were left. `nothing_before` tells up to which end."""
        return self.end is not None

    def nothing_before(self, end: int) -> bool:
        """Whether a consumer gets nothing between the offset asked and the end that its log has now."""
        return self.end is not None and end <= self.end


def shares_timestamps(here: Record, there: Record, back: bool) -> bool:
    """Whether the copy has the timestamp of its original. It has another one if its topic sets its own, or if there is
    none.

    MM2 copies each original's timestamp, but does not sync `message.timestamp.type`.
    """
    original, copy = (there, here) if back else (here, there)
    return copy.stamp is Stamp.CREATE and original.stamp is not Stamp.NONE


def is_like(here: Record, there: Record, back: bool) -> bool:
    """Whether one record may be a copy of the other."""
    same_time = here.timestamp == there.timestamp or not shares_timestamps(here, there, back)
    return same_time and here.key == there.key and here.value == there.value


def kept_in(records: list[Record], most: float = float("inf")) -> Callable[[Record], bool]:
    """Returns a function for a span. It appends records to the list, and returns True once the list has `most`."""

    def take(record: Record) -> bool:
        records.append(record)
        return len(records) >= most

    return take


class Search:
    """Reads the records of the bracket from `start` on, in order, until the first one like `wanted`."""

    def __init__(self, question: Question, wanted: Record, start: int) -> None:
        self.wanted, self._back, self.start = wanted, question.back, start
        self.match: int | None = None
        self.own_time = False
        """Whether a record had a timestamp of its own. Then the records that were skipped by timestamp must be read
        too."""
        self.whole = start == question.low
        """Whether every offset from `low` to the match was seen, so that no copy is gone."""
        self._next = start

    def take(self, record: Record) -> bool:
        """Takes in the next record. Returns whether the search is over."""
        self.whole = self.whole and record.offset == self._next
        self._next = record.offset + 1
        if not shares_timestamps(self.wanted, record, self._back):
            self.own_time = True
        if is_like(self.wanted, record, self._back):
            self.match = record.offset
        return self.match is not None

    def is_twin(self, later: Record) -> bool:
        """Whether a record after the wanted one could be mistaken for it."""
        same = later.key == self.wanted.key and later.value == self.wanted.value
        return same and (self.own_time or later.timestamp == self.wanted.timestamp)


def without_questions_on(
    wanted: Mapping[GroupPartition, Question], groups: Collection[str], topics: Collection[str]
) -> dict[GroupPartition, Question]:
    """Returns the questions without those groups, and without those topics by their names on either cluster."""
    return {
        key: question
        for key, question in wanted.items()
        if key[0] not in groups and key[1].topic not in topics and question.there.topic not in topics
    }


class Turns:
    """Chooses the questions that are asked under a budget, and keeps the known answers.

    The group that waits longest comes first, even if its question changed meanwhile. So each has its turn. An answer is
    reused while the group has the same question. A passing answer is searched again after `rest` seconds.
    """

    def __init__(self, rest: float, budget: int) -> None:
        self._rest, self._budget = rest, budget
        self._open: dict[GroupPartition, Question] = {}
        self._known: dict[GroupPartition, tuple[Question, SearchResult, float]] = {}

    def want(self, wanted: Mapping[GroupPartition, Question], now: float) -> None:
        """Sets the questions that groups have now. `now`: in monotonic seconds."""
        for key, question in wanted.items():
            if self._settled(key, question, now):
                self._open.pop(key, None)
            else:
                # A group that waits keeps its place.
                self._open[key] = question

    def choose(self) -> dict[GroupPartition, Question]:
        """Returns the questions to answer now, within the budget, with all groups that ask them."""
        chosen = set(islice(dict.fromkeys(self._open.values()), self._budget))
        return {key: question for key, question in self._open.items() if question in chosen}

    def _settled(self, key: GroupPartition, question: Question, now: float) -> bool:
        if (found := self.known(key, question)) is None:
            return False
        last, _, at = self._known[key]
        return not found.passing or (last == question and now < at + self._rest)

    def learn(
        self, wanted: Mapping[GroupPartition, Question], found: Mapping[Question, SearchResult], now: float
    ) -> None:
        """Keeps the answers, for all groups that asked."""
        for key, question in wanted.items():
            if question in found:
                self._known[key] = (question, found[question], now)
                self._open.pop(key, None)

    def known(self, key: GroupPartition, question: Question) -> SearchResult | None:
        """Returns the answer to the group's current question; None: not yet known."""
        last, found, _ = self._known.get(key, (None, None, 0.0))
        if last is not None and question.high is None:
            # A search to the end of the log is bounded by the source's end, which moves on. The record was found among
            # all that there was, and what came since lies behind it.
            question = replace(question, until=last.until)
        return found if last == question else None

    def forget(self, groups: Collection[str], topics: Collection[str] = ()) -> None:
        """Forgets groups that are gone, and topics that are gone or were recreated."""
        self._open = without_questions_on(self._open, groups, topics)
        known = without_questions_on({key: asked for key, (asked, _, _) in self._known.items()}, groups, topics)
        self._known = {key: self._known[key] for key in known}
