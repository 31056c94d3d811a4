"""A flow goes on only with a ledger that has all that was written to it, and that keeps it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.cluster import LogChunk, Record
from sinks.ledger.ledger import LEDGER_TOPIC_CONFIGS, Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, overrides_of, put_topic, set_config, world_in_step


@pytest.fixture
def world() -> World:
    return world_in_step()


def test_ledger_that_lost_what_this_process_wrote_stops_the_flow(world: World) -> None:
    put_topic(world.source, "z")
    world.run_pass()
    assert "a.z" in world.target.topics
    world.target.topics[world.settings.internal.ledger].records.pop()
    with pytest.raises(LedgerUntrusted, match="lost its tail"):
        world.run_pass(everything=True)


class CompactedCluster(MemoryCluster):
    """The broker has compacted away each record that a tombstone follows, and the tombstone."""

    def read_log_from(self, topic: str, position: int) -> LogChunk:
        read = super().read_log_from(topic, position)
        forgotten = {key for _, key, value in read.records if value is None}
        return LogChunk([placed for placed in read.records if placed.key not in forgotten], read.whole)


def test_what_was_forgotten_on_purpose_may_be_compacted_away() -> None:
    cluster, place = CompactedCluster("b"), (Entry.PAUSED, ("acl",))
    ledger = Ledger("ledger", cluster, cluster, 1)
    ledger.put({place: "true"})
    ledger.put({place: None})
    for _ in range(2):
        ledger.refresh()
    assert ledger.paused() == set()


def loses_the_last(records: list[Record]) -> None:
    records.pop()


def loses_the_last_and_grows(records: list[Record]) -> None:
    records[-1:] = [(b'["PAUSED","topic"]', None)] * 3


@pytest.mark.parametrize("befalls", [loses_the_last, loses_the_last_and_grows])
@pytest.mark.parametrize("count", [1, 2])
def test_loss_of_a_record_that_was_read_is_noticed_though_the_log_grew_past_it(
    count: int, befalls: Callable[[list[Record]], None]
) -> None:
    cluster = MemoryCluster("b")
    ledger = Ledger("ledger", cluster, cluster, 1)
    ledger.put({(Entry.PAUSED, ("acl",)): "true"})
    if count == 2:
        ledger.put({(Entry.PAUSED, ("topic",)): "true"})
    ledger.refresh()
    befalls(cluster.topics["ledger"].records)
    for _ in range(2):
        with pytest.raises(LedgerUntrusted, match=r"ends before|lost its tail"):
            ledger.refresh()


def test_the_newest_record_that_was_read_may_be_compacted_away() -> None:
    cluster, place = CompactedCluster("b"), (Entry.PAUSED, ("acl",))
    ledger = Ledger("ledger", cluster, cluster, 1)
    ledger.put({place: "true"})
    ledger.refresh()
    ledger.put({place: None})
    for _ in range(2):
        ledger.refresh()
    ledger.put({place: "true"})
    assert ledger.paused() == {Kind.ACL}


@pytest.mark.parametrize("befalls", [loses_the_last, loses_the_last_and_grows])
@pytest.mark.parametrize("last", ["true", None])
def test_loss_of_a_record_is_noticed_though_an_older_one_of_its_key_is_still_unread(
    last: str | None, befalls: Callable[[list[Record]], None]
) -> None:
    cluster, place = MemoryCluster("b"), (Entry.PAUSED, ("acl",))
    ledger = Ledger("ledger", cluster, cluster, 1)
    for value in ("false", last):
        ledger.put({place: value})
    befalls(cluster.topics["ledger"].records)
    for _ in range(2):
        with pytest.raises(LedgerUntrusted, match="lost its tail"):
            ledger.refresh()


def test_no_pass_goes_on_between_the_full_comparisons_that_a_ledger_stops(world: World) -> None:
    world.target.topics[world.settings.internal.ledger].overrides["cleanup.policy"] = "delete"
    set_config(world.source, "x", "retention.ms", "2")
    with pytest.raises(LedgerUntrusted):
        world.run_pass(everything=True)
    with pytest.raises(LedgerUntrusted):
        world.run_pass(after=1.0)
    assert world.target.writes == 0


def recreated(world: World) -> None:
    """The ledger's topic is deleted and made again, with all that was in it but what is paused."""
    topic = world.settings.internal.ledger
    kept = [(key, value) for key, value in world.target.topics[topic].records if b"PAUSED" not in key]
    world.target.delete_topics([topic])
    world.target.create_log(topic, 1, LEDGER_TOPIC_CONFIGS)
    world.target.append_log(topic, [*kept, *kept])
    world.target.writes = 0


def test_ledger_that_was_recreated_stops_the_flow_however_long_the_new_one_is(world: World) -> None:
    world.ledger().put({(Entry.PAUSED, ("topic-config",)): "true"})
    world.run_pass(everything=True)
    recreated(world)
    set_config(world.source, "x", "retention.ms", "2")
    for _ in range(2):
        with pytest.raises(LedgerUntrusted, match="another topic id than before"):
            world.run_pass(everything=True)
    assert world.target.writes == 0


def test_ledger_that_was_recreated_while_another_process_led_stops_the_flow(world: World) -> None:
    world.run_pass(everything=True)
    recreated(world)
    flow_ledger = world.reconcile._ledger
    for _ in range(2):
        with pytest.raises(LedgerUntrusted, match="another topic id than before"):
            flow_ledger.read_anew()


def test_ledger_that_was_recreated_between_two_full_comparisons_is_noticed_before_anything_is_written(
    world: World,
) -> None:
    world.run_pass(everything=True)
    recreated(world)
    set_config(world.source, "x", "retention.ms", "2")
    with pytest.raises(LedgerUntrusted, match="another topic id than before"):
        world.run_pass()
    assert world.target.writes == 0


def test_ledger_that_was_recreated_in_the_midst_of_a_pass_ends_it_before_the_next_request(world: World) -> None:
    put_topic(world.source, "z")
    set_config(world.source, "x", "retention.ms", "2")
    compared = world.reconcile.compare(everything=True)
    with pytest.raises(LedgerUntrusted, match="another topic id than before"):
        world.reconcile.apply(compared, lambda done, total: recreated(world))
    assert "a.z" in world.target.topics
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_ledger_that_this_process_made_itself_is_known_from_its_first_writes_on() -> None:
    world = World()
    put_topic(world.source, "x")
    world.run_pass()
    recreated(world)
    with pytest.raises(LedgerUntrusted, match="another topic id than before"):
        world.reconcile._ledger.read_anew()


def test_brokers_without_topic_ids_have_a_ledger_all_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.target, "topic_ids", lambda topics: dict.fromkeys(topics, ""))
    put_topic(world.source, "z")
    world.run_pass(everything=True)
    world.run_pass(everything=True)
    assert "a.z" in world.target.topics


def test_of_records_that_are_read_together_none_is_taken_in_where_one_is_refused(world: World) -> None:
    ledger = world.ledger()
    ledger.put({(Entry.PAUSED, ("acl",)): ""})
    world.ledger().put({(Entry.PAUSED, ("acl",)): None, (Entry.PAUSED, ("topic",)): ""})
    world.target.append_log(world.settings.internal.ledger, [(b'["OF_THE_FUTURE"]', b"x")])
    with pytest.raises(LedgerUntrusted):
        ledger.refresh()
    assert ledger.paused() == {Kind.ACL}
