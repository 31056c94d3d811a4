"""The file of the flow the other way round."""

from __future__ import annotations

import stat
from pathlib import Path

from app.reverse_properties import reverse_properties, write_reverse
from app.settings import load
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
