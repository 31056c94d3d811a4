"""A flow's memory in one compacted topic on its target: cluster ids, items that Lockstep created, paused kinds.

Lockstep never takes a ledger that existed once for an empty one. If it is gone, damaged, not compacted, not signed as
required, or written by a newer version, the flow stops (`LedgerUntrusted`) until an operator has checked it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from sinks.faults import LedgerUntrusted, RightsMissing, WrongCluster
from sinks.kafka.ports.cluster import UNKNOWN_OFFSET, Cluster, Placed, Reader, Record, TopicConfigs
from sinks.kafka.ports.permitted import permitted
from sinks.ledger import ownership
from sinks.ledger.failover_record import FailoverRecord
from sinks.ledger.fence_acls import is_fence_key
from sinks.ledger.lease_records import LeaseRecord
from sinks.ledger.ledger_entries import HISTORY_KEY, Contents, Entry, EntryKey, Remembered, entry_record
from sinks.ledger.seal import UNSIGNED, Seal
from sinks.model.changes import Change, Key, Kind, Outcome, compact_json
from sinks.model.times import boot_clock, milliseconds, utc_now
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

MAY_BE_UNSETTLED = (Entry.INTENT, Entry.OWNED)
"""Entries that count only for a while, until the target shows their items."""


class Ledger:
    """The ledger of one flow. The constructor reads it. `put` and the methods that call it write it if an entry
    changes."""

    def __init__(
        self,
        topic: str,
        reader: Reader,
        writer: Cluster | None,
        factor: int | None,
        now: Callable[[], datetime] = utc_now,
        seal: Seal = UNSIGNED,
        permit: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        """`writer`: None for a ledger that only reads. `permit`: called before each write; raises if the write is not
        allowed. `clock`: never jumps, as `now` may.

        Attributes: `exists`: the topic is on the target. `topic_id`: id of the topic that was read; "" before that, and
        on brokers without ids.

        Raises ClusterUnreachable, RightsMissing, LedgerUntrusted.
        """
        self.topic, self.topic_id, self._permit = topic, "", permit
        self._reader, self._writer, self._factor, self._now, self._seal = reader, writer, factor, now, seal
        self._contents = Contents()
        self.exists = False
        self._newest: Placed | None = None
        self._unread: dict[bytes, Placed] = {}
        self._void: set[EntryKey] = set()
        self._begun: set[EntryKey] = set()
        self._clock, self._known_since = clock, dict[EntryKey, float]()
        self.refresh()

    def refresh(self) -> None:
        """Read what any process wrote since the last reading. If it raises, the content stays as it was.

        Raises ClusterUnreachable, RightsMissing, LedgerUntrusted.
        """
        found = find_ledger(self.topic, self._reader)
        if found is None:
            if self.exists:
                raise gone(self.topic, self._reader.alias, "is gone, and was there before")
            return
        self.topic_id = same_id(self.topic, self._reader.alias, self.topic_id, found)
        self._take_in()
        self._note_unsettled()

    def check_same(self, topic_id: str) -> None:
        """Raises LedgerUntrusted if the topic's id is not `topic_id`."""
        same_id(self.topic, self._reader.alias, topic_id, self.topic_id)

    def catch_up(self) -> None:
        """Like `refresh`, in fewer requests: for a known topic it checks the id, not the configs."""
        if self.exists:
            self._take_in()
            found = self._reader.topic_ids([self.topic]).get(self.topic, "")
            self.topic_id = same_id(self.topic, self._reader.alias, self.topic_id, found)
        else:
            self.refresh()

    def _take_in(self) -> None:
        records = self._unread_records()
        if self._lost_own(records):
            raise self._lost_tail()
        try:
            self._contents.take([(key, value) for _, key, value in records], self._seal)
        except LedgerUntrusted as error:
            raise LedgerUntrusted(
                f"{self.topic} on the cluster {self._reader.alias} cannot be trusted, so nothing is written: {error}. "
                "docs/safety.md says what to do"
            ) from error
        self.exists = True
        self._unread.clear()
        if records:
            self._newest = records[-1]

    def _unread_records(self) -> list[Placed]:
        """Returns the records after the newest one that this process read. Raises LedgerUntrusted if the log lost that
        one."""
        known = self._newest
        records = self._reader.read_log_from(self.topic, known.position if known else 0).records
        if known is None:
            return records
        if records and records[0].position == known.position:
            if records[0] != known:
                raise self._lost_tail()
            return records[1:]
        # Compaction took the known record, or the log ends before it.
        read = self._reader.read_log_from(self.topic, self.read_to)
        if read.whole:
            raise gone(
                self.topic,
                self._reader.alias,
                "ends before an offset that this process has read: the topic was deleted and recreated",
            )
        return read.records

    def _lost_tail(self) -> LedgerUntrusted:
        return gone(self.topic, self._reader.alias, "lacks records that were written to it: it lost its tail")

    def _lost_own(self, records: Sequence[Placed]) -> bool:
        """Whether the log lacks a record that this process wrote since its last reading. `records`: all records since
        then.

        Only the newest record of each key counts, because compaction keeps it, unless it is a tombstone.
        """
        if not self._unread:
            return False
        there = {placed.position: placed for placed in records}
        newest = {placed.key: placed.position for placed in records}
        for own in self._unread.values():
            is_other = there.get(own.position, own) != own
            if is_other or (own.value is not None and newest.get(own.key, UNKNOWN_OFFSET - 1) < own.position):
                return True
        last = max(own.position for own in self._unread.values())
        if last in there or last == UNKNOWN_OFFSET:
            return False
        # Where compaction took a tombstone, the log still ends behind it.
        return self._reader.read_log_from(self.topic, last + 1).whole

    def get(self, entry: Entry, *key: str) -> str | None:
        found = self._contents.entries.get((entry, key))
        return found.value if found else None

    def put(self, entries: Mapping[EntryKey, str | None]) -> None:
        """Write entries; a value of None deletes one. Returns once all in-sync replicas have them."""
        differing = {entry: value for entry, value in entries.items() if self.get(entry[0], *entry[1]) != value}
        if not differing:
            return
        since = self._now()
        self._append([entry_record(entry, value, since) for entry, value in differing.items()])
        for entry, value in differing.items():
            if value is None:
                self._contents.entries.pop(entry, None)
                self._known_since.pop(entry, None)
            else:
                self._contents.entries[entry] = Remembered(value, since)
                if entry[0] in MAY_BE_UNSETTLED:
                    self._known_since[entry] = self._clock()

    def _append(self, records: Sequence[Record]) -> None:
        self._permit()
        writer = self.create()
        now, known = milliseconds(self._now()), self._contents.signed_at
        # A late clock must not date a record before the one that it replaces.
        signed = [(key, self._seal.wrap(key, data, max(now, known.get(key, 0)))) for key, data in records]
        offsets = permitted(writer, self._permit).append_log(self.topic, signed)
        self._unread |= {key: Placed(offset, key, value) for offset, (key, value) in zip(offsets, signed, strict=True)}

    def create(self) -> Cluster:
        """Create the topic if it is missing. Returns the cluster to write to. Raises LockstepError if this ledger only
        reads."""
        if self._writer is None:
            raise LockstepError(f"{self.topic} was opened to read only")
        if not self.exists:
            self._writer.create_log(self.topic, self._factor, LEDGER_TOPIC_CONFIGS)
            self.exists = True
        return self._writer

    @property
    def read_to(self) -> int:
        """Returns the offset after the last record that was read."""
        return self._newest.position + 1 if self._newest else 0

    def newest_lease(self, flow: str) -> bytes | None:
        """Returns the newest lease record of this flow, with its signature; None if there is none."""
        return self._contents.leases.get(flow)

    def newest_led(self, flow: str) -> LeaseRecord | None:
        """Returns the newest lease record of the highest term; see `Contents.led`."""
        return self._contents.led.get(flow)

    def histories(self) -> Mapping[TopicPartition, bytes]:
        """Returns the offset histories by partition on the source, as bytes."""
        return self._contents.histories

    def put_histories(self, histories: Mapping[TopicPartition, bytes | None]) -> None:
        """Write histories; None deletes one. Raises ClusterUnreachable."""
        if histories:
            keys = {where: compact_json([HISTORY_KEY, where.topic, where.partition]) for where in histories}
            self._append([(keys[where], data) for where, data in histories.items()])

    def check_cluster_id(self, alias: str, cluster_id: str) -> EntryKey | None:
        """Returns the entry to put at first contact, else None. Raises WrongCluster if the id is not the pinned one."""
        pinned = self.get(Entry.CLUSTER_ID, alias)
        if pinned is None:
            return Entry.CLUSTER_ID, (alias,)
        if pinned != cluster_id:
            raise WrongCluster(
                f"{alias}.bootstrap.servers leads to the cluster {cluster_id}, but at first contact it led to "
                f"{pinned}: nothing is written. If the cluster {alias} was replaced on purpose, stop the job, delete "
                f"the topic {self.topic} on the target, run `lockstep ledger reset`, and start the job"
            )
        return None

    def values(self, entry: Entry) -> dict[Key, str]:
        """Returns all values of one kind of entry, by key."""
        return {key: found.value for key, found in self._contents.entries.of(entry).items()}

    def versions(self, kind: Kind) -> dict[Key, str]:
        return {key: found.value for key, found in self._contents.entries.of(Entry.VERSION, kind.value).items()}

    def paused(self) -> set[Kind]:
        """Returns the kinds that `lockstep pause` stopped."""
        names = {key[0] for key in self.values(Entry.PAUSED)}
        return {kind for kind in Kind if kind.value in names}

    def failover(self) -> FailoverRecord:
        """Returns the state of the flow's failover. Raises LedgerUntrusted for a damaged entry."""
        try:
            return FailoverRecord.from_text(self.get(Entry.FAILOVER, "state"))
        except LockstepError as error:
            raise LedgerUntrusted(str(error)) from error

    def fences(self) -> set[Key]:
        """Returns the keys of the ACLs on the source with which a failover denies writes. Leaves out keys of another
        form."""
        return set(filter(is_fence_key, self.values(Entry.FENCE)))

    def owned(self, kind: Kind) -> set[Key]:
        """Returns the keys of this kind that the flow owns: Lockstep created or adopted them."""
        return set(self._contents.entries.of(Entry.OWNED, kind.value))

    def owned_ids(self, kind: Kind) -> dict[str, str]:
        """Returns the id of each item that the flow owns, by name, for a kind with ids (`data`). "" if the id is
        unknown; Lockstep does not delete such an item."""
        ours = self._contents.entries.of(Entry.OWNED, kind.value)
        return {key[0]: "" if found.value == ownership.UNLEARNED else found.value for key, found in ours.items()}

    def owned_within(self, kind: Kind, seconds: float) -> dict[Key, float]:
        """Returns the items that Lockstep has owned for at most `seconds`, with their age in seconds; 0 if a clock was
        set back."""
        now, ours = self._now(), self._contents.entries.of(Entry.OWNED, kind.value)
        ages = {key: max(0.0, (now - found.since).total_seconds()) for key, found in ours.items()}
        return {key: age for key, age in ages.items() if age < seconds}

    def intend(self, changes: Iterable[Change]) -> None:
        """Write an intent for each creation, before the changes are applied.

        If it raises, no creation may begin. `recognize` later deletes the intents that were written all the same.
        """
        entries = ownership.intents(changes)
        # An intent that is there already may belong to a request that was sent. It stays in any case.
        self._begun = {entry for entry in entries if entry in self._void or self.get(entry[0], *entry[1]) is None}
        self._void |= self._begun
        self.put(entries)
        self._void -= entries.keys()

    def record(
        self, outcomes: Iterable[Outcome], ids: Mapping[str, str] | None = None, never_sent: Iterable[Change] = ()
    ) -> None:
        """Note created items as owned, and forget deleted ones. `ids`: of created topics, by name. `never_sent`:
        creations that were not sent; deletes their intents."""
        withdrawn = ownership.intents(never_sent).keys() & self._begun
        self.put(ownership.recorded(outcomes, ids or {}, self._begun) | dict.fromkeys(withdrawn))

    def unsettled(self, kind: Kind) -> set[Key]:
        """Returns the keys that Lockstep may or may not own, or that may name another object by now."""
        begun = set(self._contents.entries.of(Entry.INTENT, kind.value))
        if kind.row.data:
            ours = self._contents.entries.of(Entry.OWNED, kind.value)
            begun |= {key for key, found in ours.items() if found.value in ownership.NO_ID}
        return begun

    def settle(self, kind: Kind, present: Mapping[Key, str]) -> None:
        """Decide on intents without an outcome, and learn topics' ids. The caller has listed the target completely.

        `present`: unsettled keys that exist, each with its topic's id, or "".
        """
        if waiting := self.unsettled(kind):
            self.put(ownership.settled(self._contents, kind, waiting, present, self._is_fresh))

    def _is_fresh(self, entry: EntryKey) -> bool:
        """Whether an entry is fresh by its own time, and by the time for which this process has known it. The wall
        clock may jump back, so the second check is needed."""
        now, known_since = self._clock(), self._known_since.get(entry)
        known_for = 0.0 if known_since is None else now - known_since
        fresh = ownership.is_fresh(self._contents.entries[entry].since, self._now())
        return fresh and known_for <= ownership.FRESH.total_seconds()

    def _note_unsettled(self) -> None:
        """Note when this process first saw each unsettled entry of another process."""
        now, there = self._clock(), self._contents.entries
        self._known_since = {entry: since for entry, since in self._known_since.items() if entry in there}
        for kind in Kind:
            for key in self.unsettled(kind):
                item = (kind.value, *key)
                for entry in MAY_BE_UNSETTLED:
                    if (entry, item) in there:
                        self._known_since.setdefault((entry, item), now)

    def recognize(self, kind: Kind, present: Mapping[Key, str]) -> None:
        """Settle intents, and forget items that the flow no longer owns. `present`: all items on the target, with their
        topics' ids.

        A listing that lacks a topic may only lag. A topic with another id was recreated. An item of another kind that
        is missing was deleted by another client.
        """
        self.put(dict.fromkeys(self._void))
        if unsettled := self.unsettled(kind):
            self.settle(kind, {key: present[key] for key in unsettled & present.keys()})
        ours = self._contents.entries.of(Entry.OWNED, kind.value)
        if kind.row.data:
            ids = {key: one.value for key, one in ours.items() if one.value not in ownership.NO_ID}
            lost = {key for key, found in ids.items() if present.get(key, found) not in ("", found)}
        else:
            lost = ours.keys() - present.keys()
        if lost:
            self.disown(kind, lost)

    def disown(self, kind: Kind, keys: Collection[Key]) -> None:
        """Forget that the flow owned these items. They are gone, or other objects have their names."""
        entries = (Entry.OWNED, Entry.INTENT, *((Entry.VERSION,) if kind.row.versioned else ()))
        self.put({(entry, (kind.value, *key)): None for key in keys for entry in entries})


# The ledger's topic itself: is it there, and can it keep what is written to it?


LEDGER_TOPIC_CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    # The newest segment is never compacted, and who leads writes every few seconds.
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.1",
}
TOPIC_GONE = frozenset({"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PARTITION"})


def find_ledger(topic: str, reader: Reader) -> str | None:
    """Returns the topic's id (KIP-516), "" if brokers have no ids. Returns None if it does not exist: a listing and a
    broker, asked several times, must both say so.

    Raises LedgerUntrusted for a topic that loses records or has several partitions, RightsMissing, ClusterUnreachable.
    """
    seen = reader.describe_topic_configs([topic])
    fault = seen.errors.get(topic)
    found = reader.find_topic(topic)
    listed = reader.list_topics() if fault is not None and found is None else {}
    partitions = found.partitions if found is not None else listed.get(topic)
    if partitions is None and fault is not None and fault.code in TOPIC_GONE and reader.confirmed_absent([topic]):
        return None
    if fault is not None and fault.code not in TOPIC_GONE:
        said = fault.needing("DESCRIBE_CONFIGS", "TOPIC", topic)
        grants = "; `lockstep rights` prints what grants it" if fault.is_denied else ""
        raise RightsMissing(f"cluster {reader.alias}: the configs of {topic} cannot be read ({said}){grants}")
    if partitions is not None and partitions > 1:
        raise LedgerUntrusted(
            f"{topic} on the cluster {reader.alias} has {partitions} partitions, and Lockstep makes it with one: it "
            "was made by something else, perhaps by a producer (auto.create.topics.enable). Nothing is written. Delete "
            "it if it holds nothing that you need"
        )
    if fault is None:
        _check_compacted(topic, reader.alias, seen.items[topic])
    return found.id if found is not None else ""


def _check_compacted(topic: str, alias: str, configs: TopicConfigs) -> None:
    entry = configs.get("cleanup.policy")
    policy = "" if entry is None else entry.value or ""
    if [part.strip() for part in policy.split(",")] != ["compact"]:
        raise LedgerUntrusted(
            f"{topic} on the cluster {alias} has cleanup.policy={policy}, under which it forgets what is paused and "
            "what Lockstep created. Nothing is written. If records may be gone already, delete the topic and begin "
            "anew; if not, set cleanup.policy=compact on it"
        )


def gone(topic: str, alias: str, what: str) -> LedgerUntrusted:
    """Returns the error for a ledger that was replaced or lost records. `what`: what happened to it."""
    return LedgerUntrusted(
        f"{topic} on the cluster {alias} {what}. Nothing is written, because Lockstep no longer knows what was paused "
        "and what it created. If that is on purpose, stop the job, run `lockstep ledger reset`, pause again what must "
        "stay paused, and start the job"
    )


def same_id(topic: str, alias: str, known: str, found: str) -> str:
    """Returns the id `found`. Raises LedgerUntrusted if it differs from `known`: the topic was recreated."""
    if known and found and found != known:
        raise gone(topic, alias, "was deleted and recreated: it has another topic id than before")
    return found or known
