"""Signing what is there: what an operator can check is believed afterwards, as it stood, and nothing else changes."""

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
    with pytest.raises(LedgerUntrusted):
        Ledger(TOPIC, cluster, None, 1, seal=NEW)
    signed = lacking_signature(newest_records(cluster.read_log(TOPIC), NEW), NEW)
    cluster.append_log(TOPIC, [(record.key, NEW.wrap(record.key, record.data, 1)) for record in signed])
    after = Ledger(TOPIC, cluster, None, 1, seal=NEW)
    assert (after.paused(), after.get(Entry.CLUSTER_ID, "a")) == ({Kind.TOPIC}, "id")
    assert lacking_signature(newest_records(cluster.read_log(TOPIC), NEW), NEW) == []


PAUSED = b'["PAUSED","topic"]'


def test_value_that_was_signed_is_restored_over_one_that_another_program_wrote_after_it() -> None:
    good = NEW.wrap(PAUSED, b"good", 1_000_000)
    for written in (b"forged", None, OLD.wrap(PAUSED, b"forged", 2_000_000)):
        (found,) = lacking_signature(newest_records([(PAUSED, good), (PAUSED, written)], NEW), NEW)
        assert found.data == b"good"


def test_last_of_several_signed_values_is_restored_though_clocks_differed() -> None:
    ahead, last = NEW.wrap(PAUSED, b"first", 1_000_000), NEW.wrap(PAUSED, b"last", 999_000)
    (found,) = newest_records([(PAUSED, ahead), (PAUSED, last), (PAUSED, b"forged")], NEW)
    assert found.data == b"last"


@pytest.mark.parametrize("before", [Seal("a->b"), OLD], ids=["unsigned", "another secret"])
def test_offset_history_that_no_operator_can_check_is_signed_as_deleted(before: Seal) -> None:
    cluster = MemoryCluster("b")
    ledger = Ledger(TOPIC, cluster, cluster, 1, lambda: NOON, before)
    store_histories(ledger, {TopicPartition("t", 0): History(10, 5, 0)})
    signed = lacking_signature(newest_records(cluster.read_log(TOPIC), NEW), NEW)
    assert ("HISTORY", "t 0", "(forgotten)") in [record.row() for record in signed]
    cluster.append_log(TOPIC, [(record.key, NEW.wrap(record.key, record.data, 1)) for record in signed])
    assert list(Ledger(TOPIC, cluster, None, 1, seal=NEW).histories()) == []


def test_offset_history_that_was_signed_is_restored() -> None:
    key = b'["HISTORY","t",0]'
    good = NEW.wrap(key, b"good", 1_000_000)
    (found,) = newest_records([(key, good), (key, b"forged")], NEW)
    assert found.data == b"good"


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
