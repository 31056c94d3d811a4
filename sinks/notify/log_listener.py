"""A listener that keeps the replicated topics and groups in two compacted topics on the target, for programs that read
Kafka.

| topic                               | key           | value                                        |
|-------------------------------------|---------------|----------------------------------------------|
| `lockstep-topics.<source>.internal` | upstream name | `{"upstream": "orders", "remote": "a.orders"}` |
| `lockstep-groups.<source>.internal` | group         | `{"group": "billing"}`                       |

A tombstone says that a topic or a group is no longer replicated. Keys and JSON are UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from sinks.kafka.ports.cluster import Cluster, Record, chunks
from sinks.ledger.ledger import LEDGER_TOPIC_CONFIGS
from sinks.model.changes import compact_json

RECORDS_IN_A_WRITE = 10_000
"""Most records in one append: a client's queue holds 100,000."""


class LogListener:
    """A class for `topic.listener.class` and `group.listener.class`. `write_to` is called before the first
    notification."""

    _open: Callable[[], Cluster]
    _topics: str
    _groups: str
    _factor: int

    def __init__(self) -> None:
        self._target: Cluster | None = None
        self._logs: dict[str, KeyedLog] = {}

    def write_to(self, open_target: Callable[[], Cluster], topics: str, groups: str, replication_factor: int) -> None:
        """Set where to write. `open_target`: opens a client of the target, called at the first notification, in its
        thread. `topics`, `groups`: names of the two topics. `close` closes the client."""
        self._open, self._topics, self._groups, self._factor = open_target, topics, groups, replication_factor

    def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
        """Write the differences from the newest values in the topic. Raises ClusterUnreachable, LockstepError."""
        self._log(self._topics).keep(
            {
                upstream.encode(): compact_json({"upstream": upstream, "remote": remote})
                for upstream, remote in upstream_to_downstream.items()
            }
        )

    def groups_changed(self, groups: AbstractSet[str]) -> None:
        """Write the differences from the newest values in the topic. Raises ClusterUnreachable, LockstepError."""
        self._log(self._groups).keep({group.encode(): compact_json({"group": group}) for group in groups})

    def _log(self, topic: str) -> KeyedLog:
        if self._target is None:
            self._target = self._open()
        return self._logs.setdefault(topic, KeyedLog(topic, self._target, self._factor))

    def close(self) -> None:
        if self._target is not None:
            self._target.close()


class KeyedLog:
    """Keeps the newest value of each key in a compacted topic of one partition."""

    def __init__(self, topic: str, cluster: Cluster, replication_factor: int) -> None:
        self._topic, self._cluster, self._factor = topic, cluster, replication_factor
        self._values: dict[bytes, bytes] = {}
        self._read_to = 0

    def keep(self, wanted: Mapping[bytes, bytes]) -> None:
        """Write values and tombstones until the topic contains exactly `wanted`. Unchanged values are not written
        again.

        Reads the topic before each write. So a restart writes only differences, and mends what an interrupted call or
        another client left.
        """
        self._refresh()
        changed: list[Record] = [(key, None) for key in sorted(self._values.keys() - wanted.keys())]
        changed += [(key, value) for key, value in sorted(wanted.items()) if self._values.get(key) != value]
        if changed and not self._values:
            self._cluster.create_log(self._topic, self._factor, LEDGER_TOPIC_CONFIGS)
        for part in chunks(changed, RECORDS_IN_A_WRITE):
            self._cluster.append_log(self._topic, part)

    def _refresh(self) -> None:
        read = self._cluster.read_log_from(self._topic, self._read_to)
        if read.whole:
            self._values, self._read_to = {}, 0
        for position, key, value in read.records:
            self._read_to = position + 1
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
