"""The records of a flow's lease, as they come from the ledger."""

from __future__ import annotations

from sinks.kafka.ports.cluster import Record
from sinks.ledger.lease import RECORDS_IN_A_READ, LeaseChannel
from sinks.ledger.lease_records import Act, LeaseRecord, encoded
from sinks.ledger.seal import Seal
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import NOON

SEAL = Seal("a->b")


class Pieces:
    """A tail that hands over what is there in pieces, as librdkafka's does."""

    def __init__(self, records: list[Record]) -> None:
        self.left = records

    def next(self, timeout: float) -> list[Record]:
        """The next piece."""
        taken, self.left = self.left[:RECORDS_IN_A_READ], self.left[RECORDS_IN_A_READ:]
        return taken

    def close(self) -> None:
        """There is nothing to close."""


def test_process_that_fell_far_behind_reads_all_that_is_there() -> None:
    renewals = [
        LeaseRecord(Act.RENEWAL, "x", n, None, 1, 25.0, "x", "here", NOON) for n in range(2 * RECORDS_IN_A_READ + 1)
    ]
    tail = Pieces([encoded("a->b", one, SEAL, 7) for one in renewals])
    channel = LeaseChannel("a->b", "ledger", MemoryCluster("b"), tail, SEAL, lambda: 0.0, 50.0)
    assert [heard.record for heard, _ in channel.read("y")] == renewals
