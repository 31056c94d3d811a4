"""Which ledgers of other flows a command of the failover could not read."""

from __future__ import annotations

from pathlib import Path

from app.failover_session import other_ledgers
from app.local.ports import free_ports
from app.settings import load


def test_flow_from_the_same_source_whose_clusters_do_not_answer_is_unread(tmp_path: Path) -> None:
    ports = dict(zip("abcd", free_ports(4), strict=True))
    file = tmp_path / "mm2.properties"
    lines = [f"{alias}.bootstrap.servers=127.0.0.1:{port}" for alias, port in ports.items()]
    lines += [f"{flow}.enabled=true" for flow in ("a->b", "a->c", "d->b")]
    file.write_text("\n".join(["clusters=a,b,c,d", f"lockstep.checkpoint.dir={tmp_path}/checkpoints", *lines]))
    settings, said = load(file), list[str]()
    with other_ledgers(settings, settings.flows[0], said.append, writes=False) as others:
        assert not others.ledgers
        assert list(others.unread) == ["a->c"]
    assert len(said) == 1
