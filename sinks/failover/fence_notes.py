"""Whose an ACL of a fence is, as the entries `FENCE` of ledgers say it. Reads ledgers, writes nothing.

| value         | means                                                                                    |
|---------------|------------------------------------------------------------------------------------------|
| `INTENT time` | it was not on the source then, and this flow was about to make it                        |
| `OWNED`       | this flow made it, or fences as well with what another flow made                         |
| `a->c`        | that flow's, from the same source: this one does not copy it, and never takes it away    |
| `somebody's`  | this flow fences with it, and nobody can tell who made it: as above until it is unfenced |
| (empty)       | of a version that named nobody: this flow's, unless it mirrors and another one is fenced |

Any other text is another flow's, too.

An intent without an outcome (a crash, a time-out) counts as ownership only while it is fresh, as those of
`sinks.ledger.ownership`: later, somebody else may have made the same. Nor does it then keep another flow from taking
away what that one made for certain, for the `fence` that left it never came to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sinks.ledger.failover_states import Command, State
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.ownership import is_fresh
from sinks.model.changes import Key
from sinks.model.times import time_of, utc_text

OWNED, INTENT, UNNAMED, UNCLEAR = "OWNED", "INTENT", "", "somebody's"

ANOTHERS = "another flow's"
"""Of one that was this flow's as well, until it was unfenced."""


def intent_at(now: datetime) -> str:
    """The value of an intent."""
    return f"{INTENT} {utc_text(now)}"


def note_of(ledger: Ledger, key: Key) -> str | None:
    """The value that this ledger has of an ACL; None: it knows of no fence there."""
    return ledger.get(Entry.FENCE, *map(str, key))


def is_intent(note: str | None) -> bool:
    """Whether no answer is known."""
    return note is not None and note.startswith(INTENT)


def is_stale(note: str | None, now: datetime) -> bool:
    """Whether it is an intent, and so old that somebody else may have made the ACL since, or of an unknown age."""
    if note is None or not is_intent(note):
        return False
    try:
        return not is_fresh(time_of(note.removeprefix(INTENT)), now)
    except (ValueError, TypeError):
        return True


def is_unclear(ledger: Ledger, key: Key, now: datetime) -> bool:
    """Whether this ledger knows that nobody can tell who made an ACL."""
    note = note_of(ledger, key)
    return note == UNCLEAR or is_stale(note, now)


@dataclass(frozen=True)
class OtherLedgers:
    """Those of the other flows from the same source. `unread`: by the name of a flow, why its ledger, which is there or
    may be, cannot be read: nobody can tell what it claims."""

    ledgers: Sequence[Ledger] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    def claim(self, key: Key, now: datetime) -> bool:
        """Whether one of those that are read claims this ACL, by more than an intent that is no longer fresh."""
        return any(claims_surely(ledger, key, now) for ledger in self.ledgers)


NO_OTHERS = OtherLedgers()
"""Where no other flow comes from the same source."""


def own_fences(ledger: Ledger, claimed: Callable[[Key], bool] = lambda key: False) -> set[Key]:
    """The ACLs that are this flow's, as their keys. `claimed`: whether another flow has one as its own."""
    return {key for key in ledger.fences() if _is_own(ledger, key, claimed)}


def unclear_fences(ledger: Ledger) -> set[Key]:
    """The ACLs with which this flow fences although nobody can tell who made them, as their keys."""
    return {key for key in ledger.fences() if note_of(ledger, key) == UNCLEAR}


def claims(ledger: Ledger, key: Key) -> bool:
    """Whether this ledger has an ACL as its own flow's, be it an intent, or as nobody's while its flow is fenced."""
    note = note_of(ledger, key)
    return note == OWNED or is_intent(note) or (note == UNNAMED and not _mirrors(ledger))


def claims_surely(ledger: Ledger, key: Key, now: datetime) -> bool:
    """Whether it does so by more than an intent that is no longer fresh."""
    return claims(ledger, key) and not is_stale(note_of(ledger, key), now)


def relies_on(ledger: Ledger, key: Key) -> bool:
    """Whether the flow of this ledger is fenced, or half so, and may be so with this ACL, whoever made it."""
    return note_of(ledger, key) not in (None, ANOTHERS) and not _mirrors(ledger)


def _is_own(ledger: Ledger, key: Key, claimed: Callable[[Key], bool]) -> bool:
    note = note_of(ledger, key)
    if note == UNNAMED and _mirrors(ledger):
        return not claimed(key)
    return note in (OWNED, UNNAMED) or is_intent(note)


def _mirrors(ledger: Ledger) -> bool:
    """Also where `unfence` has just begun."""
    record = ledger.failover()
    return record.state is State.MIRRORING and record.doing in (None, Command.UNFENCE)
