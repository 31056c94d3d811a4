"""The records of a flow's lease, as they come from the ledger."""

from __future__ import annotations

from sinks.kafka.ports.cluster import Record
from sinks.ledger.lease import RECORDS_IN_A_READ, all_new


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
    records: list[Record] = [(b"k", str(number).encode()) for number in range(2 * RECORDS_IN_A_READ + 1)]
    assert list(all_new(Pieces(list(records)))) == records
