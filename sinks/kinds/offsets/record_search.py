"""Finding a record in the other cluster: the questions, what counts as the same record, and whose turn it is.

A question reads the record that a group gets next, and looks for it where the group is to continue, between two pairs
of a history. MM2 sends in order, so that the first record like it skips nothing: the copy lies there, or behind. That
holds as long as the copy is there at all. Where compaction or retention may have taken it, a later twin (the same key,
value and timestamp) would be found in its stead, and what lies between would be skipped. So a match there counts only
with a proof that there is no twin: see `sinks.kinds.offsets.record_finder`.
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
    """Where, at the offsets [`low`, `high`) of `there`, is the record that a consumer gets at `offset` of `here`?

    `low` and `high` are from the last pair at or before the offset and from the next one; `high` None: to the end.
    `until`: records before `high` there have their like before this offset of `here`; it is the next pair's, or, on the
    way to the target, the source's end. None: nobody can tell. `back`: `here` is the target, `there` the source.
    `generation` of both logs: an answer from before a truncation is none to a question from after it.
    `foreign`: others than MM2 may write the log there.
    """

    here: TopicPartition
    offset: int
    there: TopicPartition
    low: int
    high: int | None
    until: int | None = None
    back: bool = False
    generation: int = 0
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`offset`: where to continue; None where the record was not found, or nothing tells that it is safe: see `reason`.

    It is that of the first record like the one asked for, or `high`, if that one lies behind all that is before `high`.
    `exact`: timestamps were compared as well; if not, earlier records of the same key and value may have been found.
    `end`: from the offset asked to here there is nothing that a consumer gets; it was then the end of what is read.
    `passing`: asked again later, the answer may be another one.
    """

    offset: int | None = None
    reason: str | None = None
    exact: bool = True
    end: int | None = None
    passing: bool = False

    @property
    def markers_only(self) -> bool:
        """Whether nothing but markers, aborted and compacted records was left: ask `nothing_before` how far."""
        return self.end is not None

    def nothing_before(self, end: int) -> bool:
        """Whether no consumer gets anything between the offset asked and the end that its log has now."""
        return self.end is not None and end <= self.end


def shares_timestamps(here: Record, there: Record, back: bool) -> bool:
    """Whether the copy carries the timestamp of the original: not where its topic stamps its own, nor without any.

    MM2 sends an original's timestamp along, whoever gave it; `message.timestamp.type` it does not sync.
    """
    original, copy = (there, here) if back else (here, there)
    return copy.stamp is Stamp.CREATE and original.stamp is not Stamp.NONE


def is_like(here: Record, there: Record, back: bool) -> bool:
    """Whether one is a copy of the other, as far as can be seen."""
    same_time = here.timestamp == there.timestamp or not shares_timestamps(here, there, back)
    return same_time and here.key == there.key and here.value == there.value


class Search:
    """Takes in the records of the bracket from `start` on, in order, until the first one like `wanted`."""

    def __init__(self, question: Question, wanted: Record, start: int) -> None:
        self.wanted, self._back, self.start = wanted, question.back, start
        self.match: int | None = None
        self.own_time = False
        """Whether a record was met whose timestamp says nothing: what was left out by time must be looked at too."""
        self.whole = start == question.low
        """Whether every offset from `low` to the match was seen, so that no copy was taken away."""
        self._next = start

    def take(self, record: Record) -> bool:
        """Whether it is over."""
        self.whole = self.whole and record.offset == self._next
        self._next = record.offset + 1
        if not shares_timestamps(self.wanted, record, self._back):
            self.own_time = True
        if is_like(self.wanted, record, self._back):
            self.match = record.offset
        return self.match is not None

    def is_twin(self, later: Record) -> bool:
        """Whether a record behind the wanted one could have been taken for it."""
        same = later.key == self.wanted.key and later.value == self.wanted.value
        return same and (self.own_time or later.timestamp == self.wanted.timestamp)


def still_asks(earlier: Question, now: Question) -> bool:
    """Whether what answered one question answers the other.

    To the end of the log there is no other bound than the source's end, which moves on while it is written: the record
    was found among all that there was, and what came since lies behind it.
    """
    return earlier == (now if now.high is not None else replace(now, until=earlier.until))


class Turns:
    """Which questions are asked under a budget, and what is known already.

    Who waits longest is first, whether its question stayed the same or not, and whether it was asked in this pass or
    in one before: so each one has its turn. An answer is reused as long as the group has the same question; one that
    may pass is searched again after `rest` seconds.
    """

    def __init__(self, rest: float, budget: int) -> None:
        self._rest, self._budget = rest, budget
        self._open: dict[GroupPartition, Question] = {}
        self._known: dict[GroupPartition, tuple[Question, SearchResult, float]] = {}

    def want(self, wanted: Mapping[GroupPartition, Question], now: float) -> None:
        """These are the questions that they have now. `now` in seconds, on a clock that never goes back."""
        for key, question in wanted.items():
            if self._settled(key, question, now):
                self._open.pop(key, None)
            else:
                # Who waits keeps the place.
                self._open[key] = question

    def choose(self) -> dict[GroupPartition, Question]:
        """Who is to be answered now: as many questions as the budget has, and all who ask the same."""
        chosen = set(islice(dict.fromkeys(self._open.values()), self._budget))
        return {key: question for key, question in self._open.items() if question in chosen}

    def _settled(self, key: GroupPartition, question: Question, now: float) -> bool:
        last, found, at = self._known.get(key, (None, None, now))
        if last is None or found is None or not still_asks(last, question):
            return False
        return not found.passing or (last == question and now < at + self._rest)

    def learn(
        self, wanted: Mapping[GroupPartition, Question], found: Mapping[Question, SearchResult], now: float
    ) -> None:
        """Keeps what was found, for everybody who wanted it."""
        for key, question in wanted.items():
            if question in found:
                self._known[key] = (question, found[question], now)
                self._open.pop(key, None)

    def known(self, key: GroupPartition, question: Question) -> SearchResult | None:
        """The answer to the question that the group has now; None: there is none yet."""
        last, found, _ = self._known.get(key, (None, None, 0.0))
        return found if last is not None and still_asks(last, question) else None

    def forget_groups(self, groups: Collection[str]) -> None:
        """Groups that are gone."""
        self._forget(lambda key, _: key[0] in groups)

    def forget_topic(self, topic: str) -> None:
        """A topic that is gone or was recreated, by its name on either cluster: nothing known of it holds."""
        self._forget(lambda key, about: topic in (key[1].topic, about.there.topic if about else None))

    def _forget(self, concerns: Callable[[GroupPartition, Question | None], bool]) -> None:
        for key in self._open.keys() | self._known.keys():
            last = self._known.get(key)
            if concerns(key, last[0] if last else None) or concerns(key, self._open.get(key)):
                self._open.pop(key, None)
                self._known.pop(key, None)

    def __len__(self) -> int:
        """How many answers are known."""
        return len(self._known)
