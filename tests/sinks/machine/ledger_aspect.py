"""The ledger is lost, damaged, rolled back, not compacted, newer than this version, or an address leads elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sinks.engine.report import Report
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Key, Kind
from streaming.flow import Flow
from tests.sinks.builders import World
from tests.sinks.machine.hazards import Written
from tests.sinks.machine.stage import Stage
from tests.sinks.machine.surroundings import MemoryPins

NOT_OURS = b'["NEWER","x"]'
"""A key of an entry that this version does not know."""


class Trouble(str, Enum):
    """What happens to a ledger, or to the way there."""

    GONE = "the topic is deleted"
    DAMAGED = "a record is overwritten with something else"
    NEWER = "a newer version wrote a record"
    ROLLED_BACK = "the topic loses its newest records"
    NOT_COMPACTED = "the topic would forget records"
    ELSEWHERE = "the target's address leads to another cluster"


class LedgerAspect(Stage):
    """Nothing is written from the moment that a full comparison could see it, until the operator mended it.

    `loaded`: whether this process knows the ledger. It cannot see that records are missing which no process knows.
    """

    def populate(self) -> None:
        super().populate()
        self.trouble: Trouble | None = None
        self.loaded = False
        self.topic = self.world.settings.internal.ledger

    @precondition(lambda self: self.trouble is None and self.target.reachable and self.world.pins.kept)
    @rule(trouble=st.sampled_from(list(Trouble)))
    def befall_the_ledger(self, trouble: Trouble) -> None:
        there = self.target.topics[self.topic]
        self.saved, self.records = there, list(there.records)
        if trouble is Trouble.ROLLED_BACK and not (self.loaded and there.records):
            return
        self.trouble, self.trusted = trouble, False
        if trouble is Trouble.GONE:
            self.target.topics.pop(self.topic)
        elif trouble is Trouble.DAMAGED:
            there.records.append((there.records[0][0], b"nonsense"))
        elif trouble is Trouble.NEWER:
            there.records.append((NOT_OURS, b"nonsense"))
        elif trouble is Trouble.ROLLED_BACK:
            there.records.pop()
        elif trouble is Trouble.NOT_COMPACTED:
            there.overrides["cleanup.policy"] = "delete"
        else:
            self.target.id = "id-of-another"
        assert self.run(self.world, 1.0, everything=True) is None, f"a pass went on although {trouble.value}"

    @precondition(lambda self: self.trouble is not None)
    @rule()
    def mend(self) -> None:
        """From a backup, or by turning the address back."""
        self.target.id = "id-of-b"
        self.target.topics[self.topic] = self.saved
        self.saved.records[:], self.saved.overrides["cleanup.policy"] = self.records, "compact"
        self.trouble, self.trusted = None, True

    @precondition(lambda self: self.trouble is not None)
    @rule()
    def reset(self) -> None:
        """`lockstep ledger reset`, as the message says: nothing is Lockstep's any more."""
        pins = self.world.pins
        assert isinstance(pins, MemoryPins)
        self.target.id = "id-of-b"
        self.target.topics.pop(self.topic, None)
        pins.kept.clear()
        self.trouble, self.trusted, self.paused = None, True, frozenset()
        self.forget()
        self.begin_anew()

    def begin_anew(self) -> None:
        """After a start no process can see that the newest records are missing: that is mended before."""
        if self.trouble is Trouble.ROLLED_BACK:
            self.mend()
        self.loaded = False
        super().begin_anew()

    def drain(self, topic: str, ends: list[int]) -> None:
        """A command wrote it, so the job's process has yet to read it."""
        super().drain(topic, ends)
        self.loaded = False

    def lift_fences(self) -> None:
        super().lift_fences()
        self.loaded = False

    def remembered(self, kind: Kind, key: Key) -> bool:
        """What is in a ledger that cannot be read, comes back or not."""
        return self.trouble is not None or super().remembered(kind, key)

    def remembering(self, kind: Kind, key: Key, *entries: Entry) -> set[Flow]:
        """As `remembered` has it."""
        if self.trouble is not None:
            return {self.world.settings.flow}
        return super().remembering(kind, key, *entries)

    def check_pass(self, world: World, written: Collection[Written], report: Report | None) -> None:
        super().check_pass(world, written, report)
        self.loaded |= report is not None
        assert self.trouble is not Trouble.GONE or self.topic not in self.target.topics, "the ledger was made anew"

    def clear(self) -> None:
        super().clear()
        if self.trouble is not None:
            self.mend()
