"""Ours is what Lockstep created and what is still the same object; a crash between intent and outcome loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from sinks.faults import ClusterUnreachable, ItemFault
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.ownership import FRESH
from sinks.model.changes import ALLOW, Change, Kind, Outcome, ScramSpec
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import NOON, config_change, topic_change

TOPIC = "lockstep-ledger.a.internal"
READ = ("TOPIC", "a.t", "LITERAL", "User:x", "*", "READ", ALLOW)
CREATE_T, CREATE_ACL = topic_change("a.t", None, 1), Change(Kind.ACL, READ, None, ALLOW)
T, PRESENT = ("a.t",), {("a.t",): "id-1"}
TIMED_OUT = ItemFault("REQUEST_TIMED_OUT", "", retriable=True, unknown=True)
NOT_NOW = ItemFault("NOT_CONTROLLER", "", retriable=True)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster("b")


@pytest.fixture
def ledger(cluster: MemoryCluster, clock: Clock) -> Ledger:
    return Ledger(TOPIC, cluster, cluster, 1, clock)


def restarted(cluster: MemoryCluster, clock: Clock) -> Ledger:
    """As another process reads it."""
    return Ledger(TOPIC, cluster, cluster, 1, clock)


def test_created_topic_is_owned_with_its_id_and_its_intent_is_gone(
    ledger: Ledger, cluster: MemoryCluster, clock: Clock
) -> None:
    ledger.intend([CREATE_T])
    assert (ledger.owned(Kind.TOPIC), ledger.unsettled(Kind.TOPIC)) == (set(), {T})
    ledger.record([Outcome(CREATE_T)], {"a.t": "id-1"})
    again = restarted(cluster, clock)
    assert (again.owned_ids(Kind.TOPIC), again.unsettled(Kind.TOPIC), again.values(Entry.INTENT)) == (
        {"a.t": "id-1"},
        set(),
        {},
    )


def test_only_creations_of_what_can_be_owned_have_an_intent(ledger: Ledger) -> None:
    ledger.intend([topic_change("a.u", 1, 2), topic_change("a.v", 1, None), config_change("a.t", "x", None, "1")])
    assert ledger.values(Entry.INTENT) == {}


@pytest.mark.parametrize(
    ("change", "key", "topics"), [(CREATE_T, T, {"a.t": "id-1"}), (CREATE_ACL, READ, {})], ids=["topic", "acl"]
)
def test_after_a_crash_what_exists_now_and_did_not_before_is_ours(
    ledger: Ledger, cluster: MemoryCluster, clock: Clock, change: Change, key: tuple[str, ...], topics: dict[str, str]
) -> None:
    ledger.intend([change])
    clock.now += timedelta(minutes=1)
    again = restarted(cluster, clock)
    again.settle(change.kind, {key: "id-1"})
    assert (again.owned(change.kind), again.owned_ids(Kind.TOPIC), again.unsettled(change.kind)) == (
        {key},
        topics,
        set(),
    )


def test_intent_that_is_no_longer_fresh_makes_nothing_ours_for_somebody_else_may_have_created_it(
    ledger: Ledger, clock: Clock
) -> None:
    ledger.intend([CREATE_T])
    clock.now += FRESH + timedelta(seconds=1)
    ledger.settle(Kind.TOPIC, PRESENT)
    assert (ledger.owned(Kind.TOPIC), ledger.unsettled(Kind.TOPIC)) == (set(), set())


def test_intent_of_what_stays_unseen_is_as_old_as_its_first_attempt(ledger: Ledger, clock: Clock) -> None:
    for _ in range(3):
        ledger.recognize(Kind.TOPIC, {})
        ledger.intend([CREATE_T])
        ledger.record([Outcome(CREATE_T, TIMED_OUT)])
        clock.now += FRESH - timedelta(minutes=4)
    ledger.recognize(Kind.TOPIC, PRESENT)
    assert (ledger.owned(Kind.TOPIC), ledger.unsettled(Kind.TOPIC)) == (set(), set())


def test_what_is_created_after_all_is_ours_however_old_its_intent_is(ledger: Ledger, clock: Clock) -> None:
    ledger.intend([CREATE_T])
    clock.now += FRESH * 2
    ledger.recognize(Kind.TOPIC, {})
    ledger.intend([CREATE_T])
    ledger.record([Outcome(CREATE_T)], {"a.t": "id-1"})
    assert (ledger.owned_ids(Kind.TOPIC), ledger.values(Entry.INTENT)) == ({"a.t": "id-1"}, {})


def test_intent_of_what_was_sent_stays_although_a_later_attempt_was_refused_for_now(ledger: Ledger) -> None:
    for fault in (TIMED_OUT, NOT_NOW):
        ledger.intend([CREATE_ACL])
        ledger.record([Outcome(CREATE_ACL, fault)])
    ledger.recognize(Kind.ACL, {READ: ""})
    assert ledger.owned(Kind.ACL) == {READ}


@pytest.mark.parametrize(
    ("outcome", "waits"),
    [
        (Outcome(CREATE_T, TIMED_OUT), True),
        (Outcome(CREATE_T, NOT_NOW), False),
        (Outcome(CREATE_T, ItemFault("POLICY_VIOLATION", "no")), False),
        (Outcome(CREATE_T, already=True), False),
    ],
    ids=["may have happened", "refused for now", "refused", "was there"],
)
def test_creation_that_failed_is_not_ours_unless_it_may_have_happened(
    ledger: Ledger, outcome: Outcome, waits: bool
) -> None:
    ledger.intend([CREATE_T])
    ledger.record([outcome])
    assert (ledger.owned(Kind.TOPIC), ledger.unsettled(Kind.TOPIC)) == (set(), {T} if waits else set())


def test_id_that_was_not_learned_at_once_is_learned_while_it_is_fresh(ledger: Ledger, clock: Clock) -> None:
    ledger.record([Outcome(CREATE_T)])
    assert (ledger.owned_ids(Kind.TOPIC), ledger.unsettled(Kind.TOPIC)) == ({"a.t": ""}, {T})
    ledger.settle(Kind.TOPIC, {T: ""})
    assert ledger.owned_ids(Kind.TOPIC) == {"a.t": ""}
    ledger.settle(Kind.TOPIC, PRESENT)
    assert ledger.owned_ids(Kind.TOPIC) == {"a.t": "id-1"}


def test_id_that_comes_too_late_may_be_another_topic_s(ledger: Ledger, clock: Clock) -> None:
    ledger.record([Outcome(CREATE_T)])
    clock.now += FRESH + timedelta(seconds=1)
    ledger.settle(Kind.TOPIC, PRESENT)
    assert ledger.owned_ids(Kind.TOPIC) == {"a.t": ""}


@pytest.mark.parametrize(("known", "learned"), [("id-1", "id-1"), ("id-0", ""), (None, "")])
def test_topic_of_a_version_without_ids_is_ours_by_id_once_the_offset_histories_name_that_id(
    ledger: Ledger, known: str | None, learned: str
) -> None:
    ledger.put({(Entry.OWNED, ("topic", "a.t")): ""})
    if known:
        ledger.put({(Entry.TOPIC_IDS, ("t",)): f"source-id {known} -1"})
    ledger.settle(Kind.TOPIC, PRESENT)
    assert (ledger.owned(Kind.TOPIC), ledger.owned_ids(Kind.TOPIC)) == ({T}, {"a.t": learned})


def test_what_was_seen_missing_is_not_ours_any_more(ledger: Ledger, cluster: MemoryCluster, clock: Clock) -> None:
    user = ("alice", "SCRAM-SHA-512")
    ledger.record([Outcome(CREATE_T), Outcome(Change(Kind.SCRAM_USER, user, None, ScramSpec(4096, "1")))])
    ledger.disown(Kind.TOPIC, [T])
    ledger.disown(Kind.SCRAM_USER, [user])
    again = restarted(cluster, clock)
    assert (again.owned(Kind.TOPIC), again.owned(Kind.SCRAM_USER), again.versions(Kind.SCRAM_USER)) == (
        set(),
        set(),
        {},
    )


def test_intent_that_was_written_although_its_write_failed_makes_nothing_ours(
    ledger: Ledger, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = cluster.append_log

    def late(topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        whole(topic, records)
        raise ClusterUnreachable("no acknowledgement came")

    with monkeypatch.context() as broken:
        broken.setattr(cluster, "append_log", late)
        with pytest.raises(ClusterUnreachable):
            ledger.intend([CREATE_T])
    # Nothing was created; another client makes it.
    ledger.refresh()
    ledger.recognize(Kind.TOPIC, {T: "id-of-theirs"})
    assert (ledger.owned(Kind.TOPIC), ledger.values(Entry.INTENT)) == (set(), {})
    # Nor does that keep it from becoming Lockstep's later.
    ledger.intend([CREATE_T])
    ledger.recognize(Kind.TOPIC, {T: "id-1"})
    assert ledger.owned(Kind.TOPIC) == {T}


def test_intent_of_what_was_sent_stays_although_a_later_write_of_it_failed(
    ledger: Ledger, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.intend([CREATE_ACL])
    ledger.record([Outcome(CREATE_ACL, TIMED_OUT)])

    def silent(topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        raise ClusterUnreachable("no acknowledgement came")

    other = Change(Kind.ACL, ("TOPIC", "a.t", "LITERAL", "User:y", "*", "READ", ALLOW), None, ALLOW)
    with monkeypatch.context() as broken:
        broken.setattr(cluster, "append_log", silent)
        with pytest.raises(ClusterUnreachable):
            ledger.intend([CREATE_ACL, other])
    ledger.refresh()
    ledger.recognize(Kind.ACL, {READ: ""})
    assert ledger.owned(Kind.ACL) == {READ}


@pytest.mark.parametrize("hours", [-2, 2])
def test_intent_is_not_fresh_for_longer_because_the_clock_jumped(ledger: Ledger, clock: Clock, hours: int) -> None:
    """What exists by then, another client may have made."""
    ledger.intend([CREATE_ACL])
    clock.now += timedelta(hours=hours)
    ledger.recognize(Kind.ACL, {READ: ""})
    assert (ledger.owned(Kind.ACL), ledger.unsettled(Kind.ACL)) == (set(), set())


def test_clock_of_another_machine_that_is_a_little_late_costs_no_ownership(ledger: Ledger, clock: Clock) -> None:
    ledger.intend([CREATE_ACL])
    clock.now -= timedelta(seconds=30)
    ledger.recognize(Kind.ACL, {READ: ""})
    assert ledger.owned(Kind.ACL) == {READ}
