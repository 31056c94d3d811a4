"""The file of the flow the other way round."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from app.cli.failover_commands import reverse_properties, write_reverse
from app.settings import load
from streaming.errors import LockstepError
from streaming.flow import Flow

FLOW = Flow("a", "b")


def test_what_holds_for_the_flow_holds_for_its_reverse_which_alone_is_on() -> None:
    lines = {"a->b.enabled": "true", "a->b.topics": "x", "lockstep.a->b.topics": "y", "a.bootstrap.servers": "h:1"}
    assert reverse_properties(lines, FLOW) == {
        "a->b.enabled": "false",
        "b->a.enabled": "true",
        "b->a.topics": "x",
        "lockstep.b->a.topics": "y",
        "a.bootstrap.servers": "h:1",
    }


def test_what_the_file_says_of_the_reverse_flow_itself_wins() -> None:
    lines = {"a->b.topics": "x", "b->a.topics": "z", "b->a.enabled": "false"}
    after = reverse_properties(lines, FLOW)
    assert (after["b->a.topics"], after["b->a.enabled"]) == ("z", "true")


def test_lockstep_reads_the_file_its_owner_alone_may_read_it_and_references_stay(tmp_path: Path) -> None:
    path, out = tmp_path / "mm2.properties", tmp_path / "back.properties"
    lines = ["clusters = a, b", "a.bootstrap.servers = h:1", "b.bootstrap.servers = h:2", "a->b.enabled = true"]
    path.write_text("\n".join([*lines, "lockstep.ledger.secret = ${env:SECRET}"]), encoding="utf-8")
    write_reverse(path, out, FLOW)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "${env\\:SECRET}" in out.read_text() or "${env:SECRET}" in out.read_text()
    settings = load(out, environ={"SECRET": "a secret of enough length"})
    assert [one.flow.name for one in settings.flows] == ["b->a"]
    settings.close()


def test_flows_whose_names_only_end_alike_are_left_alone() -> None:
    flow = Flow("us", "eu")
    after = reverse_properties({"us->eu.topics": "x", "aus->eu.topics": "y", "aeu->us.topics": "z"}, flow)
    assert (after["eu->us.topics"], after["aus->eu.topics"], after["aeu->us.topics"]) == ("x", "y", "z")
    assert "aeu->us.topics" in after and "aeu->us.enabled" not in after


def test_a_file_that_is_there_stays_unless_it_was_named_and_a_link_is_never_followed(tmp_path: Path) -> None:
    path, out, other = tmp_path / "mm2.properties", tmp_path / "reverse.properties", tmp_path / "other"
    path.write_text(f"{FLOW.name}.topics = x\n")
    other.write_text("mine")
    other.chmod(0o644)
    out.symlink_to(other)
    with pytest.raises(LockstepError, match="--out"):
        write_reverse(path, out, FLOW, replaces=False)
    write_reverse(path, out, FLOW)
    assert (other.read_text(), out.is_symlink(), out.stat().st_mode & 0o777) == ("mine", False, 0o600)
    write_reverse(path, out, FLOW, replaces=False)
