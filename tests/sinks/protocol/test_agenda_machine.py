"""The agenda in any order of signals, polls, troubles, refusals and creations: it forgets and hurries nothing."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from sinks.faults import CoordinatorUnavailable, ItemFault
from sinks.kafka.ports.cluster import TopicSpec
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import Plan, make_plan
from sinks.protocol.agenda import LAGS, LONGEST_WAIT, Agenda, Kinds
from sinks.protocol.backoff import wait_after
from tests.sinks.builders import FLOW, config_change

TOPICS: Kinds = frozenset({Kind.TOPIC, Kind.TOPIC_CONFIG})
ACLS: Kinds = frozenset({Kind.ACL})
GROUPS: Kinds = frozenset({Kind.GROUP_OFFSET})
EVERY = (TOPICS, ACLS, GROUPS)

REFUSED = ItemFault("INVALID_CONFIG", "not on this cluster")
CONTROLLED = st.sampled_from(EVERY)
NAMES = st.sampled_from(["a.x", "a.y"])
VALUES = st.sampled_from(["1", "2"])


class AgendaMachine(RuleBasedStateMachine):
    """Knows by itself, in the plainest way, what the agenda must say."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.agenda = 1000.0, Agenda()
        self.signalled = dict.fromkeys(EVERY, 0)
        self.failures = dict.fromkeys(EVERY, 0)
        self.retry_at: dict[Kinds, float] = {}
        self.refused: dict[str, tuple[str, int, float]] = {}
        self.created: dict[Key, float] = {}

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 31.0, LAGS + 1, 4000.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(records=st.integers(1, 3))
    def signal(self, records: int) -> None:
        self.agenda.signal(EVERY, records)
        self.signalled = {kinds: owed + records for kinds, owed in self.signalled.items()}

    @rule(kinds=CONTROLLED, explained=st.integers(0, 4))
    def poll(self, kinds: Kinds, explained: int) -> None:
        self.agenda.polled(kinds, explained)
        shared = min(explained, self.signalled[kinds])
        self.signalled = {one: max(0, owed - shared) for one, owed in self.signalled.items()} | {kinds: 0}

    @rule(kinds=CONTROLLED)
    def fail(self, kinds: Kinds) -> None:
        self.agenda.of[kinds].failed(CoordinatorUnavailable("away"), self.now)
        self.retry_at[kinds] = self.now + min(2.0 ** self.failures[kinds], LONGEST_WAIT)
        self.failures[kinds] += 1

    @rule(kinds=CONTROLLED)
    def work(self, kinds: Kinds) -> None:
        self.agenda.of[kinds].works()
        self.failures[kinds] = 0
        self.retry_at.pop(kinds, None)

    def ready(self, *changes: Change) -> Plan:
        return self.agenda.of[TOPICS].ready(make_plan(FLOW, changes), {one.key[0] for one in changes}, self.now)

    @rule(name=NAMES, value=VALUES, takes=st.booleans())
    def write(self, name: str, value: str, takes: bool) -> None:
        """Another value than the refused one is tried at once, the same one when its time has come."""
        change = config_change(name, "retention.ms", None, value)
        plan, (before, tries, due) = self.ready(change), self.refused.get(name, ("", 0, 0.0))
        waits = before == value and due > self.now
        assert (plan.changes, len(plan.refused)) == (((), 1) if waits else ((change,), 0))
        if waits:
            return
        self.agenda.of[TOPICS].learn([Outcome(change, None if takes else REFUSED)], self.now)
        self.refused.pop(name, None)
        if not takes:
            tries = tries + 1 if before == value else 1
            self.refused[name] = value, tries, self.now + wait_after(tries)

    @rule(name=NAMES)
    def want_no_more(self, name: str) -> None:
        """What a comparison of a topic does not want any more is forgotten."""
        self.agenda.of[TOPICS].ready(make_plan(FLOW, ()), {name}, self.now)
        self.refused.pop(name, None)

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        change = Change(Kind.TOPIC, (name,), None, TopicSpec(1))
        self.agenda.of[TOPICS].learn([Outcome(change)], self.now)
        self.created[name,] = self.now

    @rule(shown=st.sets(NAMES))
    def list_target(self, shown: set[str]) -> None:
        """What was shown, or was not for long, is not waited for."""
        awaited = self.agenda.of[TOPICS].created.awaited(lambda key: key[0] in shown, self.now)
        self.created = {key: at for key, at in self.created.items() if key[0] not in shown and self.now - at < LAGS}
        assert set(awaited) == self.created.keys()

    @invariant()
    def a_signal_is_owed_until_it_is_polled_or_explained(self) -> None:
        assert {kinds: self.agenda.of[kinds].signalled for kinds in EVERY} == self.signalled

    @invariant()
    def a_refused_change_has_its_time(self) -> None:
        due = min((at for _, _, at in self.refused.values()), default=float("inf"))
        assert self.agenda.of[TOPICS].backed_off.next_at() == due

    @invariant()
    def the_next_pass_is_the_earliest_wish_that_counts(self) -> None:
        wishes = {TOPICS: self.now + 3, ACLS: self.now + 2, GROUPS: self.now + 1}
        expected = [
            self.retry_at.get(kinds, at) for kinds, at in wishes.items() if kinds in self.retry_at or kinds != GROUPS
        ]
        assert self.agenda.due_at(wishes.items(), idle=GROUPS, others=[self.now + 60]) == min(*expected, self.now + 60)


@pytest.mark.hypothesis
def test_the_agenda_forgets_nothing_and_hurries_nothing() -> None:
    run_state_machine_as_test(AgendaMachine)
