"""Lines for MM2 that mean something else, or nothing, beside Lockstep."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.settings import load

QUIET = """clusters=a,b
a.bootstrap.servers=h:1
b.bootstrap.servers=h:2
a->b.enabled=true
sync.topic.configs.enabled=false
sync.topic.acls.enabled=false
lockstep.sync.topic.configs.enabled=true
lockstep.sync.topic.acls.enabled=true
sync.full.acl.enabled=false
"""
"""A file that nothing is to be said of."""


def warnings(folder: Path, lines: str) -> list[str]:
    """What is said of the file with these lines."""
    path = folder / "m.properties"
    path.write_text(QUIET + lines)
    return [str(warning) for warning in load(path, environ={}).warnings]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("forwarding.admin.class=com.acme.Federated", "forwarding.admin.class: holds for MM2 only: Lockstep creates"),
        ("a->b.transforms=Mask", "lockstep.offset.translation=conservative"),
        ("emit.offset-syncs.enabled=false", "Lockstep cannot translate offsets of a->b"),
        ("emit.heartbeats.enabled=false", "no heartbeat of MM2's reaches b: the state of a->b will be NO_HEARTBEAT"),
        (
            "a->b.emit.heartbeats.enabled=false\nheartbeats.replication.enabled=false",
            "write emit.heartbeats.enabled=true for a->b, or for a flow into a",
        ),
        ("sync.topic.acls.interval.seconds=60", "Lockstep compares ACLs when"),
        (
            "lockstep.sync.group.offsets.enabled=true\nrefresh.groups.interval.seconds=60",
            "Lockstep lists groups every second, or at the interval lockstep.sync.group.offsets.interval.seconds",
        ),
    ],
)
def test_mm2s_line_that_means_something_else_beside_lockstep_is_a_warning(
    tmp_path: Path, lines: str, said: str
) -> None:
    (found,) = warnings(tmp_path, lines + "\n")
    assert said in found


@pytest.mark.parametrize(
    "line",
    [
        "forwarding.admin.class=org.apache.kafka.connect.mirror.ForwardingAdmin",
        "transforms=",
        "emit.offset-syncs.enabled=true",
        "a->b.emit.heartbeats.enabled=false",
        "refresh.groups.interval.seconds=60",
        "emit.heartbeats.interval.seconds=5",
    ],
)
def test_mm2s_line_that_means_nothing_else_beside_lockstep_is_no_warning(tmp_path: Path, line: str) -> None:
    assert warnings(tmp_path, line + "\n") == []
