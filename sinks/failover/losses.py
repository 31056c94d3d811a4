"""Sums up what a failover loses by topic, from what is missing of each partition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sinks.failover.arrival import Arrival
from sinks.failover.readiness import TopicLoss
from streaming.mm2.records import TopicPartition


def losses_of(arrivals: Iterable[Arrival], now_ms: float) -> dict[str, TopicLoss]:
    """Returns losses by topic of the source. Topics without a loss are left out."""
    found: dict[str, TopicLoss] = {}
    for one in arrivals:
        if one.behind is None or not one.behind.records:
            continue
        before = found.get(one.where.topic, TopicLoss(0, None))
        age = None if one.behind.oldest is None else max(0.0, (now_ms - one.behind.oldest) / 1000)
        ages = [known for known in (before.age, age) if known is not None]
        found[one.where.topic] = TopicLoss(
            before.records + one.behind.records, max(ages, default=None), before.exact and one.behind.exact
        )
    return found


def untold(arrivals: Iterable[Arrival]) -> dict[TopicPartition, str]:
    """Returns partitions whose loss is unknown, with the reason."""
    return {one.where: one.problem for one in arrivals if one.problem}


def losses_as_json(losses: Mapping[str, TopicLoss]) -> dict[str, object]:
    """Returns the `records` in all and by topic."""
    return {
        "records": sum(loss.records for loss in losses.values()),
        "exact": all(loss.exact for loss in losses.values()),
        "topics": {
            topic: {"records": loss.records, "oldest_age_seconds": None if loss.age is None else round(loss.age, 1)}
            for topic, loss in sorted(losses.items())
        },
    }
