"""What the flows of one process want on a target that they share, so that none revokes what another still wants.

An ACL, a user or a quota that two sources have exists once on the target, and one flow owns it. Each flow publishes the
keys that it desires of a kind. Lockstep refuses to delete a key that another flow wants. It refuses every deletion
while another flow that is expected to publish has not done so. A source that shows nothing may not have been seen: what
its flow wanted before stands. After a restart that is unknown, if the flow's ledger says that it wanted anything. So
is what a paused or ended flow wants: what it wants but does not own is in no ledger. In between two passes a deletion
may still meet a new wish: its flow finds the item missing at its next comparison, and creates it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass

from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Change, Key, Kind
from sinks.model.plan import Refusal
from streaming.flow import Flow

WANTED = "still wanted by {}"
NOT_KNOWN = "whether {} still wants it is not known yet"
STOPPED = (
    "whether {} still wants it is not known, for it is paused or has ended. Resume it, or turn this kind off for it in "
    "the properties file; then it is deleted if no other flow wants it"
)

MOVED = (
    "{} drained topics, so clients may have moved to the target and need it. Delete it by hand if that is meant, or "
    "take the flow out of the properties file"
)


@dataclass
class _Wish:
    """What one flow says of a kind. `keys`: that it wants; None while unknown. `owned`: keys that it owns. `stopped`:
    it will not say what it wants."""

    keys: frozenset[Key] | None = None
    owned: frozenset[Key] = frozenset()
    stopped: bool = False


class Wishes:
    """What each flow into one target wants of it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wishes: defaultdict[Kind, dict[Flow, _Wish]] = defaultdict(dict)
        self.drained: frozenset[Flow] = frozenset()
        """Flows that drained topics: what their sources show no longer tells what their clients need on the target."""
        self._waiting: set[Flow] = set()

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
            wish.owned, wish.stopped = frozenset(owned), False

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
        with self._lock:
            # A new set each time: passes of other flows read it meanwhile.
            self.drained = self.drained | {flow} if ledger.values(Entry.DIVERGENCE) else self.drained - {flow}
            for kind, wish in ((kind, flows[flow]) for kind, flows in self._wishes.items() if flow in flows):
                wish.stopped = kind in stopped and wish.keys is None
                if wish.stopped and ledger.get(Entry.CLAIMED, kind.value) is None and not ledger.owned(kind):
                    wish.keys, wish.stopped = frozenset(), False

    def is_awaited(self, flow: Flow) -> bool:
        """Whether other flows hold deletions until this flow publishes."""
        with self._lock:
            return any(flow in flows and len(flows) > 1 for flows in self._wishes.values())

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
        stopped = [other.name for other, wish in others.items() if wish.stopped]
        unknown = [other.name for other, wish in others.items() if wish.keys is None and not wish.stopped]
        if wanting:
            return WANTED.format(" and ".join(sorted(wanting)))
        if moved := [other.name for other in others if other in self.drained]:
            return MOVED.format(" and ".join(sorted(moved)))
        if unknown:
            self._waiting.add(flow)
            return NOT_KNOWN.format(" and ".join(sorted(unknown)))
        if stopped:
            return STOPPED.format(" and ".join(sorted(stopped)))
        return None

    def waiting(self) -> frozenset[Flow]:
        """Returns flows whose deletions were held because another flow had not published, and forgets them."""
        with self._lock:
            found, self._waiting = frozenset(self._waiting), set()
            return found
