"""Changes of topics and ACLs on a source, and how soon each is on the target."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from confluent_kafka import admin as rd

from app.local.waiting import wait_for
from bench.pair import BenchPair, make_topics, pair_of, running
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import LITERAL, TOPIC, AclBinding
from sinks.kafka.ports.cluster import TopicSpec, chunks
from sinks.model.changes import ALLOW

T = TypeVar("T")

FAST = "MM2, intervals of 1 s"
"""The way that goals are ratios of, in the same run."""

WATCHED = ("sync.topic.configs", "sync.topic.acls", "refresh.topics")
"""What MM2 does at the interval that a way is named after."""

ACLS_AT_ONCE = 1_000
ACL_ARRIVES_WITHIN = 300.0
TARGET_POLL_INTERVAL = 0.02
"""Seconds between looks at the topics that have changed and not arrived: the resolution of what is measured."""


def topic_name(number: int) -> str:
    """`bench-00042`."""
    return f"bench-{number:05d}"


def bench_topics(count: int) -> dict[str, TopicSpec]:
    """One partition each, a third of them with an override, as a real cluster has."""
    return {
        topic_name(n): TopicSpec(1, 1, (("retention.ms", str(86_400_000 + n)),) if n % 3 == 0 else ())
        for n in range(count)
    }


class Arrivals(Generic[T]):
    """Times each change until the target has it. `look` runs meanwhile, in a thread of its own."""

    def __init__(self, arrived: Callable[[Mapping[str, T]], Iterable[str]]) -> None:
        """`arrived`: given values by name, returns the names whose value the target has."""
        self.seconds: list[float] = []
        self._arrived, self._pending = arrived, dict[str, tuple[T, float]]()
        self._lock = threading.Lock()

    def expect(self, name: str, value: T) -> None:
        """The source has just taken this change."""
        with self._lock:
            self._pending[name] = (value, time.monotonic())

    def wait(self, timeout: float) -> list[float]:
        """Returns the seconds of each change once all have arrived. Raises WaitedTooLong."""
        wait_for(lambda: not self._pending, timeout, "the last change to arrive")
        return self.seconds

    def look(self, stop: threading.Event) -> None:
        """At the changes under way, until `stop`."""
        while not stop.wait(TARGET_POLL_INTERVAL):
            with self._lock:
                pending = {name: value for name, (value, _) in self._pending.items()}
            if pending:
                there, now = self._arrived(pending), time.monotonic()
                with self._lock:
                    self.seconds += [now - self._pending.pop(name)[1] for name in there]


class Changes:
    """Sets one topic's `retention.ms` at a time on a source, and watches `<source>.<topic>` on the target."""

    def __init__(self, sources: Mapping[str, str], target: str, topics: int, seed: int) -> None:
        """`sources`: bootstrap servers by alias; `topics`: of each."""
        self._sources = {alias: rd.AdminClient({"bootstrap.servers": at}) for alias, at in sources.items()}
        self._target = rd.AdminClient({"bootstrap.servers": target})
        self._topics = topics
        self._random = random.Random(seed)
        # On clusters that were kept no topic has the value of an earlier run.
        self._values = itertools.count(time.time_ns() // 1_000_000)

    def run(self, count: int, mean_gap: float, timeout: float) -> list[float]:
        """Seconds from each change until the target had it. Raises WaitedTooLong when one does not arrive."""
        arrivals = Arrivals(self._arrived)
        with running(arrivals.look):
            for number in self._random.sample(range(self._topics * len(self._sources)), count):
                time.sleep(self._random.expovariate(1 / mean_gap))
                alias = [*self._sources][number // self._topics]
                topic, value = topic_name(number % self._topics), str(next(self._values))
                entry = rd.ConfigEntry("retention.ms", value, incremental_operation=rd.AlterConfigOpType.SET)
                resource = rd.ConfigResource(rd.ResourceType.TOPIC, topic, incremental_configs=[entry])
                for future in self._sources[alias].incremental_alter_configs([resource]).values():
                    future.result()
                arrivals.expect(f"{alias}.{topic}", value)
            return arrivals.wait(timeout)

    def _arrived(self, wanted: Mapping[str, str]) -> list[str]:
        resources = [rd.ConfigResource(rd.ResourceType.TOPIC, name) for name in wanted]
        seen = self._target.describe_configs(resources).items()
        return [one.name for one, future in seen if future.result()["retention.ms"].value == wanted[one.name]]


@contextmanager
def bench_of(topics: int) -> Iterator[BenchPair]:
    """New clusters, with as many topics on the source."""
    with pair_of("bench") as pair:
        make_topics(pair.source, bench_topics(topics))
        yield pair


def grant_all(cluster: KafkaCluster, many: Sequence[AclBinding]) -> None:
    """So many in a request that it takes no second."""
    for some in chunks(many, ACLS_AT_ONCE):
        cluster.acls.create(some)


def read_acl(principal: str, topic: str) -> AclBinding:
    return AclBinding(TOPIC, topic, LITERAL, principal, "*", "READ", ALLOW)


def acl_seconds(
    source: KafkaCluster, target: rd.AdminClient, acl: AclBinding, pause: float, *, revoke: bool = False
) -> float:
    """Grants or revokes the ACL on the source after a pause. Returns seconds from the answer until the target has it,
    or has it no more. Raises WaitedTooLong."""
    time.sleep(pause)
    if revoke:
        source.acls.delete([acl])
    else:
        source.acls.create([acl])
    start = time.monotonic()
    wanted = rd.AclBindingFilter(
        rd.ResourceType.TOPIC,
        f"{source.alias}.{acl.resource_name}",
        rd.ResourcePatternType.LITERAL,
        acl.principal,
        "*",
        rd.AclOperation.READ,
        rd.AclPermissionType.ALLOW,
    )
    what = f"{acl.principal} to be {'gone' if revoke else 'there'}"
    wait_for(lambda: bool(target.describe_acls(wanted).result()) is not revoke, ACL_ARRIVES_WITHIN, what)
    return time.monotonic() - start
