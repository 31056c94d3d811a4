"""What the flows of one process want on a target that they share, so that none revokes what another still wants.

An ACL, a user or a quota that two sources have exists once on the target, and one flow owns it. Each flow publishes the
keys that it desires of a kind. Lockstep refuses to delete a key that another flow claims. It refuses every deletion
while another flow that is expected to publish has not done so. A source that shows nothing may not have been seen: what
its flow claimed before stands. After a restart that is unknown, if the flow's ledger says that it claimed anything. So
is what a paused or ended flow wants: what it wants but does not own is in no ledger. In between two passes a deletion
may still meet a new claim: its flow finds the item missing at its next comparison, and creates it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Iterable

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


class Claims:
    """What each flow into one target wants of it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: dict[Kind, dict[Flow, frozenset[Key] | None]] = {}
        self._owned: dict[tuple[Kind, Flow], frozenset[Key]] = {}
        self._stopped: set[tuple[Kind, Flow]] = set()
        self.drained: set[Flow] = set()
        """Flows that drained topics: what their sources show no longer tells what their clients need on the target."""
        self._waiting: set[Flow] = set()

    def expect(self, flow: Flow, kind: Kind) -> None:
        """Note that the flow keeps this kind. Until it publishes, its wishes are unknown."""
        with self._lock:
            self._claimed.setdefault(kind, {}).setdefault(flow, None)

    def withdraw(self, flow: Flow, kind: Kind) -> None:
        """The flow does not keep this kind, or no more."""
        with self._lock:
            self._claimed.get(kind, {}).pop(flow, None)
            self._owned.pop((kind, flow), None)
            self._stopped.discard((kind, flow))

    def publish(self, flow: Flow, kind: Kind, keys: Iterable[Key], owned: Iterable[Key] = ()) -> None:
        """Publish all keys that the flow wants now, and all keys that it owns."""
        with self._lock:
            flows, claimed = self._claimed.setdefault(kind, {}), frozenset(keys)
            # Equal sets stay one object, so that comparing what others claim costs nothing.
            flows[flow] = claimed if flows.get(flow) != claimed else flows[flow]
            self._stopped.discard((kind, flow))
            self._owned[kind, flow] = frozenset(owned)

    def publish_unseen(self, flow: Flow, kind: Kind, claimed_before: bool, owned: Iterable[Key] = ()) -> None:
        """Publish for a flow whose source shows nothing.

        Its claims in this process stay. If it has none, it claims nothing, unless the ledger says that it claimed
        something in an earlier process.
        """
        with self._lock:
            flows = self._claimed.setdefault(kind, {})
            if flows.get(flow) is None:
                flows[flow] = None if claimed_before else frozenset()
            self._owned[kind, flow] = frozenset(owned)

    def stop(self, flow: Flow, stopped: Collection[Kind], ledger: Ledger) -> None:
        """Note that these kinds are paused, or that the flow has ended: it will not publish its wishes.

        Its claims in this process stay. If it has none, and its ledger knows of none either, it claims nothing.
        """
        with self._lock:
            if ledger.values(Entry.DIVERGENCE):
                self.drained.add(flow)
            else:
                self.drained.discard(flow)
            for kind, flows in self._claimed.items():
                self._stopped.discard((kind, flow))
                if kind in stopped and flow in flows and flows[flow] is None:
                    if ledger.get(Entry.CLAIMED, kind.value) is None and not ledger.owned(kind):
                        flows[flow] = frozenset()
                    else:
                        self._stopped.add((kind, flow))

    def is_awaited(self, flow: Flow) -> bool:
        """Whether other flows hold deletions until this flow publishes."""
        with self._lock:
            return any(flow in flows and len(flows) > 1 for flows in self._claimed.values())

    def claimed(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        """What the flow is known to want of this kind."""
        with self._lock:
            return self._claimed.get(kind, {}).get(flow) or frozenset()

    def of_others(self, flow: Flow, kind: Kind) -> Hashable:
        """A value for all claims of the other flows. If it changes, a held deletion may be released, or held for
        another reason."""
        with self._lock:
            others = self._others(flow, kind)
            return tuple((one, keys, (kind, one) in self._stopped) for one, keys in others.items())

    def claimed_by_others(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        with self._lock:
            return frozenset().union(*filter(None, self._others(flow, kind).values()))

    def owned_by_others(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        with self._lock:
            found = (keys for (of, other), keys in self._owned.items() if of is kind and other != flow)
            return frozenset().union(*found)

    def left_by_others(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        """Items that other flows of this process own and that no flow wants any more, as far as wishes are known."""
        with self._lock:
            others = self._others(flow, kind)
            owned = (self._owned.get((kind, one), frozenset()) for one, keys in others.items() if keys is not None)
            return frozenset().union(*owned).difference(*filter(None, others.values()))

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

    def _others(self, flow: Flow, kind: Kind) -> dict[Flow, frozenset[Key] | None]:
        return {one: keys for one, keys in self._claimed.get(kind, {}).items() if one != flow}

    def _objection(self, flow: Flow, change: Change) -> str | None:
        others = self._others(flow, change.kind)
        wanting = [other.name for other, keys in others.items() if keys and change.key in keys]
        stopped = [other.name for other in others if (change.kind, other) in self._stopped]
        unknown = [other.name for other, keys in others.items() if keys is None and other.name not in stopped]
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
