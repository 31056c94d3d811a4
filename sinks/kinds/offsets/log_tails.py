"""How far each log of a cluster was seen to reach, and which groups' own offsets there a truncation made untrue.

A log loses its tail when a replica that lacks it becomes leader (an unclean election). Producers, or MM2, then write
other records at the same offsets. An offset that a group committed before is that of a record the group never read.
"""

from __future__ import annotations

from sinks.kinds.offsets.group_partition import GroupPartition
from streaming.mm2.records import TopicPartition


class LogTails:
    """The logs of a flow's topics on one of its clusters, by the partition on the source."""

    def __init__(self) -> None:
        self._highest: dict[TopicPartition, int] = {}
        self._truncated_at: dict[TopicPartition, int] = {}
        self._unlocated: set[TopicPartition] = set()
        self._committed: dict[GroupPartition, int] = {}
        self._still_untrue: dict[GroupPartition, int] = {}
        self._generations: dict[TopicPartition, int] = {}
        self._topic_generations: dict[str, int] = {}

    def highest(self, where: TopicPartition) -> int:
        """The highest end of a log that was seen since it was truncated; 0 where none was."""
        return self._highest.get(where, 0)

    def note_end(self, where: TopicPartition, end: int, reached: int = 0) -> bool:
        """Takes in the end (high watermark) that a log has now; whether the log was truncated since the last time.

        `reached`: an end that it had before, as the syncs tell that were taken in before this end was read.
        """
        truncated = end < max(reached, self._highest.get(where, 0))
        self._highest[where] = end
        if truncated:
            self.note_truncation(where, end)
            self._unlocated.add(where)
        return truncated

    def note_truncation(self, where: TopicPartition, at: int) -> None:
        """The log was truncated at this offset, or before it; what was committed behind it counts as untrue."""
        if where in self._unlocated:
            # The end that told of it may be that of a log which had grown again; this is the first record written then.
            self._unlocated.discard(where)
            self._truncated_at[where] = min(at, self._truncated_at[where])
            return
        before = self._truncated_at.get(where)
        if before is not None:
            # An earlier truncation made these untrue, wherever this one is.
            known = self._committed.items()
            self._still_untrue |= {key: offset for key, offset in known if key[1] == where and offset > before}
        self._truncated_at[where] = at
        self._generations[where] = self._generations.get(where, 0) + 1
        self._committed = {key: offset for key, offset in self._committed.items() if key[1] != where}

    def locate(self, where: TopicPartition, at: int) -> None:
        """Where the log was truncated that was seen to be shorter: at this offset, or before it."""
        if where in self._unlocated:
            self.note_truncation(where, at)

    def generation(self, where: TopicPartition) -> int:
        """How often the log was truncated or recreated: what was found in another generation of it is untrue."""
        return self._generations.get(where, 0) + self._topic_generations.get(where.topic, 0)

    def is_untrue(self, group: str, where: TopicPartition, committed: int | None) -> bool:
        """Whether a group's own offset is from before the truncation, and behind it.

        One that was committed since is another one than the first that was seen after the truncation.
        """
        at = self._truncated_at.get(where)
        if at is None or committed is None:
            return False
        first = self._committed.setdefault((group, where), committed)
        return (committed > at and first == committed) or self._still_untrue.get((group, where)) == committed

    def forget(self, topic: str) -> None:
        """A topic that was recreated, or is gone."""
        self._topic_generations[topic] = self._topic_generations.get(topic, 0) + 1
        for known in (self._highest, self._truncated_at):
            for where in [where for where in known if where.topic == topic]:
                del known[where]
        self._unlocated = {where for where in self._unlocated if where.topic != topic}
        self._committed = {key: offset for key, offset in self._committed.items() if key[1].topic != topic}
        self._still_untrue = {key: offset for key, offset in self._still_untrue.items() if key[1].topic != topic}
