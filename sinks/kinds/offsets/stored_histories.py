"""Offset histories in the ledger, which keeps their bytes as they are."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from sinks.kinds.offsets.history import History
from sinks.ledger.avro import SingleObject
from sinks.ledger.ledger import Ledger
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

HISTORY_SCHEMA = SingleObject("offset-history")


def stored_histories(ledger: Ledger) -> Iterator[tuple[TopicPartition, History]]:
    """By partition on the source. A damaged one is left out, and logged: a group gets MM2's own answer then."""
    for where, data in ledger.histories().items():
        try:
            yield where, History.from_bytes(data, HISTORY_SCHEMA)
        except LockstepError as error:
            log.warning("the offset history of %s was left out: %s", where, error)


def store_histories(ledger: Ledger, histories: Mapping[TopicPartition, History | None]) -> None:
    """Keeps them; those that are None are forgotten. Raises ClusterUnreachable."""
    ledger.put_histories(
        {where: history.to_bytes(HISTORY_SCHEMA) if history else None for where, history in histories.items()}
    )
