"""The codec against a real MM2, as it writes now; `tests/golden/` keeps what one wrote once."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.local.local_mirror import LocalMirror
from streaming.mm2.records import RecordKind
from tests.conftest import Clusters
from tests.kafka.mm2_records import GROUP, INTERNAL, METADATA, PARTITIONS, SOURCE, TARGET, TOPIC, read, read_by_kafka


@pytest.mark.parametrize("kind", INTERNAL)
def test_what_mm2_writes_is_read_as_kafkas_own_classes_read_it_and_written_back_byte_by_byte(
    kind: RecordKind, clusters: Clusters, mirror: LocalMirror, tmp_path: Path
) -> None:
    internal = INTERNAL[kind]
    cluster = clusters.a if internal.on_source else clusters.b
    raw = read(cluster, internal.topic)
    decoded = [internal.decode(*record) for record in raw]
    assert [internal.encode(record) for record in decoded] == raw
    assert [internal.line(record) for record in decoded] == read_by_kafka(cluster, internal, len(raw), tmp_path)


def test_every_partition_is_in_checkpoints_and_syncs_under_the_names_that_mm2_gives_it(
    clusters: Clusters, mirror: LocalMirror
) -> None:
    """Checkpoints name the topic as the target does, offset-syncs as the source does."""
    checkpoint, sync = INTERNAL[RecordKind.CHECKPOINT], INTERNAL[RecordKind.OFFSET_SYNC]
    checkpoints = [checkpoint.decode(*raw) for raw in read(clusters.b, checkpoint.topic)]
    ours = {(c.group, c.metadata, str(c.topic_partition)) for c in checkpoints}  # type: ignore[union-attr]
    assert ours == {(GROUP, f"{METADATA}\0", f"{SOURCE}.{TOPIC}-{number}") for number in range(PARTITIONS)}
    syncs = {str(sync.decode(*raw).topic_partition) for raw in read(clusters.a, sync.topic)}  # type: ignore[union-attr]
    assert syncs == {f"{TOPIC}-{number}" for number in range(PARTITIONS)}


def test_heartbeats_name_the_flow(clusters: Clusters, mirror: LocalMirror) -> None:
    heartbeat = INTERNAL[RecordKind.HEARTBEAT]
    beats = [heartbeat.decode(*raw) for raw in read(clusters.b, heartbeat.topic)]
    flows = {(beat.source, beat.target) for beat in beats}  # type: ignore[union-attr]
    # Other tests' MM2 may write heartbeats of its own there.
    assert [flow for flow in flows if SOURCE in flow] == [(SOURCE, TARGET)]
