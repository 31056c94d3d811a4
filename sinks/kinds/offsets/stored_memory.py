"""Loads a flow's histories and topic ids from the ledger, and writes the changed ones.

Any client that may write MM2's offset-syncs topic can name any topic and partition there. That must not make the ledger
grow: it gets only partitions that the source lists, and newer versions of those it has. A partition may be listed later
than its syncs come. So syncs of unlisted partitions wait, and a process that starts meanwhile reads them again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.cluster import Reader
from sinks.kinds.offsets.log_tails import LogTails, Truncation
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.offsets.sync_history import NOWHERE, Histories, History
from sinks.ledger.kept_end_offsets import KeptEndOffsets, by_partition, kept_end_offsets
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.ledger_entries import EntryKey
from sinks.model.changes import Key
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

SOURCE, TARGET = "source", "target"


class StoredMemory:
    """The histories that the ledger has of a flow, and how new they are."""

    def __init__(self) -> None:
        self._saved_to = NOWHERE
        self._stored: set[TopicPartition] = set()
        self._changed: set[TopicPartition] = set()
        # The first offset of the offset-syncs topic where a sync of a topic may lie that is not listed.
        self._waiting: dict[str, int] = {}
        self.lost_evidence = False
        """Whether histories became shorter since the last writing."""

    def load(self, ledger: Ledger, histories: Histories, syncs: str) -> dict[str, TopicIds]:
        """Fills the histories from the ledger, and sets the offset up to which the offset-syncs topic was read for all
        of them. Returns ids by topic."""
        for where, history in stored_histories(ledger):
            histories.restore(where, history)
        ids = {topic: TopicIds.parse(value) for (topic,), value in ledger.values(Entry.TOPIC_IDS).items()}
        if syncs in ids and ids[syncs].syncs_since != NOWHERE:
            histories.position = min(histories.position, ids[syncs].syncs_since - 1)
        self._stored, self._saved_to = set(ledger.histories()), histories.position
        return ids

    def note(self, *partitions: TopicPartition) -> None:
        """Notes partitions whose history changed without a sync, or was dropped."""
        self._changed.update(partitions)
        self.lost_evidence |= bool(partitions)

    def forget_positions(self) -> None:
        """Counts offsets of the recreated offset-syncs topic from 0."""
        self._saved_to, self._waiting = NOWHERE, dict.fromkeys(self._waiting, 0)

    def save(
        self,
        ledger: Ledger,
        histories: Histories,
        ids: dict[str, TopicIds],
        listed: Mapping[str, int],
        own: MirrorTopics | None,
    ) -> None:
        """Writes changes to the ledger. `ids`: by topic. `listed`: partitions by topic of the source. `own`: MM2's
        topics of the flow. Raises ClusterUnreachable."""
        has = self._stored | ledger.histories().keys()
        changed = self._changed.union(histories.changed_since(self._saved_to))
        found = {where: histories.with_empty(where) for where in sorted(changed)}
        # What was never stored needs no tombstone.
        stored = {
            where: history
            for where, history in found.items()
            if where in has or (history is not None and where.partition < listed.get(where.topic, 0))
        }
        later = {where for where, history in found.items() if history is not None and where not in stored}
        waiting = {where.topic: self._waiting.get(where.topic, self._saved_to + 1) for where in later}
        # Where to read from is written before the histories say that more was read, and taken back after them.
        _store_ids(ledger, ids, listed, own, [*self._waiting.values(), *waiting.values()])
        store_histories(ledger, stored)
        self._stored = (has | stored.keys()) - {where for where, history in stored.items() if history is None}
        self._saved_to, self._changed, self._waiting = histories.position, later, waiting
        self.lost_evidence = False
        _store_ids(ledger, ids, listed, own, waiting.values())


def _store_ids(
    ledger: Ledger,
    ids: dict[str, TopicIds],
    listed: Collection[str],
    own: MirrorTopics | None,
    waiting: Collection[int],
) -> None:
    has = {topic for (topic,) in ledger.values(Entry.TOPIC_IDS)}
    if own is not None:
        has |= {own.syncs, own.checkpoints}
        if waiting or own.syncs in ids:
            ids[own.syncs] = replace(ids.get(own.syncs, TopicIds("", "")), syncs_since=min(waiting, default=NOWHERE))
    ledger.put(
        {
            (Entry.TOPIC_IDS, (topic,)): known.as_text()
            for topic, known in ids.items()
            if topic in has or topic in listed
        }
    )


def load_truncations(ledger: Ledger, source: LogTails, target: LogTails) -> None:
    """Loads the truncations that earlier processes saw on both sides. Raises LedgerUntrusted for an unreadable
    entry."""
    found: dict[str, dict[TopicPartition, Truncation]] = {SOURCE: {}, TARGET: {}}
    kept = ledger.values(Entry.TRUNCATED)
    try:
        for (side, topic, number), keys in _keys_of_parts(kept).items():
            found[side][TopicPartition(topic, int(number))] = Truncation.parse([kept[key] for key in keys])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise LedgerUntrusted(f"a truncation in {ledger.topic} cannot be read: {error}") from error
    source.restore(found[SOURCE], by_partition(recalled_end_offsets(ledger))[1])
    # The offset histories say how far the target's logs reached.
    target.restore(found[TARGET], {})


def _keys_of_parts(keys: Iterable[Key]) -> dict[Key, list[Key]]:
    """Returns, by the key of each truncation, the keys of all its parts, its own first."""
    found: dict[Key, list[Key]] = {}
    for key in sorted(keys):
        found.setdefault(key[:3], []).append(key)
    return found


def recalled_end_offsets(ledger: Ledger) -> dict[str, KeptEndOffsets]:
    """Returns the source's ends that an earlier process kept. Leaves out unreadable entries, which are read from the
    source again."""
    try:
        return kept_end_offsets(ledger)
    except LockstepError as error:
        log.warning("%s", error)
        return {}


def store_truncations(ledger: Ledger, source: LogTails, target: LogTails, listed: Mapping[str, int]) -> None:
    """Writes changed truncations to the ledger, for partitions that the source has. Raises ClusterUnreachable.

    `listed`: partitions by topic of the source.
    """
    has = _keys_of_parts(ledger.values(Entry.TRUNCATED))
    for side, logs in ((SOURCE, source), (TARGET, target)):
        entries: dict[EntryKey, str | None] = {}
        written = set[TopicPartition]()
        for where in sorted(logs.unsaved):
            key, truncation = (side, where.topic, str(where.partition)), logs.truncations.get(where)
            if key in has or (truncation is not None and where.partition < listed.get(where.topic, 0)):
                entries |= {(Entry.TRUNCATED, part): None for part in has.get(key, ())}
                for part, text in enumerate(truncation.as_texts() if truncation else ()):
                    entries[Entry.TRUNCATED, (*key, str(part)) if part else key] = text
                written.add(where)
            elif truncation is None:
                written.add(where)
        ledger.put(entries)
        logs.unsaved -= written


def stored_histories(ledger: Ledger) -> Iterator[tuple[TopicPartition, History]]:
    """Yields histories by partition on the source. Logs and leaves out a damaged one: its groups then get MM2's own
    answer."""
    for where, data in ledger.histories().items():
        try:
            yield where, History.from_bytes(data)
        except LockstepError as error:
            log.warning("Lockstep ignores the damaged offset history of %s in the ledger: %s", where, error)


def store_histories(ledger: Ledger, histories: Mapping[TopicPartition, History | None]) -> None:
    """Writes histories to the ledger. None deletes one. Raises ClusterUnreachable."""
    ledger.put_histories({where: history.to_bytes() if history else None for where, history in histories.items()})


@dataclass(frozen=True, slots=True)
class TopicIds:
    """Ids of a topic on the source and of its remote topic; "" if a cluster has none.

    `syncs_since`, `checkpoints_since`: offsets in MM2's offset-syncs and checkpoints topics. Records up to them belong
    to a former topic of the same name. In the entry of the offset-syncs topic itself, `syncs_since` is the first offset
    whose sync may be in no stored history.
    """

    source: str
    target: str
    syncs_since: int = NOWHERE
    checkpoints_since: int = NOWHERE

    def as_text(self) -> str:
        """Returns the text for the ledger."""
        return f"{self.source} {self.target} {self.syncs_since} {self.checkpoints_since}"

    @classmethod
    def parse(cls, text: str) -> TopicIds:
        """Returns the ids in a text of `as_text`. Texts of older versions lack the fourth part."""
        source, target, *positions = text.split(" ")
        return cls(source, target, *map(int, positions))


def is_recreated(known: dict[str, TopicIds], reader: Reader, name: str) -> bool:
    """Whether one of MM2's own topics was recreated since it was last read. Notes its id in `known`, by its name.

    Its log alone shows that only while it ends before the last offset read. Raises ClusterUnreachable, RightsMissing.
    """
    found = reader.topic_ids([name]).get(name)
    if not found:
        return False
    before, known[name] = known.get(name), TopicIds(found, "")
    return before is not None and before.source not in ("", found)


def ids_for_runs(known: Mapping[str, TopicIds], topic: str, syncs: str | None) -> str | None:
    """Returns the ids, as text, to which exact offsets of a topic belong; None while one of them is unknown.

    `syncs`: name of the offset-syncs topic.
    """
    ours, theirs = known.get(topic), known.get(syncs or "")
    ids = (ours.source, ours.target, theirs.source) if ours and theirs else ("",)
    return " ".join(ids) if all(ids) else None
