"""Polls of many topics and groups: the last answers stay in the JVM, and are compared there.

A DescribeConfigs answer of 2,000 topics has 66,000 entries. Making Python objects of them costs more than asking for
them. So the JVM compares the answer with its last one, and only the names that differ come over the gateway.

Source: `Admin.describeConfigs`, `Admin.listConsumerGroupOffsets`; what they answer compares by value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any

from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.java_errors import UNKNOWN_TOPIC
from sinks.kafka.jvm.jvm_groups import about_groups, in_requests, of_all_partitions, offsets_by_group
from sinks.kafka.jvm.jvm_topics import CONFIG_RESOURCE, DESCRIBE_CONFIGS, config_resources
from sinks.kafka.ports.config_levels import ConfigEntity, ResourceType
from streaming.errors import LockstepError

TOPIC_FAULTS = frozenset({UNKNOWN_TOPIC, "TOPIC_AUTHORIZATION_FAILED", "TOPIC_EXCEPTION"})
GROUP_FAULTS = frozenset({"GROUP_AUTHORIZATION_FAILED", "GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID"})

LISTS_KEPT = 1024
"""Most lists of topics that are kept in the JVM. The same lists are asked about again and again."""


class LastAnswers:
    """The last answer of each key, as a Java map. Not thread-safe."""

    def __init__(self, admin: JavaAdmin, api: str, own_faults: Collection[str]) -> None:
        """`own_faults`: codes of faults that concern one key."""
        self._admin, self._api, self._own = admin, api, own_faults
        self._map = admin.jvm.java.util.HashMap
        self._last = self._map()

    def compare(self, every: Any, keys: Any, futures: Callable[[], Any]) -> tuple[Any, list[int]]:
        """Returns a Java set of the keys whose answers changed, and the places of keys without an answer.

        `every`: the future of all answers, as a Java map. `futures`: the future of each key, in the order of `keys`.
        One key's fault must not hide the others. Raises ClusterUnreachable, RightsMissing.
        """
        seen, missing = self._admin.call(self._api, lambda _: every, self._own), list[int]()
        if seen is None:
            seen, each = self._map(), futures()
            for at, failed in enumerate(self._admin.rows.errors(each)):
                if failed is None:
                    seen.put(keys[at], each[at].getNow(None))
                else:
                    missing.append(at)
                    # Recreated with the same configs it is another topic: its return is a change.
                    self._last.remove(keys[at])
        if self._last.entrySet().containsAll(seen.entrySet()):
            return None, missing
        other = self._map(seen)
        other.entrySet().removeAll(self._last.entrySet())
        self._last.putAll(other)
        return other.keySet(), missing

    def forget(self, keys: Any) -> None:
        """Forget a Java collection of keys. Their next answers count as changed."""
        self._last.keySet().removeAll(keys)


class JvmWatch:
    """A watch on the topic configs of one cluster."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin, self._last = admin, LastAnswers(admin, DESCRIBE_CONFIGS, TOPIC_FAULTS)
        self._list_of = lru_cache(LISTS_KEPT)(self._new_list)
        self._polled: set[str] = set()
        self._forgotten: set[str] = set()

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        """Returns the topics that `Watch.changed` describes. Sends all requests before it waits for the first answer,
        so that the broker is never idle in between."""
        client = self._admin.client
        requests = [(shard, client.describeConfigs(self._list_of(tuple(shard)))) for shard in shards if shard]
        found: set[str] = set()
        try:
            for shard, result in requests:
                found |= self._differing(shard, result)
        except LockstepError:
            # The caller does not learn of these now, so the next poll must report them again.
            self.forget(found)
            raise
        forgotten = {topic for shard in shards for topic in shard if topic in self._forgotten}
        self._forgotten -= forgotten
        return found | forgotten

    def forget(self, topics: Iterable[str]) -> None:
        # A topic that was never polled is reported anyway.
        self._forgotten.update(self._polled.intersection(topics))

    def _new_list(self, shard: tuple[str, ...]) -> Any:
        self._polled.update(shard)
        return config_resources(self._admin, [ConfigEntity(ResourceType.TOPIC, name) for name in shard])

    def _differing(self, shard: Sequence[str], result: Any) -> set[str]:
        rows, resources = self._admin.rows, self._list_of(tuple(shard))
        differing, missing = self._last.compare(
            result.all(), resources, lambda: rows.of_map(result.values(), resources)
        )
        names = rows.read(rows.each(differing, CONFIG_RESOURCE.type, "name")) if differing is not None else ()
        return {*names, *(shard[at] for at in missing)}


class JvmGroupWatch:
    """A `GroupWatch` on one cluster."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin, self._last = admin, LastAnswers(admin, "OffsetFetch", GROUP_FAULTS)
        self._polled: set[str] = set()
        self.troubled: Collection[str] = ()

    def changed(self, groups: Collection[str], asked: Collection[str] | None = None) -> set[str]:
        """Returns the groups that `GroupWatch.changed` describes. Sends all requests before it waits for the first
        answer."""
        self._forget(self._polled - set(groups))
        some = groups if asked is None else asked
        self._polled |= set(some)
        rows, client = self._admin.rows, self._admin.client
        sent = []
        for names in in_requests(some):
            keys = rows.texts(names)
            sent.append((names, keys, client.listConsumerGroupOffsets(of_all_partitions(self._admin, keys))))
        found, troubled = set[str](), set[str]()
        try:
            for names, keys, result in sent:
                differing, missing = about_groups(lambda keys=keys, result=result: self._compared(keys, result))  # type: ignore[misc]
                found |= set(rows.read(differing)) if differing is not None else set()
                troubled |= {names[at] for at in missing}
        except LockstepError:
            # The caller does not learn of these now, so the next poll must report them again.
            self._last.forget(rows.texts(found))
            raise
        self.troubled = frozenset(troubled)
        return found | troubled

    def _compared(self, keys: Any, result: Any) -> tuple[Any, list[int]]:
        return self._last.compare(result.all(), keys, lambda: offsets_by_group(self._admin, result, keys))

    def _forget(self, groups: Collection[str]) -> None:
        if groups:
            self._last.forget(self._admin.rows.texts(groups))
            self._polled -= set(groups)
