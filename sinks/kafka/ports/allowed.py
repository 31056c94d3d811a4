"""What the client of a cluster may do there (KIP-430: authorized operations)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Allowed:
    """Operations by Kafka's upper-case words. A topic or group that cannot be seen has Kafka's error name instead.

    `creatable`: for names asked about, whether such a topic may be created.
    """

    cluster: frozenset[str]
    topics: Mapping[str, frozenset[str] | str] = field(default_factory=dict)
    creatable: Mapping[str, bool] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str] | str] = field(default_factory=dict)
