"""Topics that are compared although no watch saw them differ. Pure.

The broker that was polled may have shown a change that the one that was read did not show yet, and a watch reports a
difference once. What differs is therefore compared in the next pass, too. At first that is every topic, and to read all
of them twice at once would double what a start takes: they take turns. And a broker that stays behind for longer hides
a change from both passes: so a few topics are compared with each full comparison, whatever the watches say.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from sinks.model.changes import Kind, Op, Outcome

AT_ONCE = 200
"""Topics that are compared again in one pass. A change that comes meanwhile waits for it: a third of a second or so."""

WITH_ALL = 500
"""The same in a pass that compares everything; more, since a kind with an interval of its own has no other passes."""

IN_TURN = 100
"""Topics that are compared with each full comparison, so that 2,000 are within twenty of them."""


class SecondComparison:
    """Upstream topics that are owed one, in the order in which they have their turns."""

    def __init__(self) -> None:
        self._owed: dict[str, None] = {}
        self._round: list[str] = []

    @property
    def is_owed(self) -> bool:
        """Whether there are any."""
        return bool(self._owed)

    def owe(self, topics: Collection[str]) -> None:
        """These are compared now, and are to be compared again."""
        # Who waits already keeps its place.
        self._owed |= dict.fromkeys(sorted(set(topics) - self._owed.keys()))

    def owe_some(self, topics: Collection[str]) -> None:
        """The next few of all topics. One that came after a round began waits for the next, or those that come and go
        would keep the others from their turns."""
        there = set(topics)
        self._round = [topic for topic in self._round if topic in there] or sorted(there)
        some, self._round = self._round[:IN_TURN], self._round[IN_TURN:]
        self.owe(some)

    def without(self, topics: Collection[str]) -> set[str]:
        """Those that this listing lacks: they are owed none any more. Back in a later one, they are like new ones."""
        missing = self._owed.keys() - set(topics)
        self._owed = {topic: None for topic in self._owed if topic not in missing}
        return missing

    def turn(self, busy: Collection[str], *, everything: bool) -> set[str]:
        """Those whose turn it is; what is `busy` has not been compared once yet, and keeps its place. `everything`:
        this pass compares everything."""
        most = WITH_ALL if everything else AT_ONCE
        turn = set(islice((topic for topic in self._owed if topic not in busy), most))
        self._owed = {topic: None for topic in self._owed if topic not in turn}
        return turn


def is_to_compare_again(outcome: Outcome) -> bool:
    """What passes by itself, and topics just created: without a refused config, or by another hand with others."""
    if outcome.error is not None:
        return outcome.error.retriable
    return (outcome.change.kind, outcome.change.op) == (Kind.TOPIC, Op.CREATE)
