"""Looking at topic configs cheaply: what was seen stays in the JVM, and is compared there.

A DescribeConfigs answer of 2,000 topics is 66,000 entries. Turning them into Python objects costs more than asking
for them, so the last answer is kept as a `Map<ConfigResource, Config>` in the JVM; one call over the gateway says
whether the new one holds anything else, and only the names of topics that differ come over.

Source: `Admin.describeConfigs`; `Config` and `ConfigEntry` compare by value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.java_errors import DENIED_CLUSTER, LOGIN, UNKNOWN_TOPIC, java_error
from sinks.kafka.jvm.jvm_topics import CONFIG_RESOURCE, DESCRIBE_CONFIGS, TOPIC
from streaming.errors import LockstepError

TOPIC_FAULTS = frozenset({UNKNOWN_TOPIC, "TOPIC_AUTHORIZATION_FAILED", "TOPIC_EXCEPTION"})

LISTS_KEPT = 1024
"""Lists of topics that are kept in the JVM: the same ones are asked about again and again."""


class JvmWatch:
    """A watch on the topic configs of one cluster."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin, self._map = admin, admin.jvm.java.util.HashMap
        self._unit = admin.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._lists: dict[tuple[str, ...], Any] = {}
        self._last = self._map()
        self._polled: set[str] = set()
        self._forgotten: set[str] = set()

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        """All requests leave before the first answer is awaited, so that the broker is never idle in between."""
        client = self._admin.client
        requests = [(shard, client.describeConfigs(self._list_of(shard))) for shard in shards if shard]
        found: set[str] = set()
        try:
            for shard, result in requests:
                found |= self._differing(shard, result)
        except LockstepError:
            # Nobody hears of these now, so the next poll must report them again.
            self.forget(found)
            raise
        forgotten = {topic for shard in shards for topic in shard if topic in self._forgotten}
        self._forgotten -= forgotten
        return found | forgotten

    def forget(self, topics: Iterable[str]) -> None:
        # One that was never asked for is reported anyway, and its name may be anybody's.
        self._forgotten.update(self._polled.intersection(topics))

    def close(self) -> None:
        """Whoever made the client closes it."""

    def _list_of(self, shard: Sequence[str]) -> Any:
        key = tuple(shard)
        if key not in self._lists:
            if len(self._lists) >= LISTS_KEPT:
                self._lists.clear()
            self._lists[key] = self._admin.rows.made(CONFIG_RESOURCE, ([TOPIC, name] for name in shard))
            self._polled.update(shard)
        return self._lists[key]

    def _differing(self, shard: Sequence[str], result: Any) -> set[str]:
        try:
            seen = result.all().get(int(self._admin.timeout * 1000), self._unit)
        except Py4JJavaError as error:
            return self._one_by_one(shard, result, error)
        self._admin.count(self._admin.alias, DESCRIBE_CONFIGS, "ok")
        return self._differs_from_last(seen)

    def _differs_from_last(self, seen: Any) -> set[str]:
        if self._last.entrySet().containsAll(seen.entrySet()):
            return set()
        other = self._map(seen)
        other.entrySet().removeAll(self._last.entrySet())
        self._last.putAll(seen)
        names = self._admin.rows.each(other.keySet(), CONFIG_RESOURCE.type, "name")
        return set(self._admin.rows.read(names))

    def _one_by_one(self, shard: Sequence[str], result: Any, error: Py4JJavaError) -> set[str]:
        """One topic's trouble must not hide the others: the troubled ones count as changed and are read in full."""
        alias, (code, message) = self._admin.alias, java_error(error.java_exception.toString())
        self._admin.count(alias, DESCRIBE_CONFIGS, code)
        if code in LOGIN or code == DENIED_CLUSTER:
            raise RightsMissing(f"cluster {alias}: {DESCRIBE_CONFIGS}: {code}: {message}")
        if code not in TOPIC_FAULTS:
            raise ClusterUnreachable(f"cluster {alias}: {DESCRIBE_CONFIGS}: {code}: {message}")
        resources, seen = self._list_of(shard), self._map()
        futures = self._admin.rows.of_map(result.values(), resources)
        troubled = set()
        for at, (topic, failed) in enumerate(zip(shard, self._admin.rows.errors(futures), strict=True)):
            if failed is not None:
                troubled.add(topic)
                # Recreated with the same configs it is another topic: its return is a change.
                self._last.remove(resources[at])
            else:
                seen.put(resources[at], futures[at].getNow(None))
        return troubled | self._differs_from_last(seen)
