"""What applications lack on the target where ACLs are kept by MM2's rules."""

from __future__ import annotations

from dataclasses import replace

from sinks.kinds.acls.survey import left_out
from tests.sinks.kinds.acls.acl_builders import FULL, MM2, acl, source_topics

SOURCE = [
    acl("ALLOW READ User:al TOPIC orders"),
    acl("ALLOW WRITE User:al TOPIC orders"),
    acl("ALLOW READ User:al GROUP billing"),
    acl("ALLOW READ User:al TOPIC ord…"),
    acl("ALLOW WRITE User:al TOPIC __consumer_offsets"),
]


def test_what_the_full_mode_would_keep_besides_is_counted_by_what_it_is_about() -> None:
    found = left_out(SOURCE, MM2, source_topics("orders"))
    assert found.startswith("3 ACLs that applications have (1 WRITE, 1 of a group, 1 prefixed)")
    assert "sync.full.acl.enabled=true" in found


def test_nothing_is_left_out_in_the_full_mode_nor_where_mm2s_rules_keep_all() -> None:
    assert left_out(SOURCE, FULL, source_topics("orders")) == ""
    assert left_out(SOURCE[:1], MM2, source_topics("orders")) == ""


def test_a_write_that_is_held_back_until_the_failover_is_not_left_out() -> None:
    held = replace(MM2, stage_writes=True)
    assert left_out([acl("DENY WRITE User:al TOPIC orders"), *SOURCE[:1]], held, source_topics("orders")) == ""
