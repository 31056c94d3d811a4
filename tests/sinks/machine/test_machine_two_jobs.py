"""A machine that looks for what two processes over one flow do to each other: the leader alone writes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from sinks.engine.report import Report
from sinks.every_kind.wishes import Wishes
from sinks.ledger.lease import MARGIN
from sinks.model.changes import Kind
from tests.sinks.builders import World
from tests.sinks.engine.leases import SECONDS, Processes
from tests.sinks.machine.hazards import Written
from tests.sinks.machine.lists_aspect import ListsAspect
from tests.sinks.machine.mishaps_aspect import MishapsAspect


class TwoJobsMachine(MishapsAspect, ListsAspect):
    """One leads by a lease, whose time is moved by hand; the other stands by, and takes over."""

    kinds = (Kind.ACL, Kind.CLIENT_QUOTA)

    def populate(self) -> None:
        super().populate()
        self.processes, self.jobs = Processes(self.target), 0
        self.other = replace(self.world, wishes=Wishes())
        self.begin_anew()

    def begin_anew(self) -> None:
        """Both end without a word, and others come in their place."""
        for world in (self.world, self.other):
            self.jobs += 1
            world.leadership = self.processes.lease(f"job-{self.jobs}")
        self.other.restart()
        super().begin_anew()

    @rule(after=st.sampled_from([1.0, 15.0, 61.0]), everything=st.booleans())
    def step_of_the_other(self, after: float, everything: bool) -> None:
        self.run(self.other, after, everything)

    @rule(seconds=st.sampled_from([1.0, SECONDS / 2, SECONDS + MARGIN]))
    def time_passes_without_a_word(self, seconds: float) -> None:
        self.processes.now += seconds

    def pause(self, kinds: frozenset[Kind]) -> None:
        """That takes a command, which leads meanwhile: not here."""

    def check_pass(self, world: World, written: Collection[Written], report: Report | None) -> None:
        super().check_pass(world, written, report)
        leader = world.leadership.leader
        assert not written or report is None or (leader is not None and leader.here), "written by who does not lead"

    def clear(self) -> None:
        super().clear()
        self.other.reconcile.close()

    def pass_of_all(self) -> None:
        """A process that has just begun waits until the lease that it finds is over."""
        super().pass_of_all()
        if self.world.leadership.leader is None or not self.world.leadership.leader.here:
            self.processes.now += SECONDS + MARGIN
            super().pass_of_all()


TwoJobsMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestTwoJobs = TwoJobsMachine.TestCase
