"""Looking through the driver's own JVM: cheap, because what was seen stays there and is compared there.

A DescribeConfigs answer of 2,000 topics is 66,000 entries. Turning them into Python objects costs more than asking
for them, so the last answer is kept as a `Map<ConfigResource, Config>` in the JVM; one call over the gateway says
whether the new one holds anything else, and only the names of topics that differ come over.

Kafka's classes are those that Spark's Kafka connector brings. Source: `Admin.describeConfigs`; `Config` and
`ConfigEntry` compare by value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, DENIED_CLIENT, cause_of, java_admin, message_of, timeout_ms
from sinks.kafka.jvm.jvm_resources import TopicResources
from sinks.kafka.ports.cluster import CountRequest
from streaming.errors import LockstepError

TOPIC_FAULTS = ("UnknownTopicOrPartitionException", "TopicAuthorizationException", "InvalidTopicException")


class JvmWatch:
    """A watch on the topic configs of one cluster, through `Admin` in the JVM behind `gateway` (py4j)."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self._alias, self._jvm, self._count = alias, gateway.jvm, count_request
        self._admin, self._timeout = java_admin(alias, self._jvm, properties), timeout_ms(alias, properties)
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._resources = TopicResources(self._jvm)
        self._last = self._jvm.java.util.HashMap()
        self._forgotten: set[str] = set()

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        """All requests leave before the first answer is awaited, so that the broker is never idle in between."""
        requests = [(shard, self._admin.describeConfigs(self._resources.all_of(shard))) for shard in shards if shard]
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
        # Kept on this side: taking thousands of topics out of the JVM's map would be as many calls over the gateway.
        # One that was never asked for is reported anyway, and its name may be anybody's.
        self._forgotten.update(topic for topic in topics if self._resources.has(topic))

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))

    def _differing(self, shard: Sequence[str], result: Any) -> set[str]:
        try:
            seen = result.all().get(self._timeout, self._unit)
        except Py4JJavaError as error:
            return self._one_by_one(shard, result, error)
        self._count(self._alias, "DescribeConfigs", "ok")
        return self._differs_from_last(seen)

    def _differs_from_last(self, seen: Any) -> set[str]:
        if self._last.entrySet().containsAll(seen.entrySet()):
            return set()
        other = self._jvm.java.util.HashMap(seen)
        other.entrySet().removeAll(self._last.entrySet())
        self._last.putAll(seen)
        return {resource.name() for resource in other.keySet()}

    def _one_by_one(self, shard: Sequence[str], result: Any, error: Py4JJavaError) -> set[str]:
        """One topic's trouble must not hide the others: the troubled ones count as changed and are read in full."""
        cause = cause_of(error)
        self._count(self._alias, "DescribeConfigs", cause)
        if cause in DENIED_CLIENT:
            raise RightsMissing(f"cluster {self._alias}: DescribeConfigs: {cause}: {message_of(error)}")
        if cause not in TOPIC_FAULTS:
            raise ClusterUnreachable(f"cluster {self._alias}: DescribeConfigs: {cause}: {message_of(error)}")
        troubled, seen = set(), self._jvm.java.util.HashMap()
        for topic in shard:
            future = result.values().get(self._resources.of(topic))
            if future.isCompletedExceptionally():
                troubled.add(topic)
                # Recreated with the same configs it is another topic: its return is a change.
                self._last.remove(self._resources.of(topic))
            else:
                seen.put(self._resources.of(topic), future.get(self._timeout, self._unit))
        return troubled | self._differs_from_last(seen)
