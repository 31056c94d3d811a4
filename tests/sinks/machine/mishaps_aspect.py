"""What may go wrong with any flow: writes fail, the process ends, the target is away, clocks jump, kinds are paused."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sinks.model.changes import Kind
from tests.sinks.machine.hazards import When
from tests.sinks.machine.stage import Stage


class MishapsAspect(Stage):
    """Part of every machine."""

    @rule()
    def restart(self) -> None:
        self.begin_anew()

    @rule(how=st.sampled_from(list(When)), countdown=st.sampled_from([0, 0, 1, 1, 2, 3, 4, 6]))
    def fail_a_write(self, how: When, countdown: int) -> None:
        self.hazard.failing, self.hazard.countdown = how, countdown

    @rule(reachable=st.booleans())
    def target_goes_or_comes(self, reachable: bool) -> None:
        self.reach(reachable)

    @rule(hours=st.sampled_from([-2, 1]))
    def wall_clock_jumps(self, hours: int) -> None:
        """What was about to be created and is as old as that counts as another client's."""
        self.jumped += timedelta(hours=hours)
        self.unowned = self.unowned.union(*self.unsure.values())

    @precondition(lambda self: self.trusted and self.target.reachable and self.hazard.failing is None)
    @rule(kinds=st.sampled_from([frozenset(), frozenset(Kind)]) | st.frozensets(st.sampled_from(list(Kind))))
    def pause_or_resume(self, kinds: frozenset[Kind]) -> None:
        self.pause(kinds)
