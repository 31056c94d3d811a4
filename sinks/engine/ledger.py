"""What a flow remembers, in one compacted topic on its target: cluster ids, what it created, which kinds are paused.

Losing the topic errs on the safe side: nothing is ours then, so nothing is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

import orjson

from sinks.engine.avro import SingleObject
from sinks.engine.model import Key, Kind, Op, Outcome, ScramSpec
from sinks.faults import WrongCluster
from sinks.kafka.ports.cluster import Cluster, Reader, Record
from sinks.kinds.offsets.history import History
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}
SCHEMA = SingleObject("ledger-entry")
HISTORY = SingleObject("offset-history")
HISTORY_KEY = "HISTORY"
"""Begins the keys of offset histories, whose values have a schema of their own."""


class Entry(str, Enum):
    """The kinds of entries. One that a later version writes is left out by this one."""

    CLUSTER_ID = "CLUSTER_ID"
    OWNED = "OWNED"
    PAUSED = "PAUSED"
    VERSION = "VERSION"
    TOPIC_IDS = "TOPIC_IDS"
    OVERRIDE = "OVERRIDE"


OWNED_BY_NONE = frozenset({Kind.TOPIC_CONFIG, Kind.GROUP_OFFSET})
"""The configs of a remote topic are its source's, and a group's offset is the group's."""

EntryKey = tuple[Entry, tuple[str, ...]]


def utc_now() -> datetime:
    """Now, in UTC."""
    return datetime.now(timezone.utc)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The value of an entry and since when it holds."""

    value: str
    since: datetime


class Ledger:
    """The ledger of one flow. Reads at once what there is; writes nothing until something is to be remembered.

    Offset histories are kept as bytes, since only who begins anew asks for them.
    """

    def __init__(
        self, topic: str, reader: Reader, writer: Cluster | None, factor: int, now: Callable[[], datetime] = utc_now
    ) -> None:
        """`writer` None: to look only. Raises ClusterUnreachable where the topic cannot be read."""
        self._topic, self._reader, self._writer, self._factor, self._now = topic, reader, writer, factor, now
        self._entries: dict[EntryKey, Remembered] = {}
        self._histories: dict[TopicPartition, bytes] = {}
        self._created = False
        self._read_to = 0
        self.refresh()

    def refresh(self) -> None:
        """Reads what was written since the last time, by others as well. Raises ClusterUnreachable."""
        read = self._reader.read_log_from(self._topic, self._read_to)
        if read.whole:
            self._entries, self._histories, self._created, self._read_to = {}, {}, False, 0
        for position, key, value in read.records:
            self._take(key, value)
            self._read_to = position + 1

    def _take(self, key: bytes, value: bytes | None) -> None:
        try:
            entry, *rest = orjson.loads(key)
            if entry == HISTORY_KEY:
                self._take_history(TopicPartition(*rest), value)
                return
            place = (Entry(entry), tuple(rest))
            if value is None:
                self._entries.pop(place, None)
            else:
                record = SCHEMA.decode(value)
                self._entries[place] = Remembered(record["value"], record["since"])
        except (LockstepError, ValueError, TypeError) as error:
            log.warning("%s: a record with the key %r was left out: %s", self._topic, key, error)

    def _take_history(self, where: TopicPartition, value: bytes | None) -> None:
        if value is None:
            self._histories.pop(where, None)
        else:
            self._histories[where] = value

    def get(self, entry: Entry, *key: str) -> str | None:
        """The value remembered, or None."""
        found = self._entries.get((entry, key))
        return found.value if found else None

    def put(self, entries: Mapping[EntryKey, str | None]) -> None:
        """Remembers values, forgets those that are None; returns when the target's replicas have it."""
        news = {place: value for place, value in entries.items() if self.get(place[0], *place[1]) != value}
        if not news:
            return
        since = self._now()
        self._append([self._record(place, value, since) for place, value in news.items()])
        for place, value in news.items():
            if value is None:
                self._entries.pop(place, None)
            else:
                self._entries[place] = Remembered(value, since)

    def _append(self, records: Sequence[Record]) -> None:
        if self._writer is None:
            raise LockstepError(f"{self._topic} was opened to look only")
        if not self._created:
            self._writer.create_log(self._topic, self._factor, CONFIGS)
            self._created = True
        self._writer.append_log(self._topic, records)

    def histories(self) -> Iterator[tuple[TopicPartition, History]]:
        """The offset histories, by partition on the source; a damaged one is left out and said."""
        for where, data in self._histories.items():
            try:
                yield where, History.from_bytes(data, HISTORY)
            except LockstepError as error:
                log.warning("%s: the offset history of %s was left out: %s", self._topic, where, error)

    def put_histories(self, histories: Mapping[TopicPartition, History | None]) -> None:
        """Keeps them; those that are None are forgotten. Raises ClusterUnreachable."""
        if histories:
            self._append([_history_record(where, history) for where, history in histories.items()])

    @staticmethod
    def _record(place: EntryKey, value: str | None, since: datetime) -> tuple[bytes, bytes | None]:
        entry, key = place
        name = orjson.dumps([entry.value, *key])
        if value is None:
            return name, None
        return name, SCHEMA.encode({"entry": entry.value, "key": list(key), "value": value, "since": since})

    def check_cluster_id(self, alias: str, cluster_id: str) -> EntryKey | None:
        """The entry to put when this is the first contact, else None. Raises WrongCluster for an id not pinned."""
        pinned = self.get(Entry.CLUSTER_ID, alias)
        if pinned is None:
            return Entry.CLUSTER_ID, (alias,)
        if pinned != cluster_id:
            raise WrongCluster(
                f"{alias}.bootstrap.servers leads to the cluster {cluster_id}, but at first contact it led to "
                f"{pinned}: nothing is written. If the cluster {alias} was replaced on purpose, delete the topic "
                f"{self._topic} on the target, and Lockstep begins anew"
            )
        return None

    def owned(self, kind: Kind) -> set[Key]:
        """Keys of this kind that Lockstep created."""
        return {key[1:] for entry, key in self._entries if entry is Entry.OWNED and key[0] == kind.value}

    def values(self, entry: Entry) -> dict[Key, str]:
        """All that is remembered under a kind of entry, by key."""
        return {key: found.value for (kept, key), found in self._entries.items() if kept is entry}

    def versions(self, kind: Kind) -> dict[Key, str]:
        """Which version of its secret was written last, by key."""
        return {key[1:]: version for key, version in self.values(Entry.VERSION).items() if key[0] == kind.value}

    def paused(self) -> set[Kind]:
        """Kinds that `lockstep pause` stopped."""
        names = {key[0] for entry, key in self._entries if entry is Entry.PAUSED}
        return {kind for kind in Kind if kind.value in names}

    def record(self, outcomes: Iterable[Outcome]) -> None:
        """Takes over what was created, lets go of what was deleted."""
        entries: dict[EntryKey, str | None] = {}
        for outcome in outcomes:
            change = outcome.change
            if outcome.error or outcome.already or change.kind in OWNED_BY_NONE:
                continue
            place = (change.kind.value, *change.key)
            if change.op is not Op.UPDATE:
                entries[Entry.OWNED, place] = "" if change.op is Op.CREATE else None
            if change.kind is Kind.SCRAM_USER:
                entries[Entry.VERSION, place] = change.after.version if isinstance(change.after, ScramSpec) else None
        self.put(entries)


def _history_record(where: TopicPartition, history: History | None) -> Record:
    key = orjson.dumps([HISTORY_KEY, where.topic, where.partition])
    return key, history.to_bytes(HISTORY) if history else None
