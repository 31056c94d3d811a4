"""What a failover loses: predicted without the source, and topic by topic from what is missing. Pure.

Predicted is it from the ends that were seen last and MM2's offset-syncs. A sync says that the record at an upstream
offset has a downstream one. What the target has beyond that downstream offset came behind that record. It is never
certain: on a source with markers or gaps MM2 is further upstream than it seems, and less is lost; where the target has
markers of its own (exactly-once, KIP-618) or records that MM2 sent again, it is less far, and more is lost. What came
to the source after it was seen last, nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sinks.failover.arrival import Arrival
from sinks.failover.checks import TopicLoss
from sinks.failover.kept_end_offsets import UNSEEN
from sinks.failover.source_end_offsets import EndOffsets
from sinks.failover.tails import Behind
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.history import History
from streaming.mm2.records import TopicPartition

NEVER_SEEN = "where its log on the source ends was never seen"


def predicted(
    ends: EndOffsets,
    histories: Mapping[TopicPartition, History],
    copies: Mapping[TopicPartition, LogRange],
    remote: Mapping[str, str],
) -> dict[TopicPartition, Arrival]:
    """By partition of the source. `copies`: the logs on the target; `remote`: names there.

    A partition without a sync may lose all that it has; of one whose end was never seen nobody can tell.
    """
    return {
        where: Arrival(where, problem=NEVER_SEEN)
        if end == UNSEEN
        else Arrival(where, _behind(end, histories.get(where), copies.get(TopicPartition(remote[topic], number))))
        for topic, of_one in ends.items()
        for number, end in enumerate(of_one)
        for where in [TopicPartition(topic, number)]
    }


def _behind(end: int, history: History | None, copy: LogRange | None) -> Behind:
    if not end:
        return Behind(0, None, True)
    if copy is None or not copy.end or history is None or history.is_empty:
        return Behind(end, None, False)
    pair = history.latest
    if copy.end < pair.downstream:
        # The target lost its tail: what was copied is not known any more.
        return Behind(end, None, False)
    # The record of the sync itself is there only where the target reaches beyond it.
    position = pair.upstream + copy.end - pair.downstream
    return Behind(max(0, end - position), None, False)


def losses_of(arrivals: Iterable[Arrival], now_ms: float) -> dict[str, TopicLoss]:
    """By topic of the source, those without a loss left out."""
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
    """Partitions of which nobody can tell, with the reason."""
    return {one.where: one.problem for one in arrivals if one.problem}


def losses_as_json(losses: Mapping[str, TopicLoss]) -> dict[str, object]:
    """`records` in all, and by topic."""
    return {
        "records": sum(loss.records for loss in losses.values()),
        "exact": all(loss.exact for loss in losses.values()),
        "topics": {
            topic: {"records": loss.records, "oldest_age_seconds": None if loss.age is None else round(loss.age, 1)}
            for topic, loss in sorted(losses.items())
        },
    }
