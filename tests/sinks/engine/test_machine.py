"""A machine that looks for harm: changes, foreign hands, gaps in listings, failing writes, crashes, a clock that jumps.

Whatever the order: nothing foreign is deleted, no copy goes while its source's topic is there, nothing is written while
paused, and when it is quiet the target equals what is desired and everything that was created is owned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sinks.engine.ledger_entries import Entry
from sinks.engine.model import Kind
from sinks.kafka.ports.cluster import TopicSpec
from streaming.errors import LockstepError
from tests.sinks.builders import World, flow_settings, overrides_of, set_config
from tests.sinks.engine.faulty import Crash, FaultyCluster, When
from tests.sinks.kinds.acls.acl_builders import acl

TOPICS = st.sampled_from(["w", "x", "y", "z"])
CONFIGS = st.sampled_from(["retention.ms", "cleanup.policy"])
VALUES = st.none() | st.sampled_from(["1", "2"])
ACLS = st.sampled_from([acl(f"{kind} READ User:{user} TOPIC {name}") for kind, user, name in (
    ("ALLOW", "alice", "x"), ("DENY", "bob", "y"), ("ALLOW", "carol", "z"))])  # fmt: skip
FOREIGN = acl("ALLOW READ User:dora TOPIC a.x")
SETTLES_WITHIN = 40
"""Passes of a minute each: refused changes wait five minutes at most, a topic's absence a minute."""


class Machine(RuleBasedStateMachine):
    """One flow; `hand`: ids of the target's topics that somebody else created."""

    @initialize()
    def begin(self) -> None:
        self.source, self.target = FaultyCluster("a", "id-of-a"), FaultyCluster("b", "id-of-b")
        self.source.create_topics({name: TopicSpec(1) for name in ("stays", "w", "x")})
        self.target.create_topics({"theirs": TopicSpec(1, configs=(("retention.ms", "7"),))})
        self.hand = {self.target.topics["theirs"].id: "theirs"}
        self.target.made.clear()
        self.world = World(flow_settings(topic_deletes=True), self.source, self.target)
        self.world.target_acls.bindings.add(FOREIGN)
        self.paused = False
        self.step(1.0)

    @contextmanager
    def by_hand(self) -> Iterator[None]:
        """Somebody else's client, which nothing keeps from writing."""
        target = self.target
        before, made, writes = (target.reachable, target.failing), set(target.made), target.writes
        target.reachable, target.failing = True, None
        yield
        (target.reachable, target.failing), target.made, target.writes = before, made, writes

    @rule(after=st.sampled_from([1.0, 15.0, 61.0, 3600.0]), everything=st.booleans())
    def step(self, after: float, everything: bool = False) -> None:
        """A pass. No topic may go whose source's topic is there, hidden or not."""
        before, writes = {name: one.id for name, one in self.target.topics.items()}, self.target.writes
        try:
            with suppress(LockstepError):
                self.world.run_pass(after=after, everything=everything)
        except Crash:
            self.world.restart()
        if self.paused:
            assert self.target.writes == writes, "written while paused"
        for name, topic_id in before.items():
            if name not in self.target.topics:
                assert topic_id in self.target.made, f"{name} was not Lockstep's"
                assert name.removeprefix("a.") not in self.source.topics, f"{name} is still fed"

    @rule(topic=TOPICS)
    def create_on_the_source(self, topic: str) -> None:
        self.source.topics.pop(topic, None)
        self.source.create_topics({topic: TopicSpec(1)})

    @rule(topic=TOPICS)
    def delete_on_the_source(self, topic: str) -> None:
        self.source.topics.pop(topic, None)

    @rule(topic=TOPICS, name=CONFIGS, value=VALUES)
    def configure_on_the_source(self, topic: str, name: str, value: str | None) -> None:
        if topic in self.source.topics:
            set_config(self.source, topic, name, value)

    @rule(hidden=st.sets(st.sampled_from(["stays", "w", "x", "y", "z"])))
    def hide(self, hidden: set[str]) -> None:
        self.source.hidden = hidden

    @rule(topic=TOPICS, name=CONFIGS, value=VALUES)
    def configure_on_the_target(self, topic: str, name: str, value: str | None) -> None:
        if f"a.{topic}" in self.target.topics:
            with self.by_hand():
                set_config(self.target, f"a.{topic}", name, value)

    @rule(topic=TOPICS)
    def recreate_by_hand(self, topic: str) -> None:
        self.delete_on_the_target(topic)
        with self.by_hand():
            self.target.create_topics({f"a.{topic}": TopicSpec(1)})
        self.hand[self.target.topics[f"a.{topic}"].id] = f"a.{topic}"

    @rule(topic=TOPICS)
    def delete_on_the_target(self, topic: str) -> None:
        gone = self.target.topics.pop(f"a.{topic}", None)
        if gone is not None:
            self.hand.pop(gone.id, None)

    @rule(one=ACLS, there=st.booleans())
    def grant_or_revoke_on_the_source(self, one: object, there: bool) -> None:
        bindings = self.world.source_acls.bindings
        bindings.add(one) if there else bindings.discard(one)  # type: ignore[arg-type]  # ACLS has bindings alone

    @rule(how=st.sampled_from(list(When)), countdown=st.integers(0, 6))
    def fail_a_write(self, how: When, countdown: int) -> None:
        self.target.failing, self.target.countdown = how, countdown

    @rule(reachable=st.booleans())
    def target_goes_or_comes(self, reachable: bool) -> None:
        self.target.reachable = reachable

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @precondition(lambda self: self.target.reachable and self.target.failing is None)
    @rule(paused=st.booleans())
    def pause_or_resume(self, paused: bool) -> None:
        """A running job takes it in with its next full comparison."""
        self.world.ledger().put({(Entry.PAUSED, (kind.value,)): "true" if paused else None for kind in Kind})
        self.paused = paused
        self.step(1.0, everything=True)

    @invariant()
    def nothing_foreign_is_gone(self) -> None:
        if not hasattr(self, "world"):
            return
        ids = {one.id for one in self.target.topics.values()}
        assert self.hand.keys() <= ids
        assert overrides_of(self.target, "theirs") == {"retention.ms": "7"}
        assert FOREIGN in self.world.target_acls.bindings

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.target.reachable, self.target.failing, self.source.hidden = True, None, set()
        if self.paused:
            self.pause_or_resume(False)
        for _ in range(SETTLES_WITHIN):
            self.step(60.0, everything=True)
        self.nothing_foreign_is_gone()
        for topic in self.source.topics:
            assert overrides_of(self.target, f"a.{topic}") == overrides_of(self.source, topic)
        owned = {key[0] for key in self.world.ledger().owned(Kind.TOPIC)}
        for name, one in self.target.topics.items():
            if name.startswith("a.") and one.id in self.target.made:
                assert name in owned, f"{name} was created and is not owned"
                assert name.removeprefix("a.") in self.source.topics, f"{name} is left over"


Machine.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestMachine = Machine.TestCase
