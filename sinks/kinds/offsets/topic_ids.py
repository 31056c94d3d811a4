"""The ids of a topic on both sides of a flow, and from where on MM2's own topics are about the topic with these ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sinks.kafka.ports.cluster import Reader
from sinks.kinds.offsets.history import NOWHERE


@dataclass(frozen=True, slots=True)
class TopicIds:
    """Ids of a topic on the source and of its remote topic, "" where a cluster has none.

    `syncs_since`, `checkpoints_since`: offsets in MM2's offset-syncs and checkpoints topics. Records at or before them
    were written for a topic that was deleted and recreated since. `syncs_since` of the offset-syncs topic itself is the
    first offset whose sync may be in no stored history.
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


def is_recreated(known: dict[str, TopicIds], reader: Reader, name: str) -> bool:
    """Whether one of MM2's own topics is another one than was read before; takes its id into `known`, by its name.

    Its log alone shows that only while it ends before what was read. Raises ClusterUnreachable, RightsMissing.
    """
    found = reader.topic_ids([name]).get(name)
    if not found:
        return False
    before, known[name] = known.get(name), TopicIds(found, "")
    return before is not None and before.source not in ("", found)


def ids_for_runs(known: Mapping[str, TopicIds], topic: str, syncs: str | None) -> str | None:
    """The ids that exact offsets of a topic belong to, as text; None while one of them is not known.

    `syncs`: the name of the offset-syncs topic.
    """
    ours, theirs = known.get(topic), known.get(syncs or "")
    ids = (ours.source, ours.target, theirs.source) if ours and theirs else ("",)
    return " ".join(ids) if all(ids) else None
