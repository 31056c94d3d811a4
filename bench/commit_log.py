"""What groups commit on a cluster, as its coordinators log it: no request for any group, and the time of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final, NamedTuple

import confluent_kafka as rd

from streaming.commits.commit_record import COMMITS_TOPIC, Commit, read_record

WITHIN: Final = 10.0
AT_ONCE: Final = 1000
"""Records of one reading."""


class LoggedCommit(NamedTuple):
    """A commit; `at`: seconds since 1970, by the clock of its coordinator."""

    commit: Commit
    at: float


class CommitLog:
    """Reads on from where it was opened."""

    def __init__(self, consumer: rd.Consumer) -> None:
        self._consumer = consumer

    def read(self, seconds: float) -> list[LoggedCommit]:
        """What came, after a wait of so long for the first of it."""
        first = self._consumer.poll(seconds)
        records = [] if first is None else [first, *self._consumer.consume(AT_ONCE, timeout=0)]
        found = []
        for record in records:
            _, commit = read_record(record.key(), record.value())
            if record.error() is None and commit is not None and commit.offset is not None:
                found.append(LoggedCommit(commit, record.timestamp()[1] / 1000))
        return found


@contextmanager
def commit_log(bootstrap: str) -> Iterator[CommitLog]:
    """From the present end of `__consumer_offsets` on, which must be there."""
    config = {"bootstrap.servers": bootstrap, "group.id": "bench-reads-without-group", "enable.auto.commit": False}
    with closing(rd.Consumer(config)) as consumer:
        numbers = consumer.list_topics(COMMITS_TOPIC, timeout=WITHIN).topics[COMMITS_TOPIC].partitions
        places = [rd.TopicPartition(COMMITS_TOPIC, number) for number in numbers]
        for place in places:
            _, place.offset = consumer.get_watermark_offsets(place, timeout=WITHIN)
        consumer.assign(places)
        yield CommitLog(consumer)
