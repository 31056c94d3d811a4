"""Tells from the `FENCE` entries of ledgers which flow owns an ACL of a fence. Reads ledgers, writes nothing.

| value         | meaning                                                                                     |
|---------------|---------------------------------------------------------------------------------------------|
| `INTENT time` | this flow was about to create the ACL, which was not on the source then                     |
| `OWNED`       | this flow created it, or shares an ACL that another flow created                            |
| `a->c`        | this flow of the same source owns it: the ledger's flow never copies or deletes it          |
| `somebody's`  | this flow fences with it, its creator is unknown: as `a->c` until this flow is unfenced     |

Any other text means another flow, too.

After a crash or a time-out an intent has no outcome. It counts as ownership only while it is fresh, as in
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
"""Ledger value of an ACL that another flow still uses as its fence after this flow was unfenced."""


def note_of(ledger: Ledger, key: Key) -> str | None:
    """Returns this ledger's value for the ACL with this key; None if it has no fence entry for it."""
    return ledger.get(Entry.FENCE, *map(str, key))


def is_intent(note: str | None) -> bool:
    """Whether a ledger value is an intent: the source's answer to the request is unknown."""
    return note is not None and note.startswith(INTENT)


def is_stale(note: str | None, now: datetime) -> bool:
    """Whether a ledger value is an intent so old, or of unknown age, that another client may have created the ACL."""
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
    """Ledgers of the other flows from the same source. `unread`: by flow, why its ledger cannot be read. It may claim
    any ACL."""

    ledgers: Sequence[Ledger] = ()
    unread: Mapping[str, str] = field(default_factory=dict)


NO_OTHERS = OtherLedgers()
"""For a source with a single flow."""


def own_fences(ledger: Ledger) -> set[Key]:
    """Returns the keys of the ACLs that this ledger claims for its flow."""
    return {key for key in ledger.fences() if claims(ledger, key)}


def unclear_fences(ledger: Ledger) -> set[Key]:
    """Returns the keys of ACLs that this flow uses as its fence, but whose creator is unknown."""
    return {key for key in ledger.fences() if note_of(ledger, key) == UNCLEAR}


def claims(ledger: Ledger, key: Key) -> bool:
    """Whether this ledger claims the ACL for its flow: as its own, or by an intent."""
    note = note_of(ledger, key)
    return note == OWNED or is_intent(note)


def claims_surely(ledger: Ledger, key: Key, now: datetime) -> bool:
    """Whether this ledger claims the ACL for its flow, and not only by a stale intent."""
    return claims(ledger, key) and not is_stale(note_of(ledger, key), now)


def relies_on(ledger: Ledger, key: Key) -> bool:
    """Whether the flow of this ledger is fenced, or half fenced, and may rely on this ACL, whichever client created
    it."""
    record = ledger.failover()
    # `unfence` may have just begun.
    mirrors = record.state is State.MIRRORING and record.doing in (None, Command.UNFENCE)
    return note_of(ledger, key) not in (None, ANOTHERS) and not mirrors
