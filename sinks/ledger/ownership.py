"""Records what Lockstep owns: an intent before a creation, ownership after it, and the end of either. Pure.

| entry                            | means                                                                       |
|----------------------------------|-----------------------------------------------------------------------------|
| `INTENT kind key`                | this was not on the target, and a creation was about to begin               |
| `OWNED kind key` = ""            | Lockstep created it; for a topic: by a version that did not learn ids       |
| `OWNED topic name` = `UNLEARNED` | Lockstep created it, and did not learn the topic's id yet                   |
| `OWNED topic name` = id          | Lockstep created the topic with this id; one with another id is not ours    |

An intent without an outcome (a crash, a time-out) counts as ownership only while it is fresh. Later, another client may
have created the same by hand. An intent is never renewed. It stays until something of its name is seen, or until a
creation of it has an outcome. It is withdrawn if nothing was created for certain (refused, never sent). An intent of an
earlier attempt is not withdrawn, because that request may have been carried out. A topic that a version without ids
created is not owned yet. The offset histories (`TOPIC_IDS`) know the ids of both sides. It is owned once they name its
current id. Until then Lockstep never deletes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta

from sinks.ledger.ledger_entries import Contents, Entry, EntryKey
from sinks.model.changes import Change, Key, Kind, Op, Outcome, ScramSpec

UNLEARNED = "?"
"""Stands for the id of a created topic that Lockstep does not know yet."""

NO_ID = ("", UNLEARNED)
"""Values of a topic's entry that hold no id."""

FRESH = timedelta(minutes=10)
"""How long an intent, or a created topic without a known id, counts before the target shows the item."""

Fresh = Callable[[EntryKey], bool]

Entries = dict[EntryKey, str | None]
"""Values to put into the ledger by entry; None deletes one."""


def is_fresh(since: datetime, now: datetime) -> bool:
    """Whether `since` is less than FRESH ago, by clocks that may jump. False for a time far in the future, because the
    clock was set back since. A ledger also asks a monotonic clock."""
    return abs(now - since) <= FRESH


def intents(changes: Iterable[Change]) -> Entries:
    """Returns the entries to put before these changes are applied: an intent for each creation of an item that Lockstep
    can own."""
    creations = (change for change in changes if change.op is Op.CREATE and change.kind.row.owned)
    return {(Entry.INTENT, (change.kind.value, *change.key)): "" for change in creations}


def recorded(outcomes: Iterable[Outcome], ids: Mapping[str, str], begun: Collection[EntryKey]) -> Entries:
    """Returns the entries to put after the outcomes. `ids`: known ids of the created topics, by name.

    `begun`: the intents of this attempt. An older intent stays if the fault is retriable, because the target may have
    carried out the earlier request.
    """
    entries: Entries = {}
    for outcome in outcomes:
        change = outcome.change
        item = (change.kind.value, *change.key)
        if not change.kind.row.owned:
            continue
        if change.op is Op.CREATE and not _may_be_ours(outcome, (Entry.INTENT, item) in begun):
            entries[Entry.INTENT, item] = None
        if outcome.error or outcome.already:
            continue
        if change.op is Op.CREATE:
            learned = ids.get(change.key[0]) or UNLEARNED
            entries[Entry.OWNED, item] = learned if change.kind.row.data else ""
        elif change.op is Op.DELETE:
            entries[Entry.OWNED, item] = None
        if change.kind.row.versioned:
            entries[Entry.VERSION, item] = change.after.version if isinstance(change.after, ScramSpec) else None
    return entries


def _may_be_ours(outcome: Outcome, first: bool) -> bool:
    """Whether the target may have carried out this creation, or an earlier attempt. `first`: there was no earlier
    attempt.

    An item that exists at a second attempt may come from the first.
    """
    error = outcome.error
    if outcome.already:
        return not first
    return error is not None and error.retriable and (error.unknown or not first)


def settled(
    contents: Contents, kind: Kind, waiting: Collection[Key], present: Mapping[Key, str], fresh: Fresh
) -> Entries:
    """Returns the entries to put for the unsettled keys `waiting`, once all items of the target were listed.

    `present`: the keys that exist, each with its topic's id; "" if it has none or is unknown. `fresh`: whether an entry
    is younger than FRESH.
    """
    entries: Entries = {}
    known = (found.value for found in contents.entries.of(Entry.TOPIC_IDS).values())
    confirmed = {value.split(" ")[1] for value in known if value.count(" ") > 1}
    for key in waiting:
        item, seen = (kind.value, *key), present.get(key)
        intent, owned = contents.entries.get((Entry.INTENT, item)), contents.entries.get((Entry.OWNED, item))
        if intent is not None:
            if seen is not None and fresh((Entry.INTENT, item)):
                entries[Entry.OWNED, item] = (seen or UNLEARNED) if kind.row.data else ""
            if seen is not None:
                entries[Entry.INTENT, item] = None
        elif owned is not None and seen:
            waits = owned.value == UNLEARNED and fresh((Entry.OWNED, item))
            if waits or seen in confirmed:
                entries[Entry.OWNED, item] = seen
    return entries
