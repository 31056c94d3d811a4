"""The status of a flow's record comparison in a running job. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from sinks.model.times import utc_text

STALLED = "STALLED"
"""The verdict of a partition that stands still on the target while its source moves, and the kind of this
difference."""

MOST_NAMED = 20
"""Most topics and partitions that a status names."""


class Comparing(str, Enum):
    """State of the record comparison.

    STARTING: nothing was compared yet. STANDBY: another process leads the flow and compares. ENDED: the flow has ended
    after a failover. FAULTED: the comparison failed; it is tried again.
    """

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STANDBY = "STANDBY"
    ENDED = "ENDED"
    FAULTED = "FAULTED"


@dataclass(frozen=True, slots=True)
class VerifyStatus:
    """Status of the record comparison of one flow."""

    state: Comparing = Comparing.STARTING
    reason: str | None = None
    through: datetime | None = None
    """Lockstep compared every record that the source had at this time."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Number of partitions by verdict."""
    differences: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of differing records by topic and kind of difference."""
    stalled: tuple[str, ...] = ()
    """The first stalled partitions."""
    records: int = 0
    """Number of records compared since the job started."""
    dropped: int = 0
    """Number of differences that are counted without their places."""
    history: float | None = None
    """Share (0 to 1) of the older records that was compared, by offsets; None while unknown."""

    @property
    def by_kind(self) -> dict[str, int]:
        """Returns the differences by kind, over all topics."""
        counts: dict[str, int] = {}
        for (_, kind), count in sorted(self.differences.items()):
            counts[kind] = counts.get(kind, 0) + count
        return counts

    @property
    def worst(self) -> list[tuple[str, str, int]]:
        """Returns topic, kind and count, the largest first."""
        rows = [(topic, kind, count) for (topic, kind), count in self.differences.items() if count]
        return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))

    def as_json(self) -> dict[str, Any]:
        """Returns `verify` of a flow in `lockstep status`."""
        return {
            "state": self.state.value,
            "reason": self.reason,
            "verified_through": utc_text(self.through) if self.through else None,
            "partitions": dict(self.partitions),
            "differences": self.by_kind,
            "topics": [
                {"topic": topic, "kind": kind, "count": count} for topic, kind, count in self.worst[:MOST_NAMED]
            ],
            "stalled": list(self.stalled),
            "differences_without_place": self.dropped,
            "records": self.records,
            "history_compared": None if self.history is None else round(self.history, 4),
        }
