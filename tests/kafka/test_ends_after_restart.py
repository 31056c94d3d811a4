"""The end of a log while its broker is away, and right after it is back."""

from __future__ import annotations

from pathlib import Path

from app.local.java import QUICK_START
from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from sinks.faults import ClusterUnreachable, Observed
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.groups import LogRange
from streaming.mm2.records import TopicPartition
from tests.kafka.staging import create

LOG = TopicPartition("ended", 0)
ANSWERED_WITHIN = 60.0


def test_no_end_is_made_up_while_the_broker_is_away_and_the_true_one_comes_without_another_request(
    tmp_path: Path,
) -> None:
    with LocalCluster("e", tmp_path, java_options=QUICK_START) as local:
        cluster = KafkaCluster("e", {"bootstrap.servers": local.bootstrap})
        try:
            create(cluster, LOG.topic, 1, {})
            cluster.append_log(LOG.topic, [(b"key", b"value")] * 7)
            assert cluster.groups.ends([LOG]).items == {LOG: LogRange(0, 7)}
            local.kill()
            assert not _ends(cluster).items
            local.start()
            wait_for(lambda: _ends(cluster).items == {LOG: LogRange(0, 7)}, ANSWERED_WITHIN, "the log's end")
        finally:
            cluster.close()


def _ends(cluster: KafkaCluster) -> Observed[TopicPartition, LogRange]:
    try:
        return cluster.groups.ends([LOG])
    except ClusterUnreachable:
        return Observed({})
