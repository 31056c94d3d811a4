"""Records that the source alone has, once it is back after a failover. Reads both clusters, writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from sinks.failover.arrival import arrivals
from sinks.failover.cut_reader import AsItWas, all_records
from sinks.failover.divergence import divergences, takeover_ends
from sinks.failover.scene import Scene
from sinks.failover.tails import fingerprint_of
from sinks.kafka.ports.record_reader import Record
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True)
class Unreplicated:
    """By partition of the source, the records that never reached the target, those without any left out.

    `problems`: partitions of which nobody can tell. `exact`: whether no record of these was copied after all.
    """

    records: Mapping[TopicPartition, list[Record]]
    problems: Mapping[TopicPartition, str]
    exact: bool = True

    @property
    def count(self) -> int:
        """In all."""
        return sum(map(len, self.records.values()))

    def by_topic(self) -> dict[str, int]:
        """Records of each topic that has any."""
        found: Counter[str] = Counter()
        for where, records in self.records.items():
            found[where.topic] += len(records)
        return dict(sorted(found.items()))


def unreplicated(scene: Scene) -> Unreplicated:
    """What lies beyond the divergence on the source, and is not on the target since. Raises LockstepError.

    Where MM2 went on after the takeover, what it copied then counts as copied.
    """
    known = divergences(scene.journal.ledger)
    pairs = {
        TopicPartition(topic, number): TopicPartition(one.remote, number)
        for topic, one in known.items()
        for number in range(len(one.ends))
    }
    with (
        closing(scene.source.records(scene.settings.isolation)) as source,
        closing(scene.target.records("read_uncommitted")) as target,
    ):
        taken = takeover_ends(known)
        names = Counter(pairs.values())
        shared = {where for where, copy in pairs.items() if names[copy] > 1}
        told = {where: copy for where, copy in pairs.items() if where not in shared}
        seen = arrivals(source, AsItWas(target, taken), told)
        since = {where: one.behind.since for where, one in seen.items() if one.behind and one.behind.since is not None}
        # Where several topics are one on the target its end says of none of them how far it was copied.
        here = all_records(source, since | dict.fromkeys(shared, 0))
        starts = {pairs[where]: taken.get(pairs[where], 0) for where in since}
        later = all_records(target, starts | {pairs[where]: 0 for where in shared})
    left = {where: not_among(records, later[pairs[where]]) for where, records in here.items()}
    problems = {where: one.problem for where, one in seen.items() if one.problem}
    exact = not shared and all(one.behind is None or one.behind.exact for one in seen.values())
    return Unreplicated({where: records for where, records in left.items() if records}, problems, exact)


def not_among(records: list[Record], copied: list[Record]) -> list[Record]:
    """Those that have no copy among what came to the target later."""
    later = Counter((one.timestamp, one.digest) for one in map(fingerprint_of, copied))
    left = []
    for record in records:
        mark = (fingerprint_of(record).timestamp, fingerprint_of(record).digest)
        if later[mark]:
            later[mark] -= 1
        else:
            left.append(record)
    return left
