"""With a secret in the file nothing in the ledger is believed that is not signed with it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.faults import LedgerUntrusted
from sinks.kinds.offsets.stored_memory import store_histories
from sinks.kinds.offsets.sync_history import History
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.seal import SIGNED, Seal, Unwrapped, unsealed
from sinks.model.changes import Kind
from streaming.mm2.records import TopicPartition
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import NOON

TOPIC = "lockstep-ledger.a.internal"
SECRET = "a secret of sixteen or more"
PAUSED = {(Entry.PAUSED, ("topic",)): ""}
DATA = st.none() | st.binary(max_size=40)


def opened(cluster: MemoryCluster, secret: str | None = SECRET, flow: str = "a->b") -> Ledger:
    return Ledger(TOPIC, cluster, cluster, 1, lambda: NOON, Seal(flow, secret))


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster("b")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=20), DATA)
def test_what_was_signed_is_read_again(key: bytes, data: bytes | None) -> None:
    seal = Seal("a->b", SECRET)
    value = seal.wrap(key, data, 7)
    assert value is not None
    assert seal.unwrap(key, value) == Unwrapped(data, 7)
    assert unsealed(value) == data


SIGNED_FOR = st.tuples(st.sampled_from(["a->b", "b->a"]), st.binary(max_size=20), DATA, st.integers(0, 2))


@settings(max_examples=60, deadline=None)
@given(SIGNED_FOR, SIGNED_FOR)
def test_signatures_are_equal_only_for_the_same_flow_key_value_and_time(
    one: tuple[str, bytes, bytes | None, int], other: tuple[str, bytes, bytes | None, int]
) -> None:
    wrapped = [Seal(flow, SECRET).wrap(key, data, at) for flow, key, data, at in (one, other)]
    signatures = {SIGNED.decode(value)["signature"] for value in wrapped if value is not None}
    assert len(signatures) == len({one, other})


def test_whole_ledger_is_signed_and_read_by_who_has_the_secret(cluster: MemoryCluster) -> None:
    where, ledger = TopicPartition("t", 0), opened(cluster)
    ledger.put(PAUSED | {(Entry.PAUSED, ("acl",)): ""})
    ledger.put({(Entry.PAUSED, ("acl",)): None})
    store_histories(ledger, {where: History(10, 5, 0), TopicPartition("t", 1): None})
    again = opened(cluster)
    assert again.paused() == {Kind.TOPIC}
    assert list(again.histories()) == [where]
    assert None not in [value for _, value in cluster.read_log(TOPIC)], "a tombstone cannot be signed"


@pytest.mark.parametrize("secret", ["another secret of sixteen", None])
def test_ledger_is_refused_under_another_secret_and_under_none(cluster: MemoryCluster, secret: str | None) -> None:
    opened(cluster).put(PAUSED)
    with pytest.raises(LedgerUntrusted, match=r"lockstep\.ledger\.secret"):
        opened(cluster, secret)


def test_ledger_of_another_flow_is_refused(cluster: MemoryCluster) -> None:
    opened(cluster, flow="c->b").put(PAUSED)
    with pytest.raises(LedgerUntrusted, match="another flow"):
        opened(cluster)


@pytest.mark.parametrize("forged", ["entry", "history", "tombstone"])
def test_whoever_may_write_the_topic_but_has_no_secret_can_only_stop_the_flow(
    cluster: MemoryCluster, forged: str
) -> None:
    opened(cluster).put(PAUSED)
    plain = MemoryCluster("elsewhere")
    forger = opened(plain, None)
    forger.put({(Entry.OWNED, ("acl", "TOPIC")): ""})
    store_histories(forger, {TopicPartition("t", 0): History(10, 5, 0)})
    entry, history = plain.read_log(TOPIC)
    tombstone = (cluster.read_log(TOPIC)[0][0], None)
    cluster.append_log(TOPIC, [{"entry": entry, "history": history, "tombstone": tombstone}[forged]])
    with pytest.raises(LedgerUntrusted, match="is not signed"):
        opened(cluster)


def test_value_that_was_signed_for_another_key_is_refused(cluster: MemoryCluster) -> None:
    opened(cluster).put(PAUSED)
    ((_, value),) = cluster.read_log(TOPIC)
    cluster.append_log(TOPIC, [(b'["PAUSED","acl"]', value)])
    with pytest.raises(LedgerUntrusted, match="altered"):
        opened(cluster)


def test_no_message_shows_the_secret(cluster: MemoryCluster) -> None:
    opened(cluster).put(PAUSED)
    with pytest.raises(LedgerUntrusted) as error:
        opened(cluster, "another secret of sixteen")
    assert "sixteen" not in str(error.value)
