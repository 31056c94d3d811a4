"""What the flows of one process want on a target that they share, so that none revokes what another still wants.

An ACL, a user or a quota that two sources have exists once on the target, and one flow owns it. Each flow publishes the
keys that it desires of a kind. Lockstep refuses to delete a key that another flow wants. It refuses every deletion
while another flow that is expected to publish has not done so. A source that shows nothing may not have been seen: what
its flow wanted before stands. After a restart that is unknown, if the flow's ledger says that it wanted anything. So
is what a paused or ended flow wants, or one that `--flow` leaves out: what it wants but does not own is in no ledger.
In between two passes a deletion may still meet a new wish: its flow finds the item missing at its next comparison, and
creates it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Change, Key, Kind
from sinks.model.plan import Refusal
from streaming.flow import Flow

WANTED = "still wanted by {}"
NOT_KNOWN = "whether {} still wants it is not known yet"
LEFT_OUT = (
    "whether {} still wants it is not known, for --flow leaves that flow out. Run the command without --flow; then it "
    "is deleted if no flow wants it"
)
STOPPED = (
    "whether {} still wants it is not known, for it is paused or has ended. Resume it, or turn this kind off for it in "
    "the properties file; then it is deleted if no other flow wants it"
)

MOVED = (
    "{} drained topics, so clients may have moved to the target and need it. Delete it by hand if that is meant, or "
    "take the flow out of the properties file"
)


class OtherDrains(NamedTuple):
    """What is known of the other flows into a flow's target. `drained`: they drained topics. `unread`: they may have,
    because this process has not read their ledgers yet."""

    drained: frozenset[Flow]
    unread: frozenset[Flow]


NO_OTHERS = OtherDrains(frozenset(), frozenset())


@dataclass
class _Wish:
    """What one flow says of a kind. `keys`: that it wants; None while unknown. `owned`: keys that it owns. `stopped`:
    it will not say what it wants. `presumed`: no keys, since it is stopped and its ledger knows of none."""

    keys: frozenset[Key] | None = None
    owned: frozenset[Key] = frozenset()
    stopped: bool = False
    presumed: bool = False


class Wishes:
    """What each flow into one target wants of it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wishes: defaultdict[Kind, dict[Flow, _Wish]] = defaultdict(dict)
        self._flows: frozenset[Flow] = frozenset()
        self._read: frozenset[Flow] = frozenset()
        self._drained: frozenset[Flow] = frozenset()
        self._left_out: set[Flow] = set()
        self._waiting: set[Flow] = set()

    def join(self, flow: Flow) -> None:
        """Note that the flow leads into this target. Until its ledger is read, whether it drained topics is unknown."""
        with self._lock:
            self._flows |= {flow}

    def note_drained(self, flow: Flow, ledger: Ledger) -> None:
        """Note what the flow's ledger says now: whether the flow drained topics.

        Then what its source shows no longer tells what its clients need on the target.
        """
        with self._lock:
            self._read |= {flow}
            self._drained = self._drained | {flow} if ledger.values(Entry.DIVERGENCE) else self._drained - {flow}

    def beside(self, flow: Flow) -> OtherDrains:
        """Returns the other flows that drained topics, and those that may have."""
        with self._lock:
            return OtherDrains(self._drained - {flow}, self._flows - self._read - {flow})

    def leave_out(self, flow: Flow, ledger: Ledger | None) -> None:
        """Note that the flow leads into this target, and that this command does not compare it.

        `ledger`: the flow's, read now; None if it cannot be read.
        """
        self.join(flow)
        # Any of them: overrides in the ledger may turn on what the file leaves off.
        for kind in (kind for kind in Kind if kind.row.of_principals):
            self.expect(flow, kind)
        with self._lock:
            self._left_out.add(flow)
        if ledger is not None:
            self.stop(flow, tuple(Kind), ledger)

    def expect(self, flow: Flow, kind: Kind) -> None:
        """Note that the flow keeps this kind. Until it publishes, its wishes are unknown."""
        with self._lock:
            self._wishes[kind].setdefault(flow, _Wish())

    def withdraw(self, flow: Flow, kind: Kind) -> None:
        """The flow does not keep this kind, or no more."""
        with self._lock:
            self._wishes[kind].pop(flow, None)

    def publish(self, flow: Flow, kind: Kind, keys: Iterable[Key], owned: Iterable[Key] = ()) -> None:
        """Publish all keys that the flow wants now, and all keys that it owns."""
        with self._lock:
            wish, wanted = self._wishes[kind].setdefault(flow, _Wish()), frozenset(keys)
            # Equal sets stay one object, so that comparing what others want costs nothing.
            wish.keys = wanted if wish.keys != wanted else wish.keys
            wish.owned, wish.stopped, wish.presumed = frozenset(owned), False, False

    def publish_unseen(self, flow: Flow, kind: Kind, wanted_before: bool, owned: Iterable[Key] = ()) -> None:
        """Publish for a flow whose source shows nothing.

        Its wishes in this process stay. If it has none, it wants nothing, unless the ledger says that it wanted
        something in an earlier process.
        """
        with self._lock:
            wish = self._wishes[kind].setdefault(flow, _Wish())
            if wish.keys is None and not wanted_before:
                wish.keys = frozenset()
            wish.owned = frozenset(owned)

    def stop(self, flow: Flow, stopped: Collection[Kind], ledger: Ledger) -> None:
        """Note that these kinds are paused, or that the flow has ended: it will not publish its wishes.

        Its wishes in this process stay. If it has none, and its ledger knows of none either, it wants nothing.
        """
        # It may have been caught up since it was read.
        self.note_drained(flow, ledger)
        with self._lock:
            for kind, wish in ((kind, flows[flow]) for kind, flows in self._wishes.items() if flow in flows):
                if wish.presumed and kind not in stopped:
                    # Resumed: what it wants now is unknown until it publishes.
                    wish.keys, wish.presumed = None, False
                wish.stopped = kind in stopped and wish.keys is None
                if wish.stopped and ledger.get(Entry.CLAIMED, kind.value) is None and not ledger.owned(kind):
                    wish.keys, wish.stopped, wish.presumed = frozenset(), False, True

    def is_awaited(self, flow: Flow) -> bool:
        """Whether other flows lead into the target. They wait until they know what this one wants and drained."""
        with self._lock:
            return bool(self._flows - {flow})

    def known(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        """What the flow is known to want of this kind."""
        with self._lock:
            return self._wishes[kind].get(flow, _Wish()).keys or frozenset()

    def of_others(self, flow: Flow, kind: Kind) -> Hashable:
        """A value for all wishes of the other flows. If it changes, a held deletion may be released, or held for
        another reason."""
        with self._lock:
            return tuple((one, wish.keys, wish.stopped) for one, wish in self._others(flow, kind).items())

    def wanted_by_others(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        with self._lock:
            return frozenset().union(*(wish.keys or () for wish in self._others(flow, kind).values()))

    def owned_by_others(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        with self._lock:
            return frozenset().union(*(wish.owned for wish in self._others(flow, kind).values()))

    def left_by_others(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        """Items that other flows of this process own and that no flow wants any more, as far as wishes are known."""
        with self._lock:
            known = [wish for wish in self._others(flow, kind).values() if wish.keys is not None]
            wanted = frozenset[Key]().union(*(wish.keys or () for wish in known))
            return frozenset[Key]().union(*(wish.owned for wish in known)) - wanted

    def hold(self, flow: Flow, deletions: Iterable[Change]) -> tuple[list[Change], list[Refusal]]:
        """Returns the deletions to which no other flow objects, and refusals of the others."""
        with self._lock:
            left, held = list[Change](), list[Refusal]()
            for change in deletions:
                reason = self._objection(flow, change)
                if reason is None:
                    left.append(change)
                else:
                    held.append(Refusal(change.kind, change.op, change.key, reason))
            return left, held

    def _others(self, flow: Flow, kind: Kind) -> dict[Flow, _Wish]:
        return {one: wish for one, wish in self._wishes[kind].items() if one != flow}

    def _objection(self, flow: Flow, change: Change) -> str | None:
        others = self._others(flow, change.kind)
        wanting = [other.name for other, wish in others.items() if wish.keys and change.key in wish.keys]
        left_out = [other.name for other, wish in others.items() if wish.keys is None and other in self._left_out]
        stopped = [other.name for other, wish in others.items() if wish.stopped]
        unknown = [other.name for other, wish in others.items() if wish.keys is None and not wish.stopped]
        if wanting:
            return WANTED.format(" and ".join(sorted(wanting)))
        if moved := [other.name for other in others if other in self._drained]:
            return MOVED.format(" and ".join(sorted(moved)))
        if left_out:
            return LEFT_OUT.format(" and ".join(sorted(left_out)))
        if unknown:
            self._waiting.add(flow)
            return NOT_KNOWN.format(" and ".join(sorted(unknown)))
        if stopped:
            return STOPPED.format(" and ".join(sorted(stopped)))
        return None

    def wait(self, flow: Flow) -> None:
        """Note that a change of the flow is held until the ledger of another flow is read."""
        with self._lock:
            self._waiting.add(flow)

    def waiting(self) -> frozenset[Flow]:
        """Returns flows whose changes were held because another flow had not published, or because its ledger was not
        read, and forgets them."""
        with self._lock:
            found, self._waiting = frozenset(self._waiting), set()
            return found
