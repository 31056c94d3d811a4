"""A machine that looks for two leaders at once. Processes stop and wake, come and go. Writes fail or come late, the
target goes away, and processes ask for the lead.

Whatever the order: after a process was allowed to begin a request, no other is until that request must be over.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sinks.ledger.lease import MARGIN, Lease
from streaming.errors import LockstepError
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.engine.leases import RESERVE, SECONDS, Processes, SlowCluster

NAMES = ("p", "q")
NAME = st.sampled_from(NAMES)


class Machine(RuleBasedStateMachine):
    """`began`: when each process was last allowed to begin a request. A process is stopped while no rule names it."""

    @initialize()
    def begin(self) -> None:
        self.target = SlowCluster("b", "id-of-b")
        self.all = Processes(self.target)
        self.leases: dict[str, Lease] = {name: self.all.lease(name) for name in NAMES}
        self.began: dict[str, float] = {}
        for name in NAMES:
            self.run_a_pass(name)

    @rule(name=NAME, proves=st.booleans())
    def run_a_pass(self, name: str, proves: bool = False) -> None:
        """As `FlowReconcile.leading` does, and a write in it."""
        lease = self.leases[name]
        with suppress(LockstepError), lease.hold():
            if not lease.leads():
                self.all.claim(lease)
            if proves:
                lease.prove()
            self.write(name)

    @rule(name=NAME)
    def write_in_a_pass_that_began_before(self, name: str) -> None:
        with suppress(LockstepError):
            self.write(name)

    def write(self, name: str) -> None:
        self.leases[name].check()
        for other, at in self.began.items():
            assert other == name or self.all.now >= at + RESERVE, f"{other} may be writing, too"
        self.began[name] = self.all.now

    @rule(seconds=st.sampled_from([2.0, 5.0, 9.0, SECONDS + MARGIN]))
    def time_passes(self, seconds: float) -> None:
        self.all.now += seconds

    @rule(name=NAME)
    def tend(self, name: str) -> None:
        lease = self.leases[name]
        if lease._channel is None:
            return
        led = lease._log.mine is not None
        with suppress(LockstepError):
            lease.tend()
        known = lease._log
        if led and known.mine is None and known.leader is not None and known.leader.holder == known.me:
            # It handed the lead over between two passes: no request of its own is under way.
            self.began.pop(name, None)

    @rule(name=NAME)
    def ask_for_the_lead(self, name: str) -> None:
        others, asking = [one for one in NAMES if one != name], self.leases[name]
        asking._patience, asking._pause = 1.0, lambda seconds: self.wait(seconds, others)
        try:
            self.run_a_pass(name)
        finally:
            asking._patience = 0.0

    def wait(self, seconds: float, others: Sequence[str]) -> None:
        self.all.now += max(seconds, 0.2)
        for other in others:
            self.tend(other)

    @rule(name=NAME, cleanly=st.booleans())
    def end_and_start(self, name: str, cleanly: bool) -> None:
        """Cleanly between two passes; or it is gone, with a request of its own under way."""
        if cleanly:
            held = self.leases[name]._log.mine is not None
            self.leases[name].close()
            if held:
                self.began.pop(name, None)
        else:
            self.began[f"{name} that is gone"] = self.began.pop(name, -RESERVE)
        self.leases[name] = self.all.lease(name)

    @rule(name=NAME)
    def target_is_away_for_one(self, name: str) -> None:
        self.target.reachable = False
        self.tend(name)
        self.run_a_pass(name)
        self.target.reachable = True

    @rule(writes=st.integers(1, 3))
    def hold_writes_back(self, writes: int) -> None:
        self.target.holds_back = writes

    @precondition(lambda self: bool(self.target.late))
    @rule()
    def late_write_arrives(self) -> None:
        topic, records = self.target.late.pop(0)
        MemoryCluster.append_log(self.target, topic, records)

    @invariant()
    def one_leads_at_most(self) -> None:
        if not hasattr(self, "leases"):
            return
        certain = [name for name, lease in self.leases.items() if lease.leader is not None and lease.leader.here]
        assert len(certain) <= 1, certain

    def teardown(self) -> None:
        """When all is quiet, a process leads."""
        if not hasattr(self, "leases"):
            return
        self.target.holds_back = 0
        for _ in range(20):
            self.time_passes(3.0)
            for name in NAMES:
                self.tend(name)
                self.run_a_pass(name)
        self.one_leads_at_most()
        assert any(lease.leader is not None and lease.leader.here for lease in self.leases.values())


Machine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestMachine = Machine.TestCase
