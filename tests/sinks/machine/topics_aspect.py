"""Topics and their configs: created, deleted, recreated, altered on both sides, hidden by listings."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sinks.engine.report import Report
from sinks.kafka.ports.cluster import TopicSpec
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Key, Kind, Op
from tests.sinks.builders import World, overrides_of, set_config
from tests.sinks.machine.hazards import Written
from tests.sinks.machine.stage import Stage
from tests.sinks.machine.surroundings import Difference

TOPICS = st.sampled_from(["w", "x", "y", "z"])
CONFIGS = st.sampled_from(["retention.ms", "cleanup.policy"])
VALUES = st.none() | st.sampled_from(["1", "2"])


class TopicsAspect(Stage):
    """`by_hand`: ids of the target's topics that another client created, with their names."""

    def populate(self) -> None:
        super().populate()
        self.source.create_topics({name: TopicSpec(1) for name in ("stays", "w", "x")})
        self.target.create_topics({"theirs": TopicSpec(1, configs=(("retention.ms", "7"),))})
        self.by_hand = {self.target.topics["theirs"].id: "theirs"}
        self.intended: set[str] = set()
        self.before = self._ids()

    def _ids(self) -> dict[str, str]:
        return {name: one.id for name, one in self.target.topics.items()}

    @rule(topic=TOPICS)
    def create_on_the_source(self, topic: str) -> None:
        self.source.topics.pop(topic, None)
        self.source.create_topics({topic: TopicSpec(1)})

    @rule(topic=TOPICS)
    def grow_on_the_source(self, topic: str) -> None:
        if topic in self.source.topics:
            self.source.topics[topic].partitions += 1

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
            overrides = self.target.topics[f"a.{topic}"].overrides
            overrides.pop(name, None) if value is None else overrides.update({name: value})

    @rule(topic=TOPICS)
    def recreate_by_hand(self, topic: str) -> None:
        self.delete_on_the_target(topic)
        reachable, made = self.target.reachable, set(self.target.made)
        self.target.reachable = True
        with self.hazard.aside():
            self.target.create_topics({f"a.{topic}": TopicSpec(1)})
        self.target.reachable, self.target.made = reachable, made
        made_now = self.target.topics[f"a.{topic}"].id
        if not self.remembered(Kind.TOPIC, (f"a.{topic}",)):
            self.by_hand[made_now] = f"a.{topic}"
        elif self.remembering(Kind.TOPIC, (f"a.{topic}",), Entry.INTENT):
            # What appears soon after an intent counts as Lockstep's own.
            self.intended.add(made_now)

    @rule(topic=TOPICS)
    def delete_on_the_target(self, topic: str) -> None:
        gone = self.target.topics.pop(f"a.{topic}", None)
        if gone is not None:
            self.by_hand.pop(gone.id, None)

    @precondition(lambda self: self.trusted and self.target.reachable)
    @rule(topic=TOPICS)
    def batch_is_drained(self, topic: str) -> None:
        if topic in self.source.topics and f"a.{topic}" in self.target.topics:
            self.drain(topic, [0] * self.source.topics[topic].partitions)

    @precondition(lambda self: self.moved and self.trusted and self.target.reachable)
    @rule()
    def fences_are_lifted(self) -> None:
        self.lift_fences()

    @rule(topic=TOPICS, name=CONFIGS)
    def target_refuses(self, topic: str, name: str) -> None:
        self.target.policy = lambda where, config, value: (
            "not here" if (where, config) == (f"a.{topic}", name) else None
        )

    @rule()
    def target_refuses_no_more(self) -> None:
        self.target.policy = lambda where, config, value: None

    def remembered(self, kind: Kind, key: Key) -> bool:
        """Topics are told apart by their ids, once these are known."""
        return (kind is Kind.TOPIC and any(key in ledger.unsettled(kind) for ledger in self.ledgers().values())) or (
            kind is not Kind.TOPIC and super().remembered(kind, key)
        )

    def forget(self) -> None:
        super().forget()
        self.by_hand |= {one: name for name, one in self._ids().items() if one in self.target.made}
        self.target.made.clear()

    def check_foreign(self) -> None:
        super().check_foreign()
        assert self.by_hand.keys() <= set(self._ids().values()), "a topic of another client is gone"
        assert overrides_of(self.target, "theirs") == {"retention.ms": "7"}

    def run(self, world: World, after: float, everything: bool, force: bool = False) -> Report | None:
        self.before = self._ids()
        return super().run(world, after, everything, force)

    def check_pass(self, world: World, written: Collection[Written], report: Report | None) -> None:
        """No topic goes whose source's topic is there, hidden or not."""
        super().check_pass(world, written, report)
        for kind, op, (name, *_) in written:
            if kind is Kind.TOPIC and op is Op.DELETE:
                assert self.before[name] in self.target.made | self.intended, f"{name} was not Lockstep's"
                assert name.removeprefix("a.") not in self.source.topics, f"{name} is still fed"

    def told_later(self) -> set[Kind]:
        """A topic that was created without a config that is refused gets its word in the next pass."""
        return super().told_later() | ({Kind.TOPIC_CONFIG} if self.before.keys() != self._ids().keys() else set())

    def differences(self, world: World) -> Iterator[Difference]:
        yield from super().differences(world)
        for topic in self.source.topics.keys() - self.source.hidden:
            if not topic.startswith(("heartbeats", "mm2-")):
                yield from self._of(topic, f"a.{topic}")

    def _of(self, topic: str, name: str) -> Iterator[Difference]:
        copy = self.target.topics.get(name)
        if copy is None or copy.partitions < self.source.topics[topic].partitions:
            yield Kind.TOPIC, (name,)
        if copy is not None:
            wanted, there = overrides_of(self.source, topic), copy.overrides
            yield from (
                (Kind.TOPIC_CONFIG, (name, key))
                for key in wanted.keys() | there.keys()
                if wanted.get(key) != there.get(key)
            )

    def left(self) -> set[Difference]:
        """What is gone on the source may take a while to go; what may lack an owner goes where a ledger has it."""
        owned = {one for ledger in self.ledgers().values() for one in ledger.owned_ids(Kind.TOPIC).values()}
        surplus = {
            (Kind.TOPIC, (name,)): one.id
            for name, one in self.target.topics.items()
            if name.startswith("a.") and one.id in self.target.made and name[2:] not in self.source.topics
        }
        return super().left() | {item for item, found in surplus.items() if item not in self.unowned or found in owned}

    def clear(self) -> None:
        super().clear()
        self.source.hidden = set()
        self.target_refuses_no_more()

    def check_owned(self) -> None:
        super().check_owned()
        owned = self.world.ledger().owned_ids(Kind.TOPIC)
        for name, one in self.target.topics.items():
            if one.id in self.target.made and (Kind.TOPIC, (name,)) not in self.unowned and name.startswith("a."):
                assert owned.get(name) == one.id, f"{name} was created and is not owned"
            assert one.id not in self.by_hand or owned.get(name) != one.id, f"{name} is not Lockstep's"
