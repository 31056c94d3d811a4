"""Proves that a fence holds: the ends of the topics on the source stand still.

A proof of N seconds finds every client that writes within these N seconds. The ledger keeps the proven ends. Every
later step of a cutover compares them with the current ends, and so finds clients that write less often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from sinks.failover.fenced_topics import topics_of
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader, Span, Why
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry, EntryKey
from sinks.model.times import time_of, utc_text
from streaming.errors import LockstepError
from streaming.message_words import first_names
from streaming.mm2.records import TopicPartition

LONGEST_PROOF_S = 120.0
"""Upper limit of a repeated proof, in seconds, unless the file asks for more."""

PROOF = "proof"
"""Prefix of the ledger keys that hold the proof, by topic."""

PROOF_POLL_INTERVAL = 1.0
"""Seconds between two readings of the end offsets."""

ELECTED_WITHIN_S = 30.0
"""Seconds for which Lockstep asks for ends again while a partition has no leader."""

FENCE_READ_WITHIN = 30.0
"""Time limit, in seconds, for reading the records behind the ends."""


class FenceBroken(LockstepError):
    """A client goes on writing in spite of the fence."""

    code = "FENCE_BROKEN"
    remedy = (
        "stop the client that the message names, a super user most likely; then type the same command again, or "
        "`lockstep unfence` to go back"
    )


@dataclass(frozen=True)
class Waiting:
    """The clock and the sleep of a command. `clock`: monotonic. Both in seconds."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Proof:
    """Seconds for which ends must stand still. Records of the first `grace` seconds are no failure: their producers had
    sent them before the fence took effect."""

    still: float = 10.0
    grace: float = 5.0

    def after_pause(self, seconds: float) -> Proof:
        """Returns a longer proof, for a fence behind which a client wrote after a pause of so many seconds."""
        return replace(self, still=max(self.still, min(2 * seconds, LONGEST_PROOF_S)), grace=0.0)


def prove_still(
    records: RecordReader,
    partitions: Collection[TopicPartition],
    proof: Proof,
    waiting: Waiting,
    writers: Callable[[Collection[TopicPartition]], str] = lambda partitions: "",
) -> dict[TopicPartition, int]:
    """Waits until no client has written for `proof.still` seconds, and returns the partitions' ends.

    `records` reads uncommitted records, too. `writers`: returns a sentence that names the last writers of partitions.
    Transaction markers do not count as records, because coordinators write them. Raises FenceBroken, LockstepError.
    """
    began = since = waiting.clock()
    ends = ends_of_logs(records, partitions, waiting)
    while True:
        waiting.sleep(PROOF_POLL_INTERVAL)
        after = ends_of_logs(records, partitions, waiting)
        written = written_since(records, {where: log.end for where, log in ends.items()}, after)
        now = waiting.clock()
        if written and now - began > proof.grace:
            raise FenceBroken(
                f"a client still writes to {first_names(topics_of(written))}. It is a super user, which no ACL stops, "
                f"or its broker does not know the fence yet. {writers(written)}Stop that producer"
            )
        ends = after
        if written:
            since = now
        elif now - since >= proof.still:
            return {where: log.end for where, log in ends.items()}


def ends_of_logs(
    records: RecordReader, partitions: Collection[TopicPartition], waiting: Waiting
) -> Mapping[TopicPartition, LogRange]:
    """Returns start and end of each log. Waits while partitions elect a leader. Raises LockstepError if one stays
    unknown, because then nothing is proven."""
    until = waiting.clock() + ELECTED_WITHIN_S
    while (seen := records.ends(partitions)).errors:
        where, fault = next(iter(seen.errors.items()))
        if not all(one.retriable for one in seen.errors.values()) or waiting.clock() >= until:
            raise LockstepError(f"the fence is not proven: {records.alias} does not tell where {where} ends ({fault})")
        waiting.sleep(PROOF_POLL_INTERVAL)
    return seen.items


def written_since(
    records: RecordReader, ends: Mapping[TopicPartition, int], now: Mapping[TopicPartition, LogRange]
) -> list[TopicPartition]:
    """Returns partitions with records between `ends` and their ends `now`. Transaction markers do not count."""
    spans = [
        Span(where, ends[where], log.end, 1, lambda record: True)
        for where, log in now.items()
        if where in ends and log.end > ends[where]
    ]
    endings = records.scan(spans, FENCE_READ_WITHIN) if spans else {}
    # Unreadable offsets count as records.
    return [span.where for span, ending in endings.items() if ending.why in (Why.TAKEN, Why.TIME, Why.FAULT)]


@dataclass(frozen=True, slots=True)
class Proven:
    """The proof of one topic: its partitions' ends, and since when they stood still."""

    ends: Mapping[TopicPartition, int]
    since: datetime


def keep_proof(ledger: Ledger, ends: Mapping[TopicPartition, int], since: datetime) -> None:
    """Writes the proof to the ledger, so that a later command finds records that came since."""
    by_topic: dict[str, dict[int, int]] = {}
    for where, end in ends.items():
        by_topic.setdefault(where.topic, {})[where.partition] = end
    entries: dict[EntryKey, str | None] = {
        (Entry.FAILOVER, (PROOF, topic)): orjson.dumps(
            {"since": utc_text(since), "ends": [found[number] for number in range(len(found))]}
        ).decode()
        for topic, found in by_topic.items()
    }
    ledger.put(entries)


def known_proof(ledger: Ledger, topics: Iterable[str]) -> dict[str, Proven]:
    """Returns the last proof of each of these topics. Raises LockstepError for an unreadable entry."""
    values = ledger.values(Entry.FAILOVER)
    try:
        return {
            topic: Proven(
                {TopicPartition(topic, number): int(end) for number, end in enumerate(kept["ends"])},
                time_of(kept["since"]),
            )
            for topic in topics
            if (PROOF, topic) in values
            for kept in [orjson.loads(values[PROOF, topic])]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise LockstepError(f"the proof of the fence cannot be read in {ledger.topic}: {error}") from error


def forget_proof(ledger: Ledger) -> None:
    """Deletes the proof from the ledger, because the fence was lifted."""
    ledger.put({(Entry.FAILOVER, key): None for key in ledger.values(Entry.FAILOVER) if key[0] == PROOF})
