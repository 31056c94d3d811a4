"""Reading many stretches of one partition in a single pass forward: each record is read once for all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Ending, Record, Span, Why
from streaming.mm2.records import TopicPartition

NEAR = 500
"""Most records that are read over rather than jumped over: a jump costs a round trip to the broker."""


class Sweep:
    """Reads the spans of one partition in one sweep. `endings` fills as they end."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._waiting = deque(sorted(spans, key=lambda span: span.start))
        self._open: dict[Span, int] = {}
        self.position = self._waiting[0].start
        self.endings: dict[Span, Ending] = {}

    @property
    def done(self) -> bool:
        """Whether no span wants another record."""
        return not self._waiting and not self._open

    def take(self, record: Record) -> None:
        """Offer a record to every span that wants it. A record that was read before is skipped."""
        if record.offset < self.position:
            return
        while self._waiting and self._waiting[0].start <= record.offset:
            self._open[self._waiting.popleft()] = 0
        for span, count in list(self._open.items()):
            why = _offer(span, count, record)
            if why is None:
                self._open[span] = count + 1
            else:
                del self._open[span]
                self.endings[span] = Ending(why, record.offset + (why is not Why.STOP))
        self.position = record.offset + 1

    def jump(self) -> int | None:
        """Returns the offset to go on at, if the next wanted record lies so far ahead that a jump is cheaper than
        reading."""
        if self._open or not self._waiting or self._waiting[0].start <= self.position + NEAR:
            return None
        self.position = self._waiting[0].start
        return self.position

    def end(self, at: int) -> None:
        """Note that the log ends at this offset. An end from before a jump is ignored."""
        if at >= self.position:
            self.finish(Ending(Why.END, at))

    def finish(self, ending: Ending) -> None:
        """End all spans that are left, with this ending."""
        for span in (*self._open, *self._waiting):
            self.endings[span] = ending
        self._open.clear()
        self._waiting.clear()


def _offer(span: Span, count: int, record: Record) -> Why | None:
    if span.stop is not None and record.offset >= span.stop:
        return Why.STOP
    if span.take(record):
        return Why.TAKEN
    return Why.MOST if count + 1 >= span.most else None


def sweeps_of(spans: Iterable[Span]) -> dict[TopicPartition, Sweep]:
    """Returns one sweep for each partition."""
    by_partition: dict[TopicPartition, list[Span]] = {}
    for span in spans:
        by_partition.setdefault(span.where, []).append(span)
    return {where: Sweep(of_one) for where, of_one in by_partition.items()}


def within_logs(
    spans: Iterable[Span], logs: Observed[TopicPartition, LogRange]
) -> tuple[list[Span], dict[Span, Ending]]:
    """Returns the spans that may have something to read, and the endings of all others."""
    left: list[Span] = []
    endings: dict[Span, Ending] = {}
    for span in spans:
        log = logs.items.get(span.where)
        if log is None:
            fault = logs.errors.get(span.where, ItemFault("UNKNOWN_TOPIC_OR_PART", "it was not listed", retriable=True))
            endings[span] = Ending(Why.FAULT, span.start, fault)
        elif span.stop is not None and (span.stop <= span.start or span.stop <= log.start):
            endings[span] = Ending(Why.STOP, span.stop)
        elif span.start >= log.end:
            endings[span] = Ending(Why.END, log.end)
        else:
            left.append(span)
    return left, endings
