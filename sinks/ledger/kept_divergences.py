"""The ends of each drained topic's copy when its clients could move to the target. The ledger keeps them from the drain
on.

From then on clients may write the copy. So its end no longer tells how far MM2 copied, and Lockstep no longer changes
the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True, slots=True)
class Divergence:
    """The ends of source and copy of one topic at the takeover, by partition."""

    remote: str
    """Name of the topic on the target."""
    ends: Sequence[int]
    """End offsets of the copy at the takeover."""
    known: Sequence[int]
    """End offsets of the source."""
    lost: Sequence[int]
    """Predicted number of lost records."""
    exact: bool
    """`lost` is exact, not an upper bound."""

    def to_text(self) -> str:
        return orjson.dumps(asdict(self)).decode()


def keep_divergences(ledger: Ledger, found: Mapping[str, Divergence], *, renews: bool = False) -> None:
    """Write the divergences of topics that the ledger has none of. At a second run, clients may have written the copies
    already.

    `renews`: also rewrites topics whose source log has another end by now.
    """
    known = divergences(ledger)
    new = {
        topic: one
        for topic, one in found.items()
        if topic not in known or (renews and [*one.known] != [*known[topic].known])
    }
    ledger.put({(Entry.DIVERGENCE, (topic,)): one.to_text() for topic, one in new.items()})


def divergences(ledger: Ledger) -> dict[str, Divergence]:
    """Returns divergences by topic of the source. Raises LockstepError for an unreadable entry."""
    try:
        return {topic: _divergence(orjson.loads(text)) for (topic,), text in ledger.values(Entry.DIVERGENCE).items()}
    except (ValueError, TypeError, KeyError) as error:
        raise LockstepError(f"Lockstep cannot read in {ledger.topic} where partitions diverged: {error}") from error


def _divergence(said: Any) -> Divergence:
    found = Divergence(**said)
    numbers = (*found.ends, *found.known, *found.lost)
    if not isinstance(found.remote, str) or any(type(one) is not int for one in numbers):
        raise TypeError("neither a name nor numbers")
    return found


def forget_divergences(ledger: Ledger) -> None:
    """Delete all divergences from the ledger, because the flow mirrors again."""
    ledger.put({(Entry.DIVERGENCE, key): None for key in ledger.values(Entry.DIVERGENCE)})


# Where copies ended when their flow began to mirror again. What clients wrote there before is no sign that MM2 copied.


MIRRORS_AGAIN = "mirrors-again"
"""Begins the keys of these entries."""

NEVER = 2**63 - 1
"""In place of an end that the target did not tell: no later record counts."""


def keep_new_starts(ledger: Ledger, ends: Mapping[TopicPartition, int]) -> None:
    """Keeps the ends of copies from which on MM2 alone writes them again."""
    found: dict[str, dict[int, int]] = {}
    for copy, end in ends.items():
        found.setdefault(copy.topic, {})[copy.partition] = end
    ledger.put(
        {
            (Entry.FAILOVER, (MIRRORS_AGAIN, name)): orjson.dumps([of[number] for number in sorted(of)]).decode()
            for name, of in found.items()
        }
    )


def new_starts(ledger: Ledger) -> dict[TopicPartition, int]:
    """Returns these ends by partition of the target. Raises LockstepError for an unreadable entry."""
    values = ledger.values(Entry.FAILOVER)
    try:
        return {
            TopicPartition(key[1], number): int(end)
            for key, text in values.items()
            if key[0] == MIRRORS_AGAIN
            for number, end in enumerate(orjson.loads(text))
        }
    except (ValueError, TypeError, IndexError) as error:
        raise LockstepError(f"where copies ended cannot be read in {ledger.topic}: {error}") from error


def takeover_ends(known: Mapping[str, Divergence]) -> dict[TopicPartition, int]:
    """Returns the end offsets of the copies at the takeover, by partition on the target."""
    return {
        TopicPartition(one.remote, number): end
        for one in known.values()
        for number, end in enumerate(one.ends)
        if end >= 0
    }
