"""Topics, changes at random moments, and a watch on the target that says when each arrived."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

TARGET_POLL_INTERVAL = 0.02
"""Seconds between looks at the topics that have changed and not arrived: the resolution of what is measured."""

AT_ONCE = 250


def topic_name(number: int) -> str:
    """`bench-00042`."""
    return f"bench-{number:05d}"


def create_topics(bootstrap: str, count: int) -> None:
    """One partition each, a third of them with an override, as a real cluster has."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [
        NewTopic(topic_name(n), 1, 1, config={"retention.ms": str(86_400_000 + n)} if n % 3 == 0 else {})
        for n in range(count)
    ]
    for start in range(0, count, AT_ONCE):
        for future in admin.create_topics(new[start : start + AT_ONCE], request_timeout=60).values():
            future.result()


def wait_for_topics(bootstrap: str, names: set[str], timeout: float) -> None:
    """Until the cluster shows all of these. Raises TimeoutError that says how many are missing."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + timeout
    while missing := names - admin.list_topics(timeout=30).topics.keys():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(missing)} of {len(names)} topics were not on {bootstrap} after {timeout:g} s")
        time.sleep(0.5)


@dataclass
class Arrivals:
    """Changes under way and the seconds that each that arrived took."""

    seconds: list[float] = field(default_factory=list)
    pending: dict[str, tuple[str, float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Changes:
    """Sets one topic's `retention.ms` at a time on a source, and watches `<source>.<topic>` on the target."""

    def __init__(self, sources: Mapping[str, str], target: str, topics: int, seed: int) -> None:
        """`sources`: bootstrap servers by alias; `topics`: of each."""
        self._sources = {alias: AdminClient({"bootstrap.servers": at}) for alias, at in sources.items()}
        self._target = AdminClient({"bootstrap.servers": target})
        self._topics = topics
        self._random = random.Random(seed)
        # On clusters that were kept no topic has the value of an earlier run.
        self._next_value = time.time_ns() // 1_000_000

    def run(self, count: int, mean_gap: float, timeout: float) -> list[float]:
        """Seconds from each change until the target had it. Raises TimeoutError when one does not arrive."""
        arrivals, done = Arrivals(), threading.Event()
        watcher = threading.Thread(target=self._watch, args=(arrivals, done), daemon=True)
        watcher.start()
        numbers = self._random.sample(range(self._topics * len(self._sources)), count)
        for number in numbers:
            time.sleep(self._random.expovariate(1 / mean_gap))
            alias = [*self._sources][number // self._topics]
            self._change(alias, topic_name(number % self._topics), arrivals)
        deadline = time.monotonic() + timeout
        while arrivals.pending and time.monotonic() < deadline:
            time.sleep(TARGET_POLL_INTERVAL)
        done.set()
        watcher.join()
        if arrivals.pending:
            raise TimeoutError(f"{len(arrivals.pending)} of {count} changes did not arrive within {timeout:g} s")
        return arrivals.seconds

    def _change(self, alias: str, topic: str, arrivals: Arrivals) -> None:
        value = str(self._next_value)
        self._next_value += 1
        entry = ConfigEntry("retention.ms", value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self._sources[alias].incremental_alter_configs([resource]).values():
            future.result()
        with arrivals.lock:
            arrivals.pending[f"{alias}.{topic}"] = (value, time.monotonic())

    def _watch(self, arrivals: Arrivals, done: threading.Event) -> None:
        while not done.wait(TARGET_POLL_INTERVAL):
            with arrivals.lock:
                pending = dict(arrivals.pending)
            if not pending:
                continue
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in pending]
            for resource, future in self._target.describe_configs(resources).items():
                value, since = pending[resource.name]
                if future.result()["retention.ms"].value == value:
                    with arrivals.lock:
                        arrivals.seconds.append(time.monotonic() - since)
                        arrivals.pending.pop(resource.name)
