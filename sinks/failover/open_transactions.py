"""Finds open transactions on a fenced source, names them, waits for them and, on request, ends them.

A fence denies Produce, but not EndTxn. If a transaction commits after the takeover, only the source has its records. So
a partition counts as drained only once its last stable offset has reached its end. Brokers always report both
(ListOffsets). From 2.8 on they name the producers of open transactions to clients with READ on the topic (KIP-664).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from sinks.failover.scene import Scene, WaitLines
from sinks.faults import ItemFault
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kafka.ports.transactions import (
    ENDING,
    ActiveProducer,
    CoordinatedTransaction,
    CoordinatorsView,
    Transactions,
)
from sinks.model.times import milliseconds, utc_text
from streaming.errors import LockstepError
from streaming.message_words import first_names, number_of
from streaming.mm2.records import TopicPartition

WRITERS_AT_ONCE = 5
"""Most partitions for which one message names the last writer."""

NAMED_AT_ONCE = 20
"""Most partitions for which one message names transactions. Lockstep awaits and ends those in others as well."""

DECIDED_POLL_INTERVAL = 0.5
"""Seconds between two looks at open transactions."""


class NotDrained(LockstepError):
    """After the time limit, the target lacks records, more may come to the source, or they could not be counted."""

    code = "NOT_DRAINED"
    remedy = (
        "see that the copier runs, and type the same command again; `--accept TOPIC` goes on without a topic, "
        "`--abort-transactions` ends open transactions, `lockstep unfence` goes back"
    )


@dataclass(frozen=True, slots=True)
class Undecided:
    """Partitions that have an open transaction, or may have one."""

    open: frozenset[TopicPartition] = frozenset()
    """Partitions whose last stable offset lies before their end."""
    unknown: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Why the last stable offset of a partition is unknown."""
    endless: Mapping[TopicPartition, ItemFault] = field(default_factory=dict)
    """Why the end of a partition is unknown."""

    def __bool__(self) -> bool:
        return bool(self.open or self.unknown or self.endless)

    def __contains__(self, where: TopicPartition) -> bool:
        return where in self.open or where in self.unknown or where in self.endless


def undecided(committed: RecordReader, ends: Mapping[TopicPartition, int]) -> Undecided:
    """Returns partitions that have, or may have, an open transaction before `ends`, their high watermarks.

    `committed` reads committed records only.
    """
    seen = committed.readable(list(ends))
    untold = {where: str(seen.errors.get(where, "no answer")) for where in ends.keys() - seen.items.keys()}
    return Undecided(frozenset(where for where, log in seen.items.items() if log.end < ends[where]), untold)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction in one partition. `known`: what its coordinator says; None if none knows it. `hidden`: why
    coordinators may know it all the same."""

    where: TopicPartition
    producer: ActiveProducer
    known: CoordinatedTransaction | None
    hidden: str = ""

    @property
    def is_ending(self) -> bool:
        """Whether its coordinator has decided to commit or abort, so that the markers follow."""
        return self.known is not None and self.known.state in ENDING

    @property
    def hangs(self) -> bool:
        """Whether it hangs: no coordinator will ever end it in this partition."""
        if self.known is None:
            return not self.hidden
        return not self.is_ending and self.where not in self.known.partitions

    def describe(self, now_ms: int) -> str:
        """Returns which producer left it open, since when, and where."""
        one, known = self.producer, self.known
        place = f"in {self.where} from offset {one.began}"
        last = f"its last record is {_age(now_ms, one.last_ms)} old by its timestamp"
        if known is None:
            why = (
                f"its transactional id is unknown: {self.hidden}"
                if self.hidden
                else "no coordinator knows it: it hangs"
            )
            return f"producer id {one.producer} ({why}; {last}) {place}"
        if self.hangs:
            why = f"it hangs: its coordinator says {known.state}"
            return f"{known.transactional_id} (producer id {one.producer}, {why}; {last}) {place}"
        age = f" for {_age(now_ms, known.started_ms)}" if known.started_ms is not None else ""
        return f"{known.transactional_id} (producer id {one.producer}, {known.state}{age}) {place}"


def _age(now_ms: int, at_ms: int) -> str:
    return f"{max(0, now_ms - at_ms) / 1000:.0f} s"


@dataclass(frozen=True)
class OpenSeen:
    """Open transactions. `problems`: partitions whose transactions cannot be named, each with the reason, in words."""

    found: Sequence[OpenTransaction] = ()
    problems: Sequence[str] = ()

    def describe(self, now_ms: int) -> str:
        return first_names([*(one.describe(now_ms) for one in self.found), *self.problems], 5)


def name_open(transactions: Transactions, partitions: Collection[TopicPartition]) -> OpenSeen:
    """Returns the open transactions in these partitions. An error of the cluster becomes a problem."""
    try:
        seen = transactions.producers(partitions)
    except LockstepError as error:
        return OpenSeen(problems=[f"{where} (who wrote is unknown: {error})" for where in sorted(partitions)])
    producers = {one.producer for found in seen.items.values() for one in found if one.began is not None}
    view = _coordinated(transactions, producers)
    found = [
        OpenTransaction(where, one, view.items.get(one.producer), view.hidden)
        for where, active in sorted(seen.items.items())
        for one in active
        if one.began is not None
    ]
    return OpenSeen(found, [f"{where} (who wrote is unknown: {fault})" for where, fault in sorted(seen.errors.items())])


def _coordinated(transactions: Transactions, producers: Collection[int]) -> CoordinatorsView:
    try:
        return transactions.coordinated(producers) if producers else CoordinatorsView()
    except LockstepError as error:
        return CoordinatorsView(hidden=str(error))


def end_transactions(transactions: Transactions, seen: OpenSeen) -> list[str]:
    """Aborts the transactions that may be aborted, and returns a line with the outcome of each.

    If a coordinator knows a transaction, Lockstep lets it abort the transaction and fence its producer. With a marker
    alone, the producer's commit could succeed without its records. So only hanging transactions get a marker.
    """
    names = {one.known.transactional_id for one in seen.found if one.known and not one.is_ending and not one.hangs}
    lines = []
    for name, fault in transactions.fence_producers(sorted(names)).items():
        became = f"was not aborted: {fault}. Grant WRITE on TRANSACTIONAL_ID {name}" if fault else "is aborted"
        lines.append(f"the transaction of {name} {became}")
    for one in seen.found:
        what = f"the transaction of producer id {one.producer.producer} in {one.where}"
        if one.hangs:
            fault = transactions.abort(one.where, one.producer)
            became = f"was not aborted: {fault}. Grant ALTER on CLUSTER" if fault else "is aborted"
            lines.append(f"{what}, which hung, {became}")
        elif one.known is None:
            lines.append(f"{what} was not aborted, because its producer might not learn of it: {one.hidden}")
    return lines + [f"not aborted: {problem}" for problem in seen.problems]


def check_decided(scene: Scene, partitions: Collection[TopicPartition]) -> None:
    """Raises NotDrained if a transaction is open in these partitions. Waits only if it may abort transactions."""
    within = scene.choices.drain_within if scene.choices.abort_transactions else 0.0
    await_decided(scene, partitions, WaitLines(scene.say, scene.waiting.clock, within))


def await_decided(scene: Scene, partitions: Collection[TopicPartition], lines: WaitLines) -> None:
    """Waits until the transactions that are open now in these partitions of the source have ended.

    Aborts them once if the operator asked for it. `lines`: the wait that this is part of. When its time is over, raises
    NotDrained with the names of the open transactions.
    """
    asked: frozenset[TopicPartition] = frozenset()
    ends: dict[TopicPartition, int] = {}
    endless: Collection[TopicPartition] = partitions
    with (
        closing(scene.source.records("read_uncommitted")) as records,
        closing(scene.source.records("read_committed")) as committed,
    ):
        while left := _left(records, committed, ends, endless):
            new = left.open - asked
            if scene.choices.abort_transactions and new:
                asked |= new
                end_open(scene, new)
            elif lines.is_over:
                waited = f"after {lines.within:g} s " if lines.within else ""
                still = f"{waited}{_left_open(scene, left)}. {_what_to_do(scene, left)}"
                raise NotDrained(f"{still}. Then run the command again")
            elif lines.is_due:
                lines.go_on(f"{scene.settings.flow.source}, since {_left_open(scene, left)}")
            ends, endless = {where: ends[where] for where in (*left.open, *left.unknown)}, list(left.endless)
            scene.waiting.sleep(DECIDED_POLL_INTERVAL)


def _left(
    records: RecordReader,
    committed: RecordReader,
    ends: dict[TopicPartition, int],
    endless: Collection[TopicPartition],
) -> Undecided:
    """Returns partitions with open transactions before `ends`. Reads the ends of `endless` first, and adds them."""
    seen = records.latest(endless)
    ends |= seen.items
    return replace(undecided(committed, ends), endless=seen.errors)


def tell_open(scene: Scene, partitions: Collection[TopicPartition]) -> None:
    """Tells the operator which transactions are open in these fenced partitions, or aborts them if asked to."""
    with (
        closing(scene.source.records("read_uncommitted")) as records,
        closing(scene.source.records("read_committed")) as committed,
    ):
        left = _left(records, committed, {}, partitions)
    if left.open and scene.choices.abort_transactions:
        end_open(scene, left.open)
        left = replace(left, open=frozenset())
    if left:
        scene.say(f"{_left_open(scene, left)}. `cutover` waits for that. {_what_to_do(scene, left)}")


def end_open(scene: Scene, partitions: Collection[TopicPartition]) -> None:
    """Aborts the open transactions in these partitions, and tells the operator the outcome of each."""
    try:
        transactions = scene.source.transactions
        for line in end_transactions(transactions, name_open(transactions, partitions)):
            scene.say(line)
    except LockstepError as error:
        scene.say(f"open transactions on {scene.settings.flow.source} were not aborted: {error}")


def last_writers(scene: Scene, partitions: Collection[TopicPartition]) -> str:
    """Returns in a sentence which producer wrote last to these partitions of the source, and when.

    Leaders know only producers with an id. The time is the timestamp of the last record, which the producer sets.
    """
    try:
        some = sorted(partitions)[:WRITERS_AT_ONCE]
        seen = scene.source.transactions.producers(some)
        last = {where: max(found, key=lambda one: one.last_ms) for where, found in seen.items.items() if found}
        view = _coordinated(scene.source.transactions, {one.producer for one in last.values()})
    except LockstepError as error:
        return f"Who wrote is unknown: {error}. "
    said = [_writer(where, last.get(where), seen.errors.get(where), view) for where in some]
    return f"Last wrote to {'; '.join(said)}. "


def _writer(where: TopicPartition, one: ActiveProducer | None, fault: ItemFault | None, view: CoordinatorsView) -> str:
    if fault is not None:
        return f"{where}: unknown ({fault})"
    if one is None:
        return f"{where}: a producer without an id, which brokers do not know"
    known = view.items.get(one.producer)
    name = f", transactional id {known.transactional_id}," if known else ""
    last = datetime.fromtimestamp(one.last_ms / 1000, timezone.utc)
    return f"{where}: producer id {one.producer}{name} at {utc_text(last)}"


def _left_open(scene: Scene, left: Undecided) -> str:
    """Returns in words which transactions are open, in which partition and by which producer."""
    said = []
    if left.open:
        some = sorted(left.open)[:NAMED_AT_ONCE]
        seen = name_open(scene.source.transactions, some)
        named = seen.describe(milliseconds(scene.journal.now())) or first_names([str(where) for where in some])
        said.append(f"{number_of(len(left.open), 'partition has', 'partitions have')} an open transaction: {named}")
    if left.unknown:
        untold = [f"{where} ({why})" for where, why in sorted(left.unknown.items())]
        said.append(f"the last stable offset of {first_names(untold, 5)} cannot be read")
    if left.endless:
        unread = [f"{where} ({fault})" for where, fault in sorted(left.endless.items())]
        said.append(f"the end of {first_names(unread, 5)} cannot be read")
    return "; ".join(said)


def _what_to_do(scene: Scene, left: Undecided) -> str:
    if not left.open:
        return "See that brokers lead these partitions and answer"
    copied = (
        "MM2 reads only committed records, so it copies these once their transactions commit"
        if scene.settings.isolation == "read_committed"
        else "MM2 reads uncommitted records, so the target keeps these even if their transactions abort"
    )
    return f"{copied}. Let their producers commit or abort, or say --abort-transactions"
