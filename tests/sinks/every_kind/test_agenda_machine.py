"""The agenda in any order of signals, polls, troubles, refusals and creations: it forgets and hurries nothing."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from sinks.engine.flow_agenda import FlowAgenda, Kinds
from sinks.every_kind.backoff import FIRST_RETRY_S, LONGEST_RECOMPARE_S, LONGEST_RETRY_S
from sinks.every_kind.comparison import Comparison, Polled
from sinks.every_kind.kinds_agenda import LAGS
from sinks.faults import CoordinatorUnavailable, ItemFault
from sinks.kafka.ports.cluster import TopicSpec
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import Plan, Unobserved, make_plan
from streaming.durations import doubled
from tests.sinks.builders import FLOW, config_change

TOPICS: Kinds = frozenset({Kind.TOPIC, Kind.TOPIC_CONFIG})
ACLS: Kinds = frozenset({Kind.ACL})
GROUPS: Kinds = frozenset({Kind.GROUP_OFFSET})
EVERY = (TOPICS, ACLS, GROUPS)

REFUSED = ItemFault("INVALID_CONFIG", "not on this cluster")
CONTROLLED = st.sampled_from(EVERY)
NAMES = st.sampled_from(["a.x", "a.y"])
TARGETS = {"x": "a.x", "y": "a.y", "z": "a.z"}
KEYS = st.sampled_from(sorted(TARGETS))
VALUES = st.sampled_from(["1", "2"])


def nothing_owned(kind: Kind) -> Collection[Key]:
    return ()


class AgendaMachine(RuleBasedStateMachine):
    """Knows by itself, in the plainest way, what the agenda must say."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.agenda = 1000.0, FlowAgenda()
        self.signalled = dict.fromkeys(EVERY, 0)
        self.failures = dict.fromkeys(EVERY, 0)
        self.retry_at: dict[Kinds, float] = {}
        self.refused: dict[str, tuple[str, int, float]] = {}
        self.created: dict[Key, float] = {}
        self.there: set[str] = set()
        self.comparisons: dict[str, int] = {}
        self.turns: set[str] = set()
        self.repeated: set[str] = set()
        self.started = False
        self.denied: set[str] = set()

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 31.0, LAGS + 1, 4000.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(records=st.integers(1, 3))
    def signal(self, records: int) -> None:
        self.agenda.signal(EVERY, records)
        self.signalled = {kinds: owed + records for kinds, owed in self.signalled.items()}

    @rule(kinds=CONTROLLED, explained=st.integers(0, 4))
    def poll(self, kinds: Kinds, explained: int) -> None:
        self.agenda.note_polled(kinds, Polled(differs=False, keys=TARGETS, explained=explained))
        shared = min(explained, self.signalled[kinds])
        self.signalled = {one: max(0, owed - shared) for one, owed in self.signalled.items()} | {kinds: 0}

    @rule(kinds=CONTROLLED)
    def fail(self, kinds: Kinds) -> None:
        self.agenda.of[kinds].failed(CoordinatorUnavailable("away"), self.now)
        self.retry_at[kinds] = self.now + min(2.0 ** self.failures[kinds], LONGEST_RECOMPARE_S)
        self.failures[kinds] += 1

    @rule(kinds=CONTROLLED)
    def work(self, kinds: Kinds) -> None:
        self.agenda.of[kinds].note_works()
        self.failures[kinds] = 0
        self.retry_at.pop(kinds, None)

    def ready(self, *changes: Change) -> Plan:
        compared = Comparison(make_plan(FLOW, changes), covered={one.key[0]: one.key[0] for one in changes})
        return self.agenda.of[TOPICS].hold_back(compared, nothing_owned, self.now).plan

    @rule(name=NAMES, value=VALUES, takes=st.booleans())
    def write(self, name: str, value: str, takes: bool) -> None:
        """Another value than the refused one is tried at once, the same one when its time has come."""
        change = config_change(name, "retention.ms", None, value)
        plan, (before, tries, due) = self.ready(change), self.refused.get(name, ("", 0, 0.0))
        waits = before == value and due > self.now
        assert (plan.changes, len(plan.refused)) == (((), 1) if waits else ((change,), 0))
        if waits:
            return
        self.learn(Outcome(change, None if takes else REFUSED))
        self.refused.pop(name, None)
        if not takes:
            tries = tries + 1 if before == value else 1
            self.refused[name] = value, tries, self.now + doubled(FIRST_RETRY_S, tries, LONGEST_RETRY_S)

    @rule(name=NAMES)
    def want_no_more(self, name: str) -> None:
        """What a comparison of a topic does not want any more is forgotten."""
        compared = Comparison(make_plan(FLOW, ()), covered={name: name})
        self.agenda.of[TOPICS].hold_back(compared, nothing_owned, self.now)
        self.refused.pop(name, None)

    def learn(self, outcome: Outcome) -> None:
        self.agenda.of[TOPICS].backed_off.learn([outcome], self.now)
        self.agenda.of[TOPICS].created.learn([outcome], self.now)

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        change = Change(Kind.TOPIC, (name,), None, TopicSpec(1))
        self.learn(Outcome(change))
        self.created[name,] = self.now

    @rule(shown=st.sets(NAMES))
    def list_target(self, shown: set[str]) -> None:
        """What was shown, or was not for long, is not waited for."""
        awaited = self.agenda.of[TOPICS].created.awaited(lambda key: key[0] in shown, self.now)
        self.created = {key: at for key, at in self.created.items() if key[0] not in shown and self.now - at < LAGS}
        assert set(awaited) == self.created.keys()

    @rule(there=st.sets(KEYS), also=st.sets(KEYS), everything=st.booleans())
    def begin(self, there: set[str], also: set[str], everything: bool) -> None:
        """A pass polls. What is gone is told, and begins anew should it come back."""
        keys, known = self.agenda.of[TOPICS].keys, {*self.comparisons, *self.turns, *also}
        turns = self.turns - keys.dirty
        assert keys.begin(there, also, everything=everything) == known - there
        self.comparisons = {key: left for key, left in self.comparisons.items() if key in there}
        self.comparisons |= {key: max(1, self.comparisons.get(key, 0)) for key in (also | turns) & there}
        self.there, self.turns, self.repeated = there, (self.turns - turns) & there, set()

    @rule(data=st.data())
    def differ(self, data: st.DataObject) -> None:
        """A poll finds it: it is compared now and once more, however often a comparison comes to nothing."""
        found = data.draw(st.sets(st.sampled_from(sorted(self.there)))) if self.there else set()
        self.agenda.of[TOPICS].keys.differs(found)
        self.comparisons |= dict.fromkeys(found, 2)

    @rule()
    def poll_all(self) -> None:
        """What differs after a start takes turns for its second comparison; later all keys take turns."""
        fresh = {key for key, left in self.comparisons.items() if left == 2}
        self.agenda.of[TOPICS].keys.all_polled(self.there)
        self.turns |= self.there if self.started else fresh
        if not self.started:
            self.comparisons |= dict.fromkeys(fresh, 1)
        self.started = True

    @rule(again=st.sets(KEYS), denied=st.sets(KEYS))
    def compare(self, again: set[str], denied: set[str]) -> None:
        """All that is dirty. What passes by itself is compared again, what may not be seen is tried again later."""
        mine = self.agenda.of[TOPICS]
        covered = {key: f"a.{key}" for key in mine.keys.dirty}
        why = {key: Unobserved(Kind.TOPIC_CONFIG, key) for key in denied & covered.keys()}
        plan = make_plan(FLOW, ())
        mine.note_compared(
            Comparison(plan, covered=covered, again=again & covered.keys(), unobserved=why), (), self.now
        )
        self.repeated |= {key for key in covered if self.comparisons.pop(key, 0) == 2}
        self.comparisons |= dict.fromkeys(covered.keys() & (again | self.repeated), 1)
        self.denied = (self.denied - covered.keys()) | why.keys()

    @rule(there=st.sets(KEYS))
    def retry(self, there: set[str]) -> None:
        """What could not be compared is tried again when its time has come, and not before."""
        keys = self.agenda.of[TOPICS].keys
        is_due = keys.retry_at() <= self.now
        self.denied = self.denied & there if is_due else self.denied
        assert keys.retried(there, self.now) == (self.denied if is_due else set())

    @rule(data=st.data())
    def write_topic(self, data: st.DataObject) -> None:
        """What was written must be forgotten by the watches of both sides, until they polled it."""
        name = data.draw(st.sampled_from(sorted(TARGETS)))
        mine = self.agenda.of[TOPICS]
        change = config_change(TARGETS[name], "retention.ms", None, "1")
        mine.note_written_names(Comparison(make_plan(FLOW, [change]), covered={name: TARGETS[name]}))
        assert name in mine.own_writes
        assert TARGETS[name] in mine.written

    @invariant()
    def no_comparison_is_forgotten_and_none_has_no_reason(self) -> None:
        keys = self.agenda.of[TOPICS].keys
        assert keys.dirty | keys.repeated == self.comparisons.keys()
        assert {key for key, left in self.comparisons.items() if left == 2} <= keys.dirty
        assert keys.owed.keys() == self.turns

    @invariant()
    def what_can_be_compared_makes_a_pass_due_now(self) -> None:
        mine = self.agenda.of[TOPICS]
        if mine.keys.dirty or mine.keys.repeated or mine.keys.owed:
            assert mine.due_at(self.now) == self.now
        else:
            assert mine.due_at(self.now) == min(mine.backed_off.next_at(), mine.keys.retry_at())
        assert set(mine.keys.unobserved) == self.denied

    @invariant()
    def a_signal_is_owed_until_it_is_polled_or_explained(self) -> None:
        assert {kinds: self.agenda.of[kinds].signalled for kinds in EVERY} == self.signalled

    @invariant()
    def a_refused_change_has_its_time(self) -> None:
        due = min((at for _, _, at in self.refused.values()), default=float("inf"))
        assert self.agenda.of[TOPICS].backed_off.next_at() == due

    @invariant()
    def the_next_pass_is_the_earliest_wish_that_counts(self) -> None:
        polls = {TOPICS: self.now + 3, ACLS: self.now + 2, GROUPS: self.now + 1}
        expected = [
            self.retry_at.get(kinds, at) for kinds, at in polls.items() if kinds in self.retry_at or kinds != GROUPS
        ]
        expected += [self.now + 60, self.agenda.full.due_at(self.now)]
        due = self.agenda.due_at(self.now, polls.items(), idle=GROUPS, awake=frozenset(Kind), others=[self.now + 60])
        assert due == min(expected)


@pytest.mark.hypothesis
def test_the_agenda_forgets_nothing_and_hurries_nothing() -> None:
    run_state_machine_as_test(AgendaMachine)
