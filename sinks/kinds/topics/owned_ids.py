"""The ids that topics of ours have on the target: another one than the ledger knows is another topic."""

from __future__ import annotations

from collections.abc import Collection

from sinks.engine.model import Key, Kind
from sinks.engine.recorder import TopicIds
from sinks.kinds.controller import PassContext


class OwnedIds:
    """Of one flow. Asks for all of them once for each full comparison, else for few."""

    def __init__(self, topic_ids: TopicIds) -> None:
        """`topic_ids`: asks the target."""
        self._topic_ids, self._owes_all = topic_ids, True

    def note(self, context: PassContext) -> None:
        """A pass begins."""
        self._owes_all |= context.everything

    def present(self, context: PassContext, compared: Collection[str]) -> dict[Key, str]:
        """The ids of what the target has of the topics that are ours, or may be: of all once for each full comparison,
        else of those that were compared or whose id is not known yet. Who deletes asks for itself.

        `compared`: names on the target.
        """
        owned, unsettled = context.ledger.owned(Kind.TOPIC), context.ledger.unsettled(Kind.TOPIC)
        ours = {key[0] for key in owned | unsettled}
        if not self._owes_all:
            ours &= {key[0] for key in unsettled}.union(compared)
        there = ours & context.listed.target.keys()
        ids = self._topic_ids(there) if there else {}
        self._owes_all = False
        return {(name,): found for name, found in ids.items()}
