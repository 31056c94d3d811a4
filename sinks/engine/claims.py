"""What the flows of one process want on a target that they share, so that none revokes what another still wants.

An ACL, a user or a quota that two sources have exists once on the target, and one flow owns it. Each flow publishes the
keys that it desires of a kind; a planned deletion of a key that another flow claims is refused instead, and so is every
deletion while another flow that is expected to publish has not done so. In between two passes a deletion may still meet
a new claim: its flow finds the item missing at its next comparison, and creates it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from sinks.engine.model import Change, Key, Kind, Op
from sinks.engine.plan import Refusal
from streaming.flow import Flow

WANTED = "still wanted by {}"
NOT_KNOWN = "whether {} still wants it is not known yet"


class Claims:
    """Of all flows into one target. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: dict[Kind, dict[Flow, frozenset[Key] | None]] = {}
        self._owned: dict[tuple[Kind, Flow], frozenset[Key]] = {}
        self._waiting: set[Flow] = set()

    def expect(self, flow: Flow, kind: Kind) -> None:
        """The flow keeps this kind: until it publishes, nobody knows what it wants."""
        with self._lock:
            self._claimed.setdefault(kind, {}).setdefault(flow, None)

    def withdraw(self, flow: Flow, kind: Kind) -> None:
        """The flow does not keep this kind, or no more."""
        with self._lock:
            self._claimed.get(kind, {}).pop(flow, None)
            self._owned.pop((kind, flow), None)

    def publish(
        self, flow: Flow, kind: Kind, keys: Iterable[Key], owned: Iterable[Key] = (), shown: bool = True
    ) -> None:
        """All keys that the flow desires now, and those that it owns.

        `shown`: whether its source shows anything at all. One that shows nothing may not have been seen: what the flow
        claimed before stands then, and other flows go on without deleting that.
        """
        with self._lock:
            flows = self._claimed.setdefault(kind, {})
            claimed = frozenset(keys) if shown else flows.get(flow) or frozenset()
            # Equal sets stay one object, so that comparing what others claim costs nothing.
            flows[flow] = claimed if flows.get(flow) != claimed else flows[flow]
            self._owned[kind, flow] = frozenset(owned)

    def of_others(self, flow: Flow, kind: Kind) -> tuple[tuple[Flow, frozenset[Key] | None], ...]:
        """What the other flows claim: another value than before may end what was held."""
        with self._lock:
            return tuple((one, keys) for one, keys in self._claimed.get(kind, {}).items() if one != flow)

    def owned_by_others(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        """What other flows of this process own."""
        with self._lock:
            found = (keys for (of, other), keys in self._owned.items() if of is kind and other != flow)
            return frozenset().union(*found)

    def left_by_others(self, flow: Flow, kind: Kind) -> frozenset[Key]:
        """What other flows of this process own, and none of them wants any more."""
        wanted = (keys for _, keys in self.of_others(flow, kind) if keys)
        return self.owned_by_others(flow, kind).difference(*wanted)

    def hold(self, flow: Flow, changes: Iterable[Change]) -> tuple[list[Change], list[Refusal]]:
        """The changes that the flow may apply, and in place of the others, all deletions, why not."""
        with self._lock:
            left, held = list[Change](), list[Refusal]()
            for change in changes:
                reason = self._objection(flow, change) if change.op is Op.DELETE else None
                if reason is None:
                    left.append(change)
                else:
                    held.append(Refusal(change.kind, change.op, change.key, reason))
            return left, held

    def _objection(self, flow: Flow, change: Change) -> str | None:
        others = {other: keys for other, keys in self._claimed.get(change.kind, {}).items() if other != flow}
        wanting = [other.name for other, keys in others.items() if keys and change.key in keys]
        unknown = [other.name for other, keys in others.items() if keys is None]
        if wanting:
            return WANTED.format(" and ".join(sorted(wanting)))
        if unknown:
            self._waiting.add(flow)
            return NOT_KNOWN.format(" and ".join(sorted(unknown)))
        return None

    def waiting(self) -> frozenset[Flow]:
        """Flows whose deletions were held because others had not published; asking forgets them."""
        with self._lock:
            found, self._waiting = frozenset(self._waiting), set()
            return found


@dataclass(frozen=True)
class Claim:
    """What one flow claims of one kind."""

    claims: Claims
    flow: Flow
    kind: Kind

    def publish(self, keys: Iterable[Key], owned: Iterable[Key] = (), shown: bool = True) -> None:
        """See `Claims.publish`."""
        self.claims.publish(self.flow, self.kind, keys, owned, shown)

    def publish_nothing(self) -> None:
        """A cluster that does not support the kind leaves the flow with nothing to want."""
        self.publish(())

    def hold(self, changes: Iterable[Change]) -> tuple[list[Change], list[Refusal]]:
        """See `Claims.hold`."""
        return self.claims.hold(self.flow, changes)

    def of_others(self) -> tuple[tuple[Flow, frozenset[Key] | None], ...]:
        """See `Claims.of_others`."""
        return self.claims.of_others(self.flow, self.kind)

    def owned_by_others(self) -> frozenset[Key]:
        """See `Claims.owned_by_others`."""
        return self.claims.owned_by_others(self.flow, self.kind)

    def left_by_others(self) -> frozenset[Key]:
        """See `Claims.left_by_others`."""
        return self.claims.left_by_others(self.flow, self.kind)
