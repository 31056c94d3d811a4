"""Four source clusters and one target, with as many topics, ACLs and groups on the sources as a size says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from app.local.local_cluster import LocalCluster
from app.wiring import open_cluster
from bench.acl_scenario import grant_all, read_acl
from bench.groups_pair import commit_all
from bench.many_records import PlainRecord, produce_all
from bench.saved_figures import say
from bench.sync_memory import COMPACTED
from bench.topic_changes import create_topics, topic_name, wait_for_topics
from bench.verify_load import SYNCS
from streaming.errors import LockstepError
from streaming.mm2.codec import encode_offset_sync
from streaming.mm2.records import OffsetSync, TopicPartition

SOURCES: Final = ("a", "c", "d", "e")
TARGET: Final = "b"
FLOWS: Final = tuple(f"{alias}->{TARGET}" for alias in SOURCES)
ACLS_A_TOPIC: Final = 5
WITHIN: Final = 900.0
TOPICS_OF_A_PRODUCER: Final = 250
"""librdkafka asks for all its topics again at each new one."""


@dataclass(frozen=True)
class ScaleClusters:
    """`topics`: of each source; every source has as many groups, and `ACLS_A_TOPIC` times as many ACLs."""

    sources: Mapping[str, LocalCluster]
    target: LocalCluster
    topics: int
    root: Path

    @property
    def bootstraps(self) -> dict[str, str]:
        """Of all, by alias."""
        return self.source_bootstraps | {TARGET: self.target.bootstrap}

    @property
    def source_bootstraps(self) -> dict[str, str]:
        """Of the sources, by alias."""
        return {alias: one.bootstrap for alias, one in self.sources.items()}

    @property
    def pids(self) -> tuple[list[int], list[int]]:
        """Of the sources' brokers, and of the target's."""
        return [pid for one in self.sources.values() for pid in one.pids], self.target.pids


@contextmanager
def scale_clusters(root: Path, topics: int) -> Iterator[ScaleClusters]:
    """They run, with `topics` in all on the sources; on folders of an earlier run all is there already."""
    with ExitStack() as stack:
        sources = {alias: stack.enter_context(LocalCluster(alias, root / alias)) for alias in SOURCES}
        target = stack.enter_context(LocalCluster(TARGET, root / TARGET, heap="1g"))
        clusters = ScaleClusters(sources, target, topics // len(SOURCES), root)
        filled = root / "filled"
        if not filled.exists():
            for alias in SOURCES:
                say(f"{clusters.topics:,} topics, as many groups and their ACLs on {alias}")
                _fill(alias, clusters.sources[alias].bootstrap, clusters.topics)
            filled.touch()
        yield clusters


def _fill(alias: str, bootstrap: str, topics: int) -> None:
    names = [topic_name(number) for number in range(topics)]
    create_topics(bootstrap, topics)
    wait_for_topics(bootstrap, {*names}, WITHIN)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(SYNCS, 1, 1, config=COMPACTED)])[SYNCS].result()
    one_record_each(bootstrap, names)
    cluster = open_cluster(alias, {"bootstrap.servers": bootstrap})
    try:
        grant_all(cluster, [read_acl(f"User:app-{n}", name) for name in names for n in range(ACLS_A_TOPIC)])
        commit_all(
            cluster,
            {f"{alias}-group-{number:05d}": {TopicPartition(name, 0): 1} for number, name in enumerate(names)},
        )
    finally:
        cluster.close()


def one_record_each(bootstrap: str, topics: Sequence[str]) -> None:
    """One record in the only partition of each topic. Raises LockstepError when one is not written."""
    for start in range(0, len(topics), TOPICS_OF_A_PRODUCER):
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
        for name in topics[start : start + TOPICS_OF_A_PRODUCER]:
            producer.produce(name, b"one", partition=0)
        if left := producer.flush(WITHIN):
            raise LockstepError(f"{left} records could not be written within {WITHIN:g} s")


def copy_as_mm2_would(clusters: ScaleClusters) -> None:
    """The sources' records in the topics of the target, which are there, and the offset-syncs of all partitions."""
    copied = clusters.root / "copied"
    if copied.exists():
        return
    names = [topic_name(number) for number in range(clusters.topics)]
    one_record_each(clusters.target.bootstrap, [f"{alias}.{name}" for alias in clusters.sources for name in names])
    syncs = [PlainRecord(*encode_offset_sync(OffsetSync(TopicPartition(name, 0), 0, 0))) for name in names]
    for bootstrap in clusters.source_bootstraps.values():
        produce_all(bootstrap, SYNCS, syncs)
    copied.touch()
