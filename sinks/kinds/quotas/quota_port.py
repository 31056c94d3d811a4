"""The interface to a cluster's client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from sinks.faults import ItemFault
from sinks.model.registry import ABSENT


class Entity(NamedTuple):
    """The entity of a quota: a user, a client id, both, or an address. `""`: the default of all. `ABSENT`: not part of
    the entity."""

    user: str = ABSENT
    client_id: str = ABSENT
    ip: str = ABSENT


Quotas = Mapping[Entity, Mapping[str, float]]
"""Quotas by entity, by Kafka's name of the quota."""

QuotaValues = Mapping[Entity, Mapping[str, float | None]]
"""Quotas to write, in the same form. None deletes a quota."""


class QuotaReader(Protocol):
    """Reads quotas. Raises ClusterUnreachable, RightsMissing, NotSupported (before Kafka 2.6)."""

    def describe(self) -> Quotas:
        """Returns all quotas."""


class ClientQuotas(QuotaReader, Protocol):
    """Reads and writes quotas."""

    def alter(self, wanted: QuotaValues) -> dict[Entity, ItemFault | None]:
        """Write the quotas of each entity, all or none. Returns a fault by entity; None if it was written."""
