"""A consumer that joins its group, as applications do: for the demo and the tests."""

from __future__ import annotations

from collections.abc import Mapping

import confluent_kafka as rd

from sinks.kafka.records.client_config import client_config
from sinks.kafka.records.error_codes import raised

CONSUME_TIMEOUT = 0.2
"""Seconds that one fetch waits."""


class Member:
    """The only member of its group, on one topic. `close` leaves the group."""

    def __init__(self, alias: str, properties: Mapping[str, str], group: str, topic: str) -> None:
        own = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._alias, self._topic = alias, topic
        self._consumer = rd.Consumer(client_config(alias, properties) | own | {"enable.partition.eof": True})
        self._consumer.subscribe([topic])
        self.keys: list[bytes] = []
        """Keys of the records read so far."""
        self.at_end = False
        """Whether the end of a partition was reached last."""

    def read(self, most: int) -> None:
        """Read up to so many records, waiting a moment for the first. Raises ClusterUnreachable, RightsMissing."""
        for message in self._consumer.consume(most, timeout=CONSUME_TIMEOUT):
            error = message.error()
            self.at_end = error is not None and error.code() == rd.KafkaError._PARTITION_EOF
            if error is None:
                self.keys.append(message.key() or b"")
            elif not self.at_end:
                raise raised(self._alias, f"reading {self._topic}", error)

    def commit(self) -> None:
        """Commit what was read. Returns once the group's coordinator has it."""
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()
