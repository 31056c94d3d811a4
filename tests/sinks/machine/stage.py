"""What all machines have in common: a flow in memory, its passes, what may go wrong, and what must hold after each.

A machine is a `Stage` with aspects, classes that add rules and say by `differences` what the target should have. That
is worked out anew here, from the clusters as they are, and not by the code that is tested.

| what holds                                                                        | checked            |
|-----------------------------------------------------------------------------------|--------------------|
| nothing foreign is deleted or changed                                             | after each rule    |
| nothing is deleted that the source has, whatever it shows                         | after each pass    |
| nothing is written while paused, or while the ledger is not trusted               | after each pass    |
| after a full comparison each difference that is left has a change or a verdict    | after each pass    |
| what was written has its event, unless the process died in between                | after each pass    |
| nothing is changed of a copy whose clients may have moved there                   | after each pass    |
| no secret is in a report, a log, the ledger or the audit topic                    | after each pass    |
| once nothing goes wrong any more all is equal, stays so, and what was made is owned | at the end       |
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sinks.engine.report import Report
from sinks.kinds.quotas.controller import PORT
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.kept_divergences import Divergence, forget_divergences, keep_divergences
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import FAILOVER_STATE, Entry
from sinks.model.changes import Key, Kind, Op
from streaming.errors import LockstepError
from streaming.flow import Flow
from tests.sinks.builders import NOON, World
from tests.sinks.machine.hazards import Crash, FaultyCluster, Hazard, Written, topic_of
from tests.sinks.machine.knowledge import intended_long_ago
from tests.sinks.machine.surroundings import (
    QUIET_PASSES,
    SETTLES_WITHIN,
    Difference,
    Heard,
    kinds_unseen,
    unexplained,
    without_event,
    world_of,
)

SECRET = "hush"
"""Begins every password."""


class Stage(RuleBasedStateMachine):
    """One flow from a to b. `mine`: what Lockstep created and what still exists. `unsure`: what it created in a pass
    that failed, by flow, `unowned`: the part of it that may have no owner by now. `either`: what another client
    made again before Lockstep saw that it was gone. `unheard`: writes whose events are to come. `moved`: topics whose
    clients may have moved to the target, and where each partition of the copy ended then."""

    kinds: Collection[Kind] = ()

    def __init__(self) -> None:
        super().__init__()
        self.hazard, self.upstream = Hazard(), Hazard()
        self.source, self.target = FaultyCluster("a", "id-of-a"), FaultyCluster("b", "id-of-b", hazard=self.hazard)
        self.mine: dict[Kind, dict[Key, Flow]] = {kind: {} for kind in Kind}
        self.either: set[Difference] = set()
        self.unsure: dict[Flow, set[Difference]] = {}
        self.unowned: set[Difference] = set()
        self.unheard: dict[Flow, list[Written]] = {}
        self.paused: frozenset[Kind] = frozenset()
        self.moved: dict[str, list[int]] = {}
        self.trusted = True
        self.jumped, self.writes = timedelta(), 0
        self.heard = Heard()
        logging.getLogger().addHandler(self.heard)
        self.world = world_of(self.kinds, self.source, self.target, self.upstream, self.now)
        self.populate()
        self.hazard.written.clear()
        self.target.made.clear()

    def now(self) -> datetime:
        """The wall clock."""
        return NOON + self.jumped

    def populate(self) -> None:
        """What is there before the first pass."""

    def differences(self, world: World) -> Iterator[Difference]:
        """What the target lacks, has otherwise, or has too much of what is Lockstep's; none of what is foreign."""
        yield from ()

    def check_foreign(self) -> None:
        """Raises AssertionError where something foreign was deleted or changed."""

    def check_pass(self, world: World, written: Collection[Written], report: Report | None) -> None:
        """After each pass, whether it came to its end or not."""

    def forget(self) -> None:
        """Nothing is Lockstep's any more."""
        self.unsure.clear()
        self.unowned.clear()
        self.either.clear()
        self.moved.clear()
        for mine in self.mine.values():
            mine.clear()

    def drain(self, topic: str, ends: list[int]) -> None:
        """`cutover --batch` of one topic: MM2 has copied all behind the fence, and the ledger keeps where the copy
        ends."""
        self.moved[topic] = ends
        none = [0] * len(ends)
        with self.hazard.aside():
            ledger = self.world.ledger()
            ledger.put({FAILOVER_STATE: FailoverRecord(State.DRAINED, topics=tuple(sorted(self.moved))).to_text()})
            keep_divergences(ledger, {topic: Divergence(f"a.{topic}", ends, none, none, True)})

    def lift_fences(self) -> None:
        """`unfence`: clients write the source again."""
        with self.hazard.aside():
            forget_divergences(self.world.ledger())
            self.world.ledger().put({FAILOVER_STATE: FailoverRecord().to_text()})
        self.moved.clear()

    def check_quiet(self, report: Report) -> None:
        """Of a pass that had nothing to do."""

    def told_later(self) -> set[Kind]:
        """Kinds whose differences this pass need not all name: what is not shown is not known."""
        return set(self.upstream.blank)

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self.hazard.failing, self.hazard.blank, self.upstream.blank = None, set(), set()
        self.reach(True)

    def reach(self, reachable: bool) -> None:
        """Whether the target answers."""
        ports = (self.world.target_acls, self.world.target_users, self.world.target_groups, self.world.target_levels)
        for one in (self.target, *ports, self.world.others[PORT]["b"]):
            one.reachable = reachable

    @rule(after=st.sampled_from([1.0, 15.0, 61.0, 3600.0]), everything=st.booleans())
    def step(self, after: float, everything: bool = False) -> None:
        """A pass; what stops the flow, or ends the process, is taken as it comes."""
        self.run(self.world, after, everything)

    def run(self, world: World, after: float, everything: bool, force: bool = False) -> Report | None:
        """A pass of a world, and what must hold after it."""
        self.hazard.written.clear()
        report, crashed = None, False
        world.clock.now += after
        try:
            reconcile = world.reconcile
            with suppress(LockstepError), reconcile.leading():
                report = reconcile.apply(reconcile.compare((), everything, force=force))
        except Crash:
            crashed = True
            self.begin_anew()
        written = list(self.hazard.written)
        self.writes += len(written)
        for one in written:
            if one.op is Op.CREATE:
                self.mine[one.kind][one.key] = world.settings.flow
            elif one.op is Op.DELETE:
                self.mine[one.kind].pop(one.key, None)
        self._note_unsure(world, written, report)
        if not crashed:
            events = [one for one in written if not one.kind.row.content or one.op is Op.CREATE]
            self.unheard.setdefault(world.settings.flow, []).extend(events)
        self._check_written(world, written, report)
        self.check_pass(world, written, report)
        return report

    def _note_unsure(self, world: World, written: Collection[Written], report: Report | None) -> None:
        unsure = self.unsure.setdefault(world.settings.flow, set())
        self._open = frozenset(unsure)  # whether they are ours it finds now: the next has a word for what remains
        if report is None or any(outcome.error for outcome in report.outcomes):
            created = {(one.kind, one.key) for one in written if one.op is Op.CREATE}
            unsure |= created
            self.unowned |= created & intended_long_ago(self.ledgers().values() if created else (), self.now())
        elif report.everything:
            unseen = self.told_later() | kinds_unseen(report)
            unsure -= {one for one in unsure if one[0] not in unseen}

    def _check_written(self, world: World, written: Collection[Written], report: Report | None) -> None:
        assert world is not self.world or not {one.kind for one in written} & self.paused, "written while paused"
        assert self.trusted or not written, "written by a ledger that is not to be trusted"
        copies = {f"a.{topic}" for topic in self.moved}
        assert not [one for one in written if topic_of(one) in copies], "a copy was changed that clients may write"
        assert SECRET not in repr(report) + "".join(self.heard.lines), "a secret is shown"
        self.heard.lines.clear()
        if report is None:
            return
        self._check_events(world)
        if report.everything:
            later = self.told_later()
            left = unexplained(report, {one for one in self.differences(world) if one[0] not in later}) - self._open
            assert not left, f"differ without a word: {left}"

    def _check_events(self, world: World) -> None:
        assert SECRET.encode() not in repr(self.target.topics).encode(), "a secret is kept"
        # A pass that wrote nothing need not have asked the target.
        unheard = self.unheard.pop(world.settings.flow, ()) if self.target.reachable else ()
        assert not (untold := without_event(world, unheard)), f"written without an event: {untold}"
        if audit := self.target.topics.get(world.settings.internal.audit):
            audit.records.clear()

    def begin_anew(self) -> None:
        """Another process: what was not written down is lost."""
        self.unheard.clear()
        for world in self.worlds():
            world.restart()

    def pause(self, kinds: frozenset[Kind]) -> None:
        """A running job takes it in with its next full comparison."""
        names = {kind: "true" if kind in kinds else None for kind in Kind}
        self.world.ledger().put({(Entry.PAUSED, (kind.value,)): name for kind, name in names.items()})
        self.paused = kinds
        self.run(self.world, 1.0, everything=True)

    @invariant()
    def nothing_foreign_is_gone(self) -> None:
        self.check_foreign()

    def worlds(self) -> list[World]:
        """Each flow's."""
        return [self.world]

    def remembered(self, kind: Kind, key: Key) -> bool:
        """Whether a flow does, of what it created or was about to, and has not seen yet that it is gone."""
        return bool(self.remembering(kind, key))

    def remembering(self, kind: Kind, key: Key, *entries: Entry) -> set[Flow]:
        """The flows whose ledgers have one of these entries, or an OWNED or INTENT."""
        wanted, led = entries or (Entry.OWNED, Entry.INTENT), self.ledgers().items()
        return {flow for flow, one in led if any(one.get(each, kind.value, *key) is not None for each in wanted)}

    def ledgers(self) -> dict[Flow, Ledger]:
        """As they are in their topics now."""
        reachable, self.target.reachable = self.target.reachable, True
        found = {world.settings.flow: world.ledger() for world in self.worlds()}
        self.target.reachable = reachable
        return found

    def teardown(self) -> None:
        logging.getLogger().removeHandler(self.heard)
        self.clear()
        if self.paused:
            self.pause(frozenset())
        if self.moved:
            self.lift_fences()
        quiet = 0
        for _ in range(SETTLES_WITHIN):
            before = self.writes
            self.pass_of_all()
            # One flow may follow what another saw in the round before.
            quiet = 0 if self.left() or self.writes > before else quiet + 1
            if quiet == QUIET_PASSES:
                break
        assert not self.left(), f"not equal after {SETTLES_WITHIN} passes: {self.left()}"
        for world in (*self.worlds(), *self.worlds()):
            report = self.run(world, 60.0, everything=True)
            assert report is not None, "nothing goes wrong any more, and a pass does not come to its end"
            assert not self.hazard.written, f"written although all is equal: {self.hazard.written}"
            self.check_quiet(report)
        self.check_foreign()
        self.check_owned()

    def pass_of_all(self) -> None:
        """A pass of each flow, a minute later; the operator lifts the deletion limit."""
        self.run(self.world, 60.0, everything=True, force=True)

    def left(self) -> set[Difference]:
        """What is not equal yet."""
        return {one for world in self.worlds() for one in self.differences(world)}

    def check_owned(self) -> None:
        """What Lockstep created and is there still is Lockstep's, and nothing else is."""
        for kind in (kind for kind in self.kinds if kind.row.owned and not kind.row.data):
            owned = {key for ledger in self.ledgers().values() for key in ledger.owned(kind)}
            mine = self.mine[kind].keys()
            foreign = {(kind, key) for key in owned - mine} - self.either
            assert not foreign, f"not Lockstep's: {foreign}"
            forgotten = {(kind, key) for key in mine - owned} - self.unowned
            assert not forgotten, f"created and not owned: {forgotten}"
