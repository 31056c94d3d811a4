"""The records of a flow's lease, written to its ledger and read from there in the order that all processes see."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sinks.engine.lease_records import Act, LeaseRecord, ReadRecord, decoded, encoded, lease_key
from sinks.engine.seal import Seal
from sinks.engine.times import milliseconds, utc_now
from sinks.kafka.ports.cluster import Cluster, Record, Tail

TRACKED = frozenset({Act.CLAIM, Act.RENEWAL})
"""What its writer waits for: read back, it is evidence."""

RECORDS_IN_A_READ = 1000
"""As many records come from a tail at once, where there are more."""


@dataclass
class LeaseChannel:
    """Of one process. `cluster` is its own, and closed with it. `forget_after`: seconds, for records that never come
    back."""

    flow: str
    topic: str
    cluster: Cluster
    tail: Tail
    seal: Seal
    clock: Callable[[], float]
    forget_after: float
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _sent: dict[int, float] = field(default_factory=dict)

    def next_number(self) -> int:
        """Of the record that is written next."""
        return next(self._numbers)

    def write(self, record: LeaseRecord) -> None:
        """Returns when all in-sync replicas have it. Raises ClusterUnreachable, RightsMissing: it may come even so."""
        began = self.clock()
        if record.act in TRACKED:
            self._sent = {number: at for number, at in self._sent.items() if at > began - self.forget_after}
            self._sent[record.number] = began
        self.cluster.append_log(self.topic, [encoded(self.flow, record, self.seal, milliseconds(utc_now()))])

    def read(self, me: str) -> list[tuple[ReadRecord, float | None]]:
        """What came since the last time; with each of our own records, when it was begun to be written."""
        key = lease_key(self.flow)
        heard = [decoded(self.flow, value, self.seal) for found, value in self._came() if found == key]
        return [(one, self._begun(one.record, me)) for one in heard]

    def _came(self) -> Iterator[Record]:
        """All of it: with a part alone, one that led long ago would count as heard now."""
        count = RECORDS_IN_A_READ
        while count >= RECORDS_IN_A_READ:
            records = self.tail.next(0.0)
            count = len(records)
            yield from records

    def _begun(self, record: LeaseRecord | None, me: str) -> float | None:
        return self._sent.pop(record.number, None) if record is not None and record.holder == me else None

    def awaits(self, number: int) -> bool:
        """Whether that record did not come back yet."""
        return number in self._sent

    def close(self) -> None:
        """Lets go of the client."""
        self.tail.close()
        self.cluster.close()
