"""No group is sent to the end of a topic on the target that others than MM2 may write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from app.settings import load
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.direction import Direction, GroupOffset
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.survey import survey_offsets
from sinks.kinds.shared_listings import list_both
from streaming.hints import SyncSeen
from streaming.mm2.records import TopicPartition
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import put_topic

TWO = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
IDENTITY = "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
Load = Callable[[str], FlowSettings]


@pytest.fixture
def settings_of(tmp_path: Path) -> Load:
    """Loads a file with both clusters and these lines."""

    def settings_of(lines: str) -> FlowSettings:
        path = tmp_path / "m.properties"
        path.write_text(TWO + lines)
        return load(path, environ={}).flows[0]

    return settings_of


def row_of_group_at_the_end(
    settings: FlowSettings, remote: str, foreign: int, syncs: Iterable[SyncSeen] = ()
) -> GroupOffset:
    """x on a holds 1000 records, all read by g and copied to b, where others have written `foreign` more behind."""
    a, b, x, copy = MemoryCluster("a"), MemoryCluster("b"), TopicPartition("x", 0), TopicPartition(remote, 0)
    put_topic(a, "x")
    put_topic(b, remote)
    source = MemoryGroups("a", {"g": {x: 1000}}, logs={x: LogRange(0, 1000)})
    target = MemoryGroups("b", logs={copy: LogRange(0, 1000 + foreign)})
    memory = OffsetMemory()
    memory.queue.put(list(syncs), [])
    memory.take_in_queued()
    direction = Direction(settings, source, target, list_both(settings, a, b))
    (row,) = survey_offsets(direction, ["g"], memory)
    return row


SYNCS = [SyncSeen(0, "x", 0, 0, 0), SyncSeen(1, "x", 0, 999, 999)]


@pytest.mark.parametrize("alias", ["", "source.cluster.alias=a\n", "source.cluster.alias=b\n"])
def test_under_the_identity_policy_records_that_others_wrote_are_not_skipped(settings_of: Load, alias: str) -> None:
    row = row_of_group_at_the_end(settings_of(IDENTITY + alias), "x", 400, SYNCS)
    assert row.as_json()["method"] == "conservative"
    assert row.goes_on_at == 1000


def test_topic_that_carries_the_sources_alias_is_believed_to_be_written_by_mm2_alone(settings_of: Load) -> None:
    row = row_of_group_at_the_end(settings_of(""), "a.x", 0, SYNCS)
    assert (row.as_json()["method"], row.goes_on_at) == ("tip", 1000)


def test_alias_of_the_flow_beats_one_that_the_file_names(settings_of: Load) -> None:
    settings = settings_of(IDENTITY + "source.cluster.alias=elsewhere\n")
    assert settings.policy.topic_source("x") == "a"
