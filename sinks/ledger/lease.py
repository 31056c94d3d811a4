"""Leadership of a flow as a lease in its ledger. A process claims it by compare-and-set, and renews it while it leads.

`LeaseLog` has the rules. They rest on this:

- A write begins only while the lease lasts longer than a request may take (`reserve`). The lease counts from the moment
  when this process began to write the last renewal that it read back. So the evidence is never older than EVIDENCE.
- Other processes claim only after a whole lease without a record. By then such a request was answered or timed out.
- The clock counts the time in which the machine sleeps. A process that was stopped finds its lease expired.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from sinks.faults import ClusterUnreachable, NotLeading
from sinks.kafka.ports.cluster import Cluster, Record, Tail
from sinks.ledger.lease_records import Act, LeaseRecord, ReadRecord, decoded, encoded, lease_key
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import FAILOVER_STATE, entry_key_bytes
from sinks.ledger.seal import Seal
from sinks.model.times import boot_clock, milliseconds, utc_now, utc_text
from streaming.errors import LockstepError

EVIDENCE = 10.0
"""A write begins only within this many seconds after the last confirmed renewal."""

SILENT_AFTER = 8.0
"""Seconds without an answer to a renewal after which the target counts as silent. A renewal is due every three
seconds."""


class Identity(NamedTuple):
    """The names of this process in its lease records."""

    client: str
    host: str


@dataclass(frozen=True, slots=True)
class Leader:
    """The process that leads a flow. `since`: UTC. `age`: seconds since this process began its last confirmed renewal;
    None for another process."""

    client: str
    host: str
    since: datetime
    age: float | None = field(default=None, compare=False)

    @property
    def here(self) -> bool:
        """Whether this process leads the flow for certain now."""
        return self.age is not None and self.age < EVIDENCE

    def silence_of(self, target: str) -> str | None:
        """Returns a message if the target has not answered this process for SILENT_AFTER seconds, long before a request
        times out."""
        if self.age is None or self.age < SILENT_AFTER:
            return None
        return f"{target} has not answered for {self.age:.0f} s: is it up, and can it be reached?"

    def __str__(self) -> str:
        return f"{self.client} on {self.host} (since {utc_text(self.since)})"

    def as_json(self) -> dict[str, Any]:
        """Returns `leader` of a flow in `status`."""
        return {
            "client": self.client,
            "host": self.host,
            "since": utc_text(self.since),
            "here": self.here,
        }


class Unled:
    """A leadership that always holds, for commands that only read and for tests without a lease. It checks no write."""

    leader: Leader | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        yield

    def leads(self) -> bool:
        return True

    def claim(self, ledger: Ledger) -> None:
        pass

    def check(self) -> None:
        pass

    def prove(self) -> None:
        pass

    def close(self) -> None:
        pass


MARGIN = 1.0
"""Seconds after the end of a lease before other processes claim, because clocks drift apart."""

RESERVED_SECONDS = 10.0
"""Seconds for which only the named successor may claim, in case it never does."""


@dataclass(frozen=True)
class LeaseLog:
    """Tells who leads, from the records that one process, `me`, has read so far. Pure: callers pass times, in seconds
    of this process's clock.

    The ledger has one partition, so that all processes read these records in one order.

    | record               | counts                                          | then                                   |
    |----------------------|-------------------------------------------------|----------------------------------------|
    | CLAIM                | if `after` names the record right before it,    | its holder leads, the old one no more  |
    |                      | and its term is above the highest               |                                        |
    | RENEWAL              | if its term is not below the highest            | its holder leads on                    |
    | RELEASE              | if its term is not below the highest            | no process leads                       |
    | REQUEST              | always                                          | the leader hands over                  |
    | without a trusted    | never, but a claim after it must name it        | as if the leader had written           |
    | signature            |                                                 |                                        |

    A claim is thus compare-and-set: if two processes claim after the same record, only the first claim counts. A
    process claims if no process leads, or if the leader's last record is older than its whole lease.
    """

    me: str
    seconds: float
    """Length of this process's own lease."""
    last: str | None = None
    """Name of the newest record."""
    read_at: float | None = None
    """When this process last read a record of a process that may lead; None: never."""
    term: int = 0
    leader: LeaseRecord | None = None
    """The leader's newest record, or its RELEASE."""
    live: bool = False
    """This process read that record since it follows the log."""
    mine: int | None = None
    """The term in which this process leads."""
    confirmed: float | None = None
    """When this process began to write its newest record that it read back while it leads."""
    wanted_by: str | None = None
    """The holder that asks for the leadership."""

    def begun(self, found: ReadRecord, now: float, led: LeaseRecord | None = None) -> LeaseLog:
        """Returns the log with the newest record that exists already. Its writer may have died since.

        `led`: the newest record of the highest term. Its holder counts as leading if `found` is a request, or a record
        of a lower term that another client may have written again.
        """
        record, highest = found.record, led.term if led else 0
        if record is not None and record.act is not Act.REQUEST and record.term >= highest:
            known: LeaseRecord | None = record
        else:
            known = None if led is not None and led.act is Act.RELEASE else led
        term = max(highest, record.term if record else 0)
        return replace(self, last=found.name, read_at=now if found.name else None, term=term, leader=known)

    def taken(self, found: ReadRecord, now: float, sent_at: float | None = None) -> LeaseLog:
        """Returns the log with one more record. `sent_at`: when this process began to write it; None if another process
        wrote it."""
        before, record = self.last, found.record
        after = replace(self, last=found.name)
        if record is None:
            return replace(after, read_at=now)
        if record.act is Act.REQUEST:
            return after if record.holder == self.me else replace(after, wanted_by=record.holder)
        if record.act is Act.CLAIM:
            return after._claimed(record, record.after == before and record.term > self.term, now, sent_at)
        if record.term < self.term:
            # Of one that does not know yet that it lost: it may be about to write, too.
            return replace(after, read_at=now)
        if record.act is Act.RELEASE:
            return replace(after._led_by(record, now), mine=None, wanted_by=None)
        if record.holder != self.me:
            return replace(after._led_by(record, now), mine=None)
        confirmed = max(self.confirmed or 0.0, sent_at or 0.0) or None
        return replace(after._led_by(record, now), confirmed=confirmed)

    def _claimed(self, record: LeaseRecord, counts: bool, now: float, sent_at: float | None) -> LeaseLog:
        if not counts:
            return replace(self, read_at=now, term=max(self.term, record.term))
        mine, confirmed = (record.term, sent_at) if record.holder == self.me else (None, None)
        return replace(self._led_by(record, now), mine=mine, confirmed=confirmed, wanted_by=None)

    def _led_by(self, record: LeaseRecord, now: float) -> LeaseLog:
        return replace(self, leader=record, term=max(self.term, record.term), read_at=now, live=True)

    def given_up(self) -> LeaseLog:
        return replace(self, mine=None, wanted_by=None)

    def claimable(self, now: float) -> bool:
        if self.mine is not None:
            return False
        if self.read_at is None:
            return True
        silent = now - self.read_at
        if self.leader is not None and self.leader.act is Act.RELEASE:
            return self.leader.to in (None, self.me) or silent >= RESERVED_SECONDS
        return silent >= max(self.seconds, self.leader.seconds if self.leader else 0.0) + MARGIN

    def lasts(self, now: float) -> float:
        """Returns the seconds for which no other process can claim; 0 if this process does not lead."""
        if self.mine is None or self.confirmed is None:
            return 0.0
        return max(0.0, self.confirmed + self.seconds - now)


# The thread that renews leases.


TEND_EVERY = 0.5
"""Seconds between two reads. A request to hand over is noticed within this time."""

Background = Callable[[Callable[[], None]], Callable[[], None]]
"""Calls a function repeatedly. Returns a function that stops that."""


def in_a_thread(tend: Callable[[], None]) -> Callable[[], None]:
    """Call `tend` every TEND_EVERY in a daemon thread, so that a silent target does not keep the process alive."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(TEND_EVERY):
            try:
                tend()
            except LockstepError as error:
                log.debug("the lease could not be renewed: %s", error)
            except Exception:
                # Without its thread the lease would expire for good.
                log.exception("the lease could not be renewed: a defect of Lockstep's, please report it")

    threading.Thread(target=run, name="lease", daemon=True).start()
    return ended.set


log = logging.getLogger(__name__)

RENEW_AFTER = 3.0
"""Seconds between renewals. Two in a row may fail."""

LEASE_READ_WITHIN = 10.0
"""Seconds within which this process must read its own record back."""

ASK_AGAIN = 5.0
"""Seconds between requests to hand over."""

TELL_AFTER = 2.0
"""Seconds of waiting for the lead after which a command says so. A job hands over within a pass, mostly sooner."""

LEASE_POLL_INTERVAL = 0.02
"""Seconds between two reads for an expected record."""


class Lease:
    """Leadership of one flow, in one process. One pass at a time uses it. Another thread calls `tend`."""

    def __init__(
        self,
        flow: str,
        cluster: Callable[[], Cluster],
        seal: Seal,
        identity: Identity,
        reserve: float,
        *,
        patience: float = 0.0,
        clock: Callable[[], float] = boot_clock,
        pause: Callable[[float], object] = time.sleep,
        background: Background = in_a_thread,
        wake: Callable[[], None] = lambda: None,
        on_failover: Callable[[], object] = lambda: None,
    ) -> None:
        """`cluster`: opens a client of the target for the lease alone. `reserve`: longest time of a request to the
        target, in seconds. `patience`: seconds for which a claim asks the leader to hand over, and waits; 0: neither.
        `wake`: called by `tend` while this process may claim. `on_failover`: called by `tend` once a command has
        written the state of a failover."""
        self._flow, self._open, self._seal, self._identity = flow, cluster, seal, identity
        self._reserve, self._patience = reserve, patience
        self._clock, self._pause, self._background = clock, pause, background
        self._wake, self._on_failover = wake, on_failover
        self._log = LeaseLog(uuid.uuid4().hex, reserve + EVIDENCE)
        self._io, self._state = threading.RLock(), threading.Lock()
        self._channel: tuple[str, Cluster, Tail] | None = None
        """The ledger's topic, and its own client and tail of it, once this process listens."""
        self._numbers, self._sent = itertools.count(), dict[int, float]()
        self._failover_moved = False
        self._failover: tuple[int, bytes | None] = (0, b"")
        """When the newest step of a failover that this process read was signed (ms), and its value."""
        self._term: int | None = None
        self._held, self._renewed_at, self._since = 0, float("-inf"), utc_now()
        self._end_background: Callable[[], None] = lambda: None

    @property
    def leader(self) -> Leader | None:
        """The process that leads, as far as this process has read the log."""
        state = self._log
        if state.leader is None or state.leader.act is Act.RELEASE:
            return None
        age = EVIDENCE - self._spare(state) if state.mine is not None else None
        return Leader(state.leader.client, state.leader.host, state.leader.since, age)

    def _spare(self, state: LeaseLog) -> float:
        return state.lasts(self._clock()) - self._reserve

    @contextmanager
    def hold(self) -> Iterator[None]:
        """A context in which this process does not hand over the leadership."""
        with self._state:
            self._held += 1
        try:
            yield
        finally:
            with self._state:
                self._held -= 1

    def leads(self) -> bool:
        """Whether this process leads. Returns False if it knows of no leader, so that it may claim. Raises NotLeading
        if another process leads."""
        if self._log.mine is None and self._channel is not None:
            with self._reading():
                self._drain()
        state = self._log
        if state.mine is None and not state.claimable(self._clock()):
            raise self._not_leading()
        return state.mine is not None and state.mine == self._term

    def _not_leading(self) -> NotLeading:
        leader, live = self.leader, self._log.live
        if leader is None:
            return NotLeading(f"{self._flow}: another process is about to lead; this one stands by", live)
        if live:
            return NotLeading(f"{leader} leads {self._flow}; this process stands by, and writes nothing", live)
        return NotLeading(
            f"{leader} led {self._flow} and was not heard from yet. This process writes nothing until that leader "
            f"writes to the ledger, or until {self._log.seconds:g} s have passed"
        )

    def claim(self, ledger: Ledger) -> None:
        """Begin to lead. What this process read of the ledger before may be out of date now. Raises ClusterUnreachable,
        and NotLeading once `patience` is over."""
        with self._reading():
            self._listen(ledger)
            ask_at = self._clock()
            give_up, tell_at = ask_at + self._patience, ask_at + TELL_AFTER
            while not self._try_claim():
                if self._clock() >= give_up:
                    raise self._not_leading()
                if self._clock() >= tell_at:
                    self._tell_wait()
                    tell_at = give_up
                if self._clock() >= ask_at and self._log.leader is not None:
                    self._write(Act.REQUEST, self._log.term)
                    ask_at = self._clock() + ASK_AGAIN
                self._pause(LEASE_POLL_INTERVAL)
            self._term = self._log.mine
        log.info("%s: leads, as %s on %s", self._flow, *self._identity)

    def _tell_wait(self) -> None:
        """Logs for whom a claim waits. A warning: commands print those to stderr."""
        if self._log.live:
            log.warning("%s leads %s; waiting until it hands over", self.leader or "another process", self._flow)
        else:
            waits = "waiting until its lease ends"
            log.warning("%s led %s and was not heard from; %s", self.leader or "another process", self._flow, waits)

    def _listen(self, ledger: Ledger) -> None:
        if self._channel is not None:
            return
        ledger.create()
        first = decoded(self._flow, ledger.newest_lease(self._flow), self._seal)
        self._log = self._log.begun(first, self._clock(), ledger.newest_led(self._flow))
        cluster = self._open()
        self._channel = ledger.topic, cluster, cluster.follow_log(ledger.topic, ledger.read_to)
        self._end_background = self._background(self.tend)

    def _try_claim(self) -> bool:
        self._drain()
        if self._log.claimable(self._clock()):
            self._since = utc_now()
            self._read_back(self._write(Act.CLAIM, self._log.term + 1))
        return self._log.mine is not None

    def check(self) -> None:
        """Check the lease, right before each write. Raises NotLeading; ClusterUnreachable without a confirmed
        renewal."""
        state = self._log
        if state.mine is None or state.mine != self._term:
            raise self._not_leading()
        if self._spare(state) <= 0:
            raise ClusterUnreachable(
                f"{self._flow}: the target has not confirmed this process's lease for {EVIDENCE:g} s: Lockstep "
                "writes nothing until it does"
            )

    def prove(self) -> None:
        """Renew the lease now, and check. Raises as `check`."""
        if self._log.mine is not None:
            with self._reading():
                if self._log.mine is not None:
                    self._read_back(self._write(Act.RENEWAL, self._log.mine))
        self.check()

    def tend(self) -> None:
        """Read records of other processes, hand over if one asks, and renew the lease if a renewal is due. Raises
        LockstepError."""
        with self._reading():
            self._drain()
            if self._failover_moved:
                self._failover_moved = False
                self._on_failover()
            state = self._log
            if state.mine is None:
                if state.claimable(self._clock()):
                    self._wake()
            elif state.wanted_by is not None and not self._held:
                self._hand_over(state.wanted_by)
            elif self._clock() - self._renewed_at >= RENEW_AFTER:
                self._write(Act.RENEWAL, state.mine)

    def _hand_over(self, to: str | None) -> None:
        with self._state:
            if self._held:
                return
            term, self._log = self._log.mine or 0, self._log.given_up()
        # Not before nothing of this process can write any more.
        self._write(Act.RELEASE, term, to)
        log.info(
            "%s: %s",
            self._flow,
            "leads no more" if to is None else "hands the lead over to the process that asked for it",
        )

    def close(self) -> None:
        """Give up the leadership, and write that for the other processes."""
        self._end_background()
        if self._channel is None:
            return
        try:
            with self._reading():
                if self._spare(self._log) > 0:
                    self._hand_over(None)
                self._log = self._log.given_up()
        except LockstepError as error:
            log.warning(
                "%s: could not give up the lease, so other processes lead only once it has expired: %s",
                self._flow,
                error,
            )
        finally:
            _, cluster, tail = self._channel
            tail.close()
            cluster.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        if not self._io.acquire(timeout=LEASE_READ_WITHIN):
            raise ClusterUnreachable(
                f"{self._flow}: the target did not take the lease's records for {LEASE_READ_WITHIN:g} s"
            )
        try:
            yield
        finally:
            self._io.release()

    def _write(self, act: Act, term: int, to: str | None = None) -> int:
        """Returns the number of the record once all in-sync replicas have it. Raises ClusterUnreachable, RightsMissing;
        the record may be written all the same."""
        assert self._channel is not None
        topic, cluster, _ = self._channel
        state, number, began = self._log, next(self._numbers), self._clock()
        if act is not Act.REQUEST:
            self._renewed_at = began
        if act in TRACKED:
            # What did not come back for two leases is forgotten.
            self._sent = {sent: at for sent, at in self._sent.items() if at > began - 2 * state.seconds}
            self._sent[number] = began
        who = (*self._identity, self._since)
        record = LeaseRecord(act, state.me, number, state.last, term, state.seconds, *who, to)
        cluster.append_log(topic, [encoded(self._flow, record, self._seal, milliseconds(utc_now()))])
        return number

    def _read_back(self, number: int) -> None:
        assert self._channel is not None
        deadline = self._clock() + LEASE_READ_WITHIN
        self._drain()
        while number in self._sent:
            if self._clock() >= deadline:
                raise ClusterUnreachable(
                    f"{self._flow}: a record in {self._channel[0]} was not read back within {LEASE_READ_WITHIN:g} s"
                )
            self._pause(LEASE_POLL_INTERVAL)
            self._drain()

    def _drain(self) -> None:
        assert self._channel is not None
        key, values = lease_key(self._flow), list[bytes | None]()
        for found, value in all_new(self._channel[2]):
            if found == FAILOVER_KEY:
                self._hear_failover(value)
            if found == key:
                values.append(value)
        # Taken once all is read, so it is never earlier than a leader's last record, however long reading took.
        for value in values:
            heard = decoded(self._flow, value, self._seal)
            own = heard.record if heard.record and heard.record.holder == self._log.me else None
            self._log = self._log.taken(heard, self._clock(), self._sent.pop(own.number, None) if own else None)

    def _hear_failover(self, value: bytes | None) -> None:
        """Note a step of a failover. Ignores a record without the required signature, and a record older than the
        newest step."""
        try:
            at = self._seal.unwrap(FAILOVER_KEY, value).at
        except LockstepError:
            # The next reading of the ledger stops the flow because of it.
            return
        known_at, known = self._failover
        if at >= known_at and value != known:
            self._failover_moved, self._failover = True, (at, value)


Leadership = Lease | Unled
"""Tells which process leads a flow. A pass asks it before it writes."""

TRACKED = frozenset({Act.CLAIM, Act.RENEWAL})
"""Records that their writer waits to read back. They are evidence of its lease."""

FAILOVER_KEY = entry_key_bytes(FAILOVER_STATE)

RECORDS_IN_A_READ = 1000
"""Most records that one read of a tail returns."""


def all_new(tail: Tail) -> Iterator[Record]:
    """Yields all new records. With only a part of them, a process that led long ago would count as alive now."""
    count = RECORDS_IN_A_READ
    while count >= RECORDS_IN_A_READ:
        records = tail.next(0.0)
        count = len(records)
        yield from records
