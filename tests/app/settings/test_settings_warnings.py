"""A file that contradicts itself, or means something else to MM2, warns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.settings.mistaken_files import IDENTITY, QUIET, TWO, mistakes, warnings


def test_a_sync_that_both_do_is_a_warning_that_says_how_to_leave_it_to_lockstep(tmp_path: Path) -> None:
    configs, acls = (
        f"sync.topic.{name}.enabled: MM2 and Lockstep both sync the topic {what} of a->b: to leave it to Lockstep, "
        f"write sync.topic.{name}.enabled=false and lockstep.sync.topic.{name}.enabled=true"
        for name, what in (("configs", "configs"), ("acls", "ACLs"))
    )
    assert warnings(tmp_path, TWO) == [f": {configs}", f": {acls}"]
    assert warnings(tmp_path, TWO + "sync.topic.configs.enabled=true\n") == [f": {acls}", f":5: {configs}"]
    off = "lockstep.sync.topic.configs.enabled=false\nlockstep.sync.topic.acls.enabled=false\n"
    assert warnings(tmp_path, TWO + off) == []


def test_who_asks_for_acls_and_does_not_say_which_is_told_what_is_left_out(tmp_path: Path) -> None:
    lines = QUIET.partition("\n")[2] + TWO
    (found,) = warnings(tmp_path, lines)
    assert ":4: sync.full.acl.enabled: of the ACLs of a->b, WRITE, prefixes, groups" in found
    assert warnings(tmp_path, lines + "sync.full.acl.enabled=false\n") == []


def test_an_interval_for_mm2_alone_is_a_warning(tmp_path: Path) -> None:
    (found,) = warnings(tmp_path, QUIET + TWO + "sync.topic.configs.interval.seconds=5\n")
    assert "holds for MM2 only" in found
    assert "lockstep.sync.topic.configs.interval.seconds" in found
    text = QUIET + TWO + "sync.topic.configs.interval.seconds=5\nlockstep.sync.topic.configs.interval.seconds=5\n"
    assert warnings(tmp_path, text) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "sync.group.offsets.enabled=true\nemit.checkpoints.enabled=false\n"
            "lockstep.sync.group.offsets.enabled=false\n",
            "sync.group.offsets.enabled: contradicts emit.checkpoints.enabled=false",
        ),
        (
            "replication.policy.internal.topic.separator.enabled=false\n",
            "changes nothing without replication.policy.separator",
        ),
        (
            "lockstep.trigger.interval=5 minutes\nlockstep.heartbeat.timeout=10 minutes\n",
            "lockstep.trigger.interval: the full comparison (60 s) comes no more often than the trigger (300 s)",
        ),
        (
            "lockstep.heartbeat.timeout=8 seconds\n",
            "lockstep.heartbeat.timeout: a heartbeat counts as stale after 8 s, and they are read every 10 s only",
        ),
    ],
)
def test_lines_that_contradict_each_other_are_a_warning(tmp_path: Path, lines: str, said: str) -> None:
    (found,) = warnings(tmp_path, QUIET + TWO + lines)
    assert said in found


def test_the_separator_switch_is_no_contradiction_beside_a_separator(tmp_path: Path) -> None:
    lines = "replication.policy.separator=_\nreplication.policy.internal.topic.separator.enabled=false\n"
    assert warnings(tmp_path, QUIET + TWO + lines) == []


def test_what_kafkas_own_filter_reads_beside_a_filter_of_the_users_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_filters.py").write_text(
        "from streaming.mm2.replication_filters import DefaultConfigPropertyFilter\n"
        "class Own:\n"
        "    def should_replicate_config_property(self, name): return True\n"
        "    def should_replicate_source_default(self, name): return False\n"
        "class Derived(DefaultConfigPropertyFilter): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    lines = QUIET + TWO + "use.defaults.from=source\nconfig.property.filter.class=own_filters:"
    (found,) = warnings(tmp_path, lines + "Own\n")
    assert ":10: use.defaults.from: is what Kafka's DefaultConfigPropertyFilter reads" in found
    assert warnings(tmp_path, lines + "Derived\n") == []


PRESERVING = "lockstep.copier=offset-preserving\n"


def test_an_offset_preserving_copier_needs_no_line_of_mm2s(tmp_path: Path) -> None:
    lines = TWO + IDENTITY + "sync.full.acl.enabled=false\nlockstep.sync.topic.acls.enabled=true\n"
    assert warnings(tmp_path, lines + PRESERVING) == []


def test_what_a_copier_keeps_is_a_warning_beside_mm2(tmp_path: Path) -> None:
    (found,) = warnings(tmp_path, QUIET + TWO + "lockstep.copier.keeps=topic\n")
    assert "lockstep.copier.keeps: changes nothing without lockstep.copier=offset-preserving" in found


def test_an_offset_preserving_copier_under_a_policy_that_changes_names_is_a_mistake(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TWO + PRESERVING)
    assert "lockstep.copier: offset-preserving keeps the names of topics" in found
    (found,) = mistakes(tmp_path, TWO + IDENTITY + PRESERVING + "lockstep.copier.keeps=topics\n")
    assert "nearest: topic" in found
