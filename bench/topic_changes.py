"""Topics, changes at random moments, and a watch on the target that says when each arrived."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from app.local.local_job import LocalJob
from app.local.ports import free_ports
from app.local.waiting import wait_for

TARGET_POLL_INTERVAL = 0.02
"""Seconds between looks at the topics that have changed and not arrived: the resolution of what is measured."""

AT_ONCE = 250

SYNCS: Final = "mm2-offset-syncs.b.internal"


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


T = TypeVar("T")


class Arrivals(Generic[T]):
    """Times each change until the target has it. While the block runs, a thread looks at those under way."""

    def __init__(self, arrived: Callable[[Mapping[str, T]], Iterable[str]]) -> None:
        """`arrived`: given values by name, returns the names whose value the target has."""
        self.seconds: list[float] = []
        self._arrived, self._pending = arrived, dict[str, tuple[T, float]]()
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Arrivals[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def expect(self, name: str, value: T) -> None:
        """The source has just taken this change."""
        with self._lock:
            self._pending[name] = (value, time.monotonic())

    def wait(self, timeout: float) -> list[float]:
        """Returns the seconds of each change once all have arrived. Raises WaitedTooLong."""
        wait_for(lambda: not self._pending, timeout, "the last change to arrive")
        return self.seconds

    def _look(self) -> None:
        while not self._stop.wait(TARGET_POLL_INTERVAL):
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
        self._sources = {alias: AdminClient({"bootstrap.servers": at}) for alias, at in sources.items()}
        self._target = AdminClient({"bootstrap.servers": target})
        self._topics = topics
        self._random = random.Random(seed)
        # On clusters that were kept no topic has the value of an earlier run.
        self._next_value = time.time_ns() // 1_000_000

    def run(self, count: int, mean_gap: float, timeout: float) -> list[float]:
        """Seconds from each change until the target had it. Raises WaitedTooLong when one does not arrive."""
        with Arrivals(self._arrived) as arrivals:
            for number in self._random.sample(range(self._topics * len(self._sources)), count):
                time.sleep(self._random.expovariate(1 / mean_gap))
                alias = [*self._sources][number // self._topics]
                self._change(alias, topic_name(number % self._topics), arrivals)
            return arrivals.wait(timeout)

    def _change(self, alias: str, topic: str, arrivals: Arrivals[str]) -> None:
        value = str(self._next_value)
        self._next_value += 1
        entry = ConfigEntry("retention.ms", value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self._sources[alias].incremental_alter_configs([resource]).values():
            future.result()
        arrivals.expect(f"{alias}.{topic}", value)

    def _arrived(self, wanted: Mapping[str, str]) -> list[str]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in wanted]
        seen = self._target.describe_configs(resources).items()
        return [one.name for one, future in seen if future.result()["retention.ms"].value == wanted[one.name]]


WITHIN: Final = 1800.0


class PlainRecord(NamedTuple):
    """`timestamp`: milliseconds since the epoch; 0 is now."""

    key: bytes
    value: bytes
    partition: int = 0
    timestamp: int = 0


def produce_all(bootstrap: str, topic: str, records: Iterable[PlainRecord]) -> None:
    """Returns when all are acknowledged. Raises TimeoutError."""
    batches = {"linger.ms": 20, "batch.size": 500_000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 500_000, **batches})
    for number, (key, value, partition, timestamp) in enumerate(records):
        while True:
            try:
                producer.produce(topic, value, key, partition, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    if left := producer.flush(WITHIN):
        raise TimeoutError(f"{left} records were not written to {topic} on {bootstrap} within {WITHIN:g} s")


def write_job_file(properties: Mapping[str, str], folder: Path) -> tuple[Path, int]:
    """`mirror.properties` in a folder that is made where it is missing, and the port where its job will serve."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_ports(1)[0]
    own = {"lockstep.http.port": str(port), "lockstep.checkpoint.dir": str(folder / "checkpoints")}
    config = folder / "mirror.properties"
    config.write_text("".join(f"{name} = {value}\n" for name, value in {**properties, **own}.items()))
    return config, port


@contextmanager
def job_of(properties: Mapping[str, str], folder: Path) -> Iterator[LocalJob]:
    """Starts a job with these properties. Its log is `job.log` in the folder."""
    config, port = write_job_file(properties, folder)
    with LocalJob(config, port, folder / "job.log") as job:
        yield job
