"""The ids of a topic on both sides of a flow, and from where on MM2's own topics are about the topic with these ids."""

from __future__ import annotations

from dataclasses import dataclass

from sinks.kinds.offsets.history import NOWHERE


@dataclass(frozen=True, slots=True)
class TopicIds:
    """Ids of a topic on the source and of its remote topic, "" where a cluster has none.

    `syncs_since`, `checkpoints_since`: offsets in MM2's offset-syncs and checkpoints topics. Records at or before them
    were written for a topic that was deleted and recreated since.
    """

    source: str
    target: str
    syncs_since: int = NOWHERE
    checkpoints_since: int = NOWHERE

    def as_text(self) -> str:
        """For the ledger."""
        return f"{self.source} {self.target} {self.syncs_since} {self.checkpoints_since}"

    @classmethod
    def parse(cls, text: str) -> TopicIds:
        """What `as_text` wrote; without the fourth part, as before checkpoints were told apart."""
        source, target, *positions = text.split(" ")
        return cls(source, target, *map(int, positions))
