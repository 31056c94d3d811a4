"""Signing what is there: all of the ledger is believed afterwards, as it stood, and nothing else of it changes."""

from __future__ import annotations

import pytest

from app.cli.ledger_command import lacking_signature, newest_records
from sinks.faults import LedgerUntrusted
from sinks.kinds.offsets.stored_memory import store_histories
from sinks.kinds.offsets.sync_history import History
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.seal import Seal
from sinks.model.changes import Kind
from streaming.mm2.records import TopicPartition
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import NOON

TOPIC = "lockstep-ledger.a.internal"
OLD, NEW = Seal("a->b", "the first secret of all"), Seal("a->b", "the second secret of all")


@pytest.mark.parametrize("before", [Seal("a->b"), OLD], ids=["unsigned", "another secret"])
def test_ledger_that_was_signed_again_is_the_same_under_the_new_secret(before: Seal) -> None:
    cluster = MemoryCluster("b")
    ledger = Ledger(TOPIC, cluster, cluster, 1, lambda: NOON, before)
    ledger.put({(Entry.PAUSED, ("topic",)): "", (Entry.PAUSED, ("acl",)): "", (Entry.CLUSTER_ID, ("a",)): "id"})
    ledger.put({(Entry.PAUSED, ("acl",)): None})
    store_histories(ledger, {TopicPartition("t", 0): History(10, 5, 0)})
    with pytest.raises(LedgerUntrusted):
        Ledger(TOPIC, cluster, None, 1, seal=NEW)
    signed = lacking_signature(newest_records(cluster.read_log(TOPIC), NEW), NEW)
    cluster.append_log(TOPIC, [(record.key, NEW.wrap(record.key, record.data, 1)) for record in signed])
    after = Ledger(TOPIC, cluster, None, 1, seal=NEW)
    assert (after.paused(), after.get(Entry.CLUSTER_ID, "a")) == ({Kind.TOPIC}, "id")
    assert list(after.histories()) == [TopicPartition("t", 0)]
    assert lacking_signature(newest_records(cluster.read_log(TOPIC), NEW), NEW) == []


def test_rows_show_what_is_signed_but_no_override_s_value() -> None:
    cluster = MemoryCluster("b")
    ledger = Ledger(TOPIC, cluster, cluster, 1, lambda: NOON)
    ledger.put({(Entry.OVERRIDE, ("flow", "my.key")): '{"value":"t0ps3cr3t"}', (Entry.PAUSED, ("acl",)): ""})
    cluster.append_log(TOPIC, [(b"no json", b"x"), (b'["PAUSED","topic"]', b"x"), (b'["PAUSED","acl"]', None)])
    assert [record.row() for record in newest_records(cluster.read_log(TOPIC), Seal("a->b"))] == [
        ("OVERRIDE", "flow my.key", "(not shown)"),
        ("PAUSED", "acl", "(forgotten)"),
        ("PAUSED", "topic", "(cannot be read)"),
        ("(cannot be read)", "b'no json'", "(cannot be read)"),
    ]
