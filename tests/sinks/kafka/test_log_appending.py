"""Records that librdkafka does not take stop the write with a sentence, and leave nothing of it to be sent later."""

from __future__ import annotations

import pytest

from sinks.faults import ClusterUnreachable
from sinks.kafka.records.rd_clients import RdClients
from sinks.kafka.records.rd_logs import Log
from streaming.errors import LockstepError

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def log() -> Log:
    def no_token() -> None:
        raise AssertionError("a login without tokens asks for none")

    return Log("b", RdClients("b", NOWHERE, no_token), 0.5)  # type: ignore[arg-type]  # never asked


def test_record_larger_than_the_client_takes_is_said(log: Log) -> None:
    with pytest.raises(LockstepError, match="cluster b: writing ledger: MSG_SIZE_TOO_LARGE"):
        log.append("ledger", [(b"small", b"1"), (b"large", b"x" * 2_000_000)])
    with pytest.raises(ClusterUnreachable, match="1 of 1 records"):
        log.append("ledger", [(b"small", b"2")])


def test_more_records_than_the_client_queues_wait_for_room(log: Log) -> None:
    with pytest.raises(ClusterUnreachable, match="records for ledger were not acknowledged"):
        log.append("ledger", [(b"key", b"value")] * 100_100)
