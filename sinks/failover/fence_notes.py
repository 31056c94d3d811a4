"""Tells which flow owns an ACL of a fence, by the `FENCE` entries of ledgers. Reads ledgers, writes nothing.

| value         | means                                                                                       |
|---------------|---------------------------------------------------------------------------------------------|
| `INTENT time` | this flow was about to create the ACL, which was not on the source then                     |
| `OWNED`       | this flow created it, or shares an ACL that another flow created                            |
| `a->c`        | this flow of the same source owns it: the ledger's flow never copies or deletes it          |
| `somebody's`  | this flow fences with it, its creator is unknown: as `a->c` until this flow is unfenced     |

Any other text means another flow, too.

An intent without an outcome (a crash, a time-out) counts as ownership only while it is fresh, as in
`sinks.ledger.ownership`. Later, another client may have created the same ACL. A stale intent also does not stop another
flow from deleting an ACL that it certainly created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sinks.ledger.failover_record import Command, State
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.ownership import is_fresh
from sinks.model.changes import Key
from sinks.model.times import time_of

OWNED, INTENT, UNCLEAR = "OWNED", "INTENT", "somebody's"

ANOTHERS = "another flow's"
"""Value for an ACL that this flow shared with another flow until it was unfenced."""


def note_of(ledger: Ledger, key: Key) -> str | None:
    """Returns this ledger's value for an ACL; None if it has no fence entry for it."""
    return ledger.get(Entry.FENCE, *map(str, key))


def is_intent(note: str | None) -> bool:
    """Whether the value is an intent, so that no answer of the source is known."""
    return note is not None and note.startswith(INTENT)


def is_stale(note: str | None, now: datetime) -> bool:
    """Whether it is an intent of unknown age, or so old that another client may have created the ACL since."""
    if note is None or not is_intent(note):
        return False
    try:
        return not is_fresh(time_of(note.removeprefix(INTENT)), now)
    except (ValueError, TypeError):
        return True


def is_unclear(ledger: Ledger, key: Key, now: datetime) -> bool:
    """Whether this ledger says that the creator of the ACL is unknown."""
    note = note_of(ledger, key)
    return note == UNCLEAR or is_stale(note, now)


@dataclass(frozen=True)
class OtherLedgers:
    """Ledgers of the other flows from the same source. `unread`: why a ledger that exists, or may exist, cannot be
    read, by flow. What such a ledger claims is unknown."""

    ledgers: Sequence[Ledger] = ()
    unread: Mapping[str, str] = field(default_factory=dict)


NO_OTHERS = OtherLedgers()
"""For a source with a single flow."""


def own_fences(ledger: Ledger) -> set[Key]:
    """Returns the keys of this flow's ACLs."""
    return {key for key in ledger.fences() if claims(ledger, key)}


def unclear_fences(ledger: Ledger) -> set[Key]:
    """Returns the keys of ACLs with which this flow fences although their creator is unknown."""
    return {key for key in ledger.fences() if note_of(ledger, key) == UNCLEAR}


def claims(ledger: Ledger, key: Key) -> bool:
    """Whether this ledger claims the ACL for its flow: as its own, or by an intent."""
    note = note_of(ledger, key)
    return note == OWNED or is_intent(note)


def claims_surely(ledger: Ledger, key: Key, now: datetime) -> bool:
    """Whether this ledger claims the ACL by more than a stale intent."""
    return claims(ledger, key) and not is_stale(note_of(ledger, key), now)


def relies_on(ledger: Ledger, key: Key) -> bool:
    """Whether the flow of this ledger is fenced, or half fenced, and may rely on this ACL, whichever client created
    it."""
    record = ledger.failover()
    # `unfence` may have just begun.
    mirrors = record.state is State.MIRRORING and record.doing in (None, Command.UNFENCE)
    return note_of(ledger, key) not in (None, ANOTHERS) and not mirrors
