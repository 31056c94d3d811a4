"""Reads MM2's topics into a flow's memory: at the start, at each full comparison, and after the stream's queue
overflowed.

At the start it reads the records since the ledger was last written. Each topic can have millions of records, because
brokers do not compact the newest segment. So a job reads a piece at a time, and other kinds do not wait. No known
offset counts before a reading is at its end: a later sync may end a history.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_records import MirrorTopics, ReadSoFar, checkpoints_of
from sinks.kinds.offsets.sync_history import NOWHERE
from sinks.ledger.ledger import Ledger


class MirrorReading:
    """Reads into one flow's memory. Methods raise ClusterUnreachable, RightsMissing. After a failure the next call
    continues where the last one stopped."""

    def __init__(self, memory: OffsetMemory, topics: MirrorTopics | None, seconds: float = float("inf")) -> None:
        """`topics`: None if the copier writes none. Then only the ledger is read. `seconds`: longest time that
        `read_on` reads in one pass."""
        self._memory, self._topics, self._seconds = memory, topics, seconds
        self._loaded = self._owes_rest = False
        self._under_way: Iterator[ReadSoFar] | None = None
        self._read = ReadSoFar("offset-syncs", 0)

    def load(self, ledger: Ledger) -> None:
        """Reads the ledger, and MM2's records since the ledger was written."""
        deque(self._loading(ledger), maxlen=0)

    def _loading(self, ledger: Ledger) -> Iterator[ReadSoFar]:
        checkpoints = self._memory.checkpoints
        self._memory.begin(ledger, self._topics)
        if self._topics is not None:
            yield from self._syncs(self._topics)
            for _ in checkpoints.catching_up(self._topics):
                yield ReadSoFar("checkpoints", checkpoints.read_to + 1)
        self._memory.begun()

    def catch_up(self) -> None:
        """Reads the new records of the topics, and notices a recreated offset-syncs topic."""
        deque(self._catching_up(), maxlen=0)

    def _catching_up(self) -> Iterator[ReadSoFar]:
        if self._topics is None:
            return
        yield from self._syncs(self._topics)
        checkpoints = self._memory.checkpoints
        if checkpoints.doubtful:
            yield from self._checkpoints(self._topics, checkpoints.read_to + 1)
            self._memory.settle_checkpoints()

    def _syncs(self, topics: MirrorTopics) -> Iterator[ReadSoFar]:
        memory, name, cluster = self._memory, topics.syncs, topics.syncs_on
        memory.note_syncs_topic(cluster, name)
        known = memory.histories.position
        for chunk in cluster.read_log_in_chunks(name, known + 1):
            if chunk.whole and known != NOWHERE:
                memory.count_syncs_again(name)
                known = NOWHERE
            memory.take_records(chunk.records)
            if chunk.records:
                yield ReadSoFar("offset-syncs", memory.histories.position + 1)

    def _checkpoints(self, topics: MirrorTopics, position: int) -> Iterator[ReadSoFar]:
        for chunk in topics.checkpoints_on.read_log_in_chunks(topics.checkpoints, position):
            self._memory.take_checkpoints(checkpoints_of(chunk.records))
            if chunk.records:
                yield ReadSoFar("checkpoints", chunk.records[-1].position + 1)

    def read_on(self, ledger: Ledger, to_the_end: bool) -> bool:
        """Reads for the time of one pass. Returns whether the reading is complete. The next call continues, also after
        an error.

        `to_the_end`: also read records that the stream may have missed.
        """
        self._owes_rest |= to_the_end
        under_way, self._under_way = self._under_way or self._all(ledger), None
        until = time.monotonic() + self._seconds
        for self._read in under_way:
            if time.monotonic() >= until:
                self._under_way = under_way
                return False
        self._owes_rest = False
        return True

    def _all(self, ledger: Ledger) -> Iterator[ReadSoFar]:
        if not self._loaded:
            yield from self._loading(ledger)
            self._loaded = True
        if self._topics is not None and self._memory.queue.begin_again():
            # Read what the queue dropped. From the first piece on it keeps what the stream brings.
            try:
                yield from self._catching_up()
                yield from self._checkpoints(self._topics, 0)
            except BaseException:
                # Also if the caller stops reading.
                self._memory.queue.overflow()
                raise
        if self._owes_rest:
            yield from self._catching_up()

    @property
    def breaks_off(self) -> bool:
        """Whether a reading of records that the stream missed is unfinished. The stream's later records come after a
        gap."""
        return self._owes_rest

    @property
    def reason(self) -> str | None:
        """Returns why no offset may be written now; None: no reading is under way."""
        if self._under_way is None:
            return None
        return (
            f"MM2's {self._read.what} are being read, {self._read.offsets:,} so far: no offset is written until they "
            "are read"
        )

    def close(self) -> None:
        """Closes the consumer of an unfinished reading."""
        self._under_way = None


def read_memory(ledger: Ledger, topics: MirrorTopics | None) -> OffsetMemory:
    """Returns the memory from the ledger and MM2's topics, for a command. Raises ClusterUnreachable, RightsMissing."""
    memory = OffsetMemory()
    MirrorReading(memory, topics).load(ledger)
    memory.note_drained(ledger)
    return memory
