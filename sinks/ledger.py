"""What a flow remembers, in one compacted topic on its target: cluster ids, what it created, which kinds are paused.

Losing the topic errs on the safe side: nothing is ours then, so nothing is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

import orjson

from sinks.avro import SingleObject
from sinks.cluster.base import Cluster, Reader
from sinks.errors import WrongCluster
from sinks.model import Key, Kind, Op, Outcome, ScramSpec
from streaming.errors import LockstepError

log = logging.getLogger(__name__)

CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}
SCHEMA = SingleObject("ledger-entry")


class Entry(str, Enum):
    """The kinds of entries. One that a later version writes is left out by this one."""

    CLUSTER_ID = "CLUSTER_ID"
    OWNED = "OWNED"
    PAUSED = "PAUSED"
    VERSION = "VERSION"


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
    """The ledger of one flow. Reads at once what there is; writes nothing until something is to be remembered."""

    def __init__(
        self, topic: str, reader: Reader, writer: Cluster | None, factor: int, now: Callable[[], datetime] = utc_now
    ) -> None:
        """`writer` None: to look only. Raises ClusterUnreachable where the topic cannot be read."""
        self._topic, self._writer, self._factor, self._now = topic, writer, factor, now
        self._entries: dict[EntryKey, Remembered] = {}
        self._created = False
        for key, value in reader.read_log(topic):
            self._take(key, value)

    def _take(self, key: bytes, value: bytes | None) -> None:
        try:
            entry, *rest = orjson.loads(key)
            place = (Entry(entry), tuple(rest))
            if value is None:
                self._entries.pop(place, None)
            else:
                record = SCHEMA.decode(value)
                self._entries[place] = Remembered(record["value"], record["since"])
        except (LockstepError, ValueError, TypeError) as error:
            log.warning("%s: a record with the key %r was left out: %s", self._topic, key, error)

    def get(self, entry: Entry, *key: str) -> str | None:
        """The value remembered, or None."""
        found = self._entries.get((entry, key))
        return found.value if found else None

    def put(self, entries: Mapping[EntryKey, str | None]) -> None:
        """Remembers values, forgets those that are None; returns when the target's replicas have it."""
        news = {place: value for place, value in entries.items() if self.get(place[0], *place[1]) != value}
        if not news:
            return
        if self._writer is None:
            raise LockstepError(f"{self._topic} was opened to look only")
        if not self._created:
            self._writer.create_log(self._topic, self._factor, CONFIGS)
            self._created = True
        since = self._now()
        self._writer.append_log(self._topic, [self._record(place, value, since) for place, value in news.items()])
        for place, value in news.items():
            if value is None:
                self._entries.pop(place, None)
            else:
                self._entries[place] = Remembered(value, since)

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

    def versions(self, kind: Kind) -> dict[Key, str]:
        """Which version of its secret was written last, by key."""
        found = ((key, value.value) for (entry, key), value in self._entries.items() if entry is Entry.VERSION)
        return {key[1:]: version for key, version in found if key[0] == kind.value}

    def paused(self) -> set[Kind]:
        """Kinds that `lockstep pause` stopped."""
        names = {key[0] for entry, key in self._entries if entry is Entry.PAUSED}
        return {kind for kind in Kind if kind.value in names}

    def record(self, outcomes: Iterable[Outcome]) -> None:
        """Takes over what was created, lets go of what was deleted. Topic configs are the source's: owned by none."""
        entries: dict[EntryKey, str | None] = {}
        for outcome in outcomes:
            change = outcome.change
            if outcome.error or outcome.already or change.kind is Kind.TOPIC_CONFIG:
                continue
            place = (change.kind.value, *change.key)
            if change.op is not Op.UPDATE:
                entries[Entry.OWNED, place] = "" if change.op is Op.CREATE else None
            if change.kind is Kind.SCRAM_USER:
                entries[Entry.VERSION, place] = change.after.version if isinstance(change.after, ScramSpec) else None
        self.put(entries)
