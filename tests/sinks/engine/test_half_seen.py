"""What a cluster shows in part, or what another hand wrote, neither hides a difference nor widens what may be done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.faults import ClusterUnreachable, ItemFault, LedgerUntrusted, Observed
from sinks.kafka.ports.cluster import Record, TopicConfigs
from sinks.model.changes import Kind
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.memory.memory_cluster import MemoryCluster, PlainWatch
from tests.memory.memory_users import Stored
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic, set_config, world_in_step
from tests.sinks.kinds.acls.acl_builders import acl


def granted(number: int, prefix: str = "") -> object:
    return acl(f"ALLOW READ User:alice TOPIC {prefix}x{number}")


def test_deletion_limit_is_a_share_of_what_is_there_not_of_what_was() -> None:
    world = World()
    for number in range(40):
        put_topic(world.source, f"x{number}")
        world.source_acls.bindings.add(granted(number))  # type: ignore[arg-type]  # a binding
    world.settle()
    for number in range(1, 40):
        world.source_acls.bindings.discard(granted(number))  # type: ignore[arg-type]  # a binding
    for number in range(12, 40):
        world.target_acls.bindings.discard(granted(number, "a."))  # type: ignore[arg-type]  # a binding
    report = world.run_until_deleted(after=3)
    assert "11 of 12" in report.trouble.faulted[Kind.ACL]
    assert len(world.target_acls.bindings) == 12


def test_kind_that_the_limit_stops_stays_so_between_its_comparisons_and_is_audited_once() -> None:
    world = World()
    for number in range(20):
        put_topic(world.source, f"x{number}")
        world.source_acls.bindings.add(granted(number))  # type: ignore[arg-type]  # a binding
    world.settle()
    for number in range(15):
        world.source_acls.bindings.discard(granted(number))  # type: ignore[arg-type]  # a binding
    world.run_until_deleted(after=15)
    reports = [world.run_pass() for _ in range(16)]
    assert all(Kind.ACL in report.trouble.faulted for report in reports)
    assert {len(report.plan.refused) for report in reports} == {15}
    assert sum(event.op == "delete" for event in world.events()) == 15


class Half(MemoryCluster):
    """Lists `x` or `a.x` without partitions or not at all, and does not describe it, on demand."""

    faulty = hidden = undescribed = False

    def list_topics(self) -> dict[str, int]:
        listed = super().list_topics()
        if self.hidden:
            listed.pop("x", None)
        return {name: 0 if self.faulty and name.endswith("x") else count for name, count in listed.items()}

    def describe_topic_configs(self, topics: object) -> Observed[str, TopicConfigs]:
        seen = super().describe_topic_configs(topics)  # type: ignore[arg-type]  # names
        if not self.undescribed or "x" not in seen.items:
            return seen
        fault = ItemFault("UNKNOWN_TOPIC_OR_PART", "", retriable=True)
        return Observed({k: v for k, v in seen.items.items() if k != "x"}, {**seen.errors, "x": fault})


def test_topic_of_the_target_that_is_listed_with_an_error_stops_nothing_else() -> None:
    target = Half("b", "id-of-b")
    world = World(target=target)
    put_topic(world.source, "x", 3)
    world.settle()
    target.faulty = True
    put_topic(world.source, "new")
    world.run_pass(after=61)
    assert "a.new" in target.topics
    assert target.topics["a.x"].partitions == 3


def test_difference_that_waits_while_a_listing_lacks_its_topic_is_compared_when_it_is_back() -> None:
    source = Half("a", "id-of-a")
    world = World(source=source)
    # The watch asks another broker, which shows everything.
    other = MemoryCluster("a", "id-of-a", topics=source.topics)
    world.controller(Kind.TOPIC)._source_watch = PlainWatch(other)  # type: ignore[attr-defined]  # of a TopicController
    put_topic(source, "x", retention_ms="1")
    put_topic(source, "y")
    world.settle()
    for _ in range(3):
        world.run_pass(after=61)
    set_config(source, "x", "retention.ms", "86400000")
    source.undescribed = True
    world.run_pass()
    source.undescribed, source.hidden = False, True
    world.run_pass()
    source.hidden = False
    for _ in range(3):
        world.run_pass(after=61)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "86400000"}


class FaultyAudit(MemoryCluster):
    """Takes no audit event, on demand."""

    failing = False

    def append_log(self, topic: str, records: list[Record]) -> list[int]:  # type: ignore[override]  # a sequence of them
        if self.failing and "audit" in topic:
            raise ClusterUnreachable("b: the audit topic has no leader")
        return super().append_log(topic, records)


def test_event_that_could_not_be_written_is_written_by_the_next_pass_though_nothing_else_happens() -> None:
    target = FaultyAudit("b", "id-of-b")
    world = World(target=target)
    put_topic(world.source, "x")
    world.settle()
    before = len(world.events())
    target.failing = True
    set_config(world.source, "x", "retention.ms", "5")
    with pytest.raises(ClusterUnreachable):
        world.run_pass()
    target.failing = False
    world.run_pass()
    assert len(world.events()) == before + 1


@pytest.mark.parametrize("key", [b'["HISTORY",["t"],0]', b'["OWNED"]', b'["OVERRIDE", "flow", "topics"]', b"[]", b"{}"])
def test_record_with_no_key_of_lockstep_s_is_refused_and_a_tombstone_mends_it(key: bytes) -> None:
    world = world_in_step()
    world.target.append_log(world.settings.internal.ledger, [(key, b"x")])
    with pytest.raises(LedgerUntrusted):
        world.ledger()
    world.target.append_log(world.settings.internal.ledger, [(key, None)])
    assert world.ledger().owned(Kind.TOPIC) == {("a.x",), ("a.y",)}


class NamesTheLedger(IdentityReplicationPolicy):
    """Names Lockstep's own topics as it likes."""

    def ledger_topic(self, source: str) -> str:
        return f"ops.ledger.{source}"

    def audit_topic(self, source: str) -> str:
        return f"ops.audit.{source}"


@pytest.mark.parametrize("own", ["ops.ledger.a", "ops.audit.a"])
def test_topic_of_the_source_never_becomes_one_of_lockstep_s_own(own: str) -> None:
    settings = flow_settings(policy=NamesTheLedger())
    world = World(replace(settings, safety=replace(settings.safety, ledger_secret="sixteen characters or more")))
    put_topic(world.source, "orders")
    world.settle()
    before = overrides_of(world.target, own)
    put_topic(world.source, own, 3, cleanup_policy="delete", retention_ms="1000")
    report = world.run_pass(everything=True)
    assert (overrides_of(world.target, own), world.target.topics[own].partitions) == (before, 1)
    assert [refusal.key for refusal in report.plan.refused] == [(own,)]


class Leaking:
    """A provider whose error holds a secret."""

    def credential(self, user: str) -> None:
        raise RuntimeError("GET https://vault/v1?token=s3cret failed")

    def version(self, user: str) -> str | None:
        raise RuntimeError("GET https://vault/v1?token=s3cret failed")

    def close(self) -> None:
        """Nothing."""


def test_error_of_a_provider_is_its_users_alone_and_shows_no_text_of_its_own() -> None:
    world = World(provider=Leaking())  # type: ignore[arg-type]  # another provider
    put_topic(world.source, "x")
    world.source_acls.bindings.add(acl("ALLOW READ User:alice TOPIC x"))
    world.source_users.stored["alice", "SCRAM-SHA-512"] = Stored(4096, "p")
    world.run_pass()
    report = world.run_pass(after=61)
    assert "a.x" in world.target.topics
    assert "RuntimeError" in str(report.plan.as_json())
    assert "s3cret" not in str(report.plan.as_json())
