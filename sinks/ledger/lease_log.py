"""Who leads a flow, by the records in its ledger. Pure: times come in as arguments, in seconds of this process's clock.

The ledger has one partition, so that all processes read these records in one order.

| record               | counts                                          | then                                     |
|----------------------|-------------------------------------------------|------------------------------------------|
| CLAIM                | if `after` names the record right before it,    | its holder leads, the old one no more    |
|                      | and its term is above the highest               |                                          |
| RENEWAL              | if its term is not below the highest            | its holder leads on                      |
| RELEASE              | if its term is not below the highest            | no process leads                         |
| REQUEST              | always                                          | the one that leads hands over            |
| one not trusted      | never, but is what a claim after it must name   | as if the one that leads were heard      |

A claim is thus compare-and-set: of two processes that claim after the same record, only the first one's counts. A
process claims if no process leads, or if the leader's last record is older than its whole lease.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sinks.ledger.lease_records import Act, LeaseRecord, ReadRecord

MARGIN = 1.0
"""Seconds beyond a lease before others claim, because clocks drift apart."""

RESERVED_SECONDS = 10.0
"""Seconds for which only the named successor may claim, in case it never does."""


@dataclass(frozen=True)
class LeaseLog:
    """What one process, `me`, has read so far. `seconds`: of its own lease.

    `last`: the name of the newest record. `read_at`: when one of a process that may lead was read last; None: never.
    `leader`: the newest record of the one that leads, or its RELEASE. `live`: it was read since this process
    follows the log. `mine`: the term in which this process leads. `confirmed`: when it began to write the newest record
    that says so and that it read back. `wanted_by`: the holder that asks for it.
    """

    me: str
    seconds: float
    last: str | None = None
    read_at: float | None = None
    term: int = 0
    leader: LeaseRecord | None = None
    live: bool = False
    mine: int | None = None
    confirmed: float | None = None
    wanted_by: str | None = None

    def begun(self, found: ReadRecord, now: float, led: LeaseRecord | None = None) -> LeaseLog:
        """Starts with the newest record that is there already. Its writer may have died since.

        `led`: the newest record of the highest term. It counts as leading behind a request or a record of a lower term,
        which another client may have written again.
        """
        record, highest = found.record, led.term if led else 0
        if record is not None and record.act is not Act.REQUEST and record.term >= highest:
            known: LeaseRecord | None = record
        else:
            known = None if led is not None and led.act is Act.RELEASE else led
        term = max(highest, record.term if record else 0)
        return replace(self, last=found.name, read_at=now if found.name else None, term=term, leader=known)

    def taken(self, found: ReadRecord, now: float, sent_at: float | None = None) -> LeaseLog:
        """With one record more. `sent_at`: when this process began to write it, if it did."""
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
        """This process leads no more."""
        return replace(self, mine=None, wanted_by=None)

    def claimable(self, now: float) -> bool:
        """Whether this process may claim."""
        if self.mine is not None:
            return False
        if self.read_at is None:
            return True
        silent = now - self.read_at
        if self.leader is not None and self.leader.act is Act.RELEASE:
            return self.leader.to in (None, self.me) or silent >= RESERVED_SECONDS
        return silent >= max(self.seconds, self.leader.seconds if self.leader else 0.0) + MARGIN

    def lasts(self, now: float) -> float:
        """Seconds for which no other process can claim. 0 if this process does not lead."""
        if self.mine is None or self.confirmed is None:
            return 0.0
        return max(0.0, self.confirmed + self.seconds - now)
