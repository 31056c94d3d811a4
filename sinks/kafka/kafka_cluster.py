"""A Kafka cluster: Java's Admin asks and changes it, confluent-kafka reads and writes records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sinks.kafka.jvm.java_admin import Gateway, JavaAdmin
from sinks.kafka.jvm.java_token import JavaToken
from sinks.kafka.jvm.jvm_acls import JvmAcls
from sinks.kafka.jvm.jvm_groups import JvmGroups
from sinks.kafka.jvm.jvm_topics import JvmTopics
from sinks.kafka.jvm.jvm_users import JvmUsers
from sinks.kafka.ports.cluster import (
    MOST_REPLICAS,
    CountRequest,
    LogChunk,
    Record,
    Tail,
    TopicSpec,
    count_nothing,
)
from sinks.kafka.ports.permitted import ask_again
from sinks.kafka.records.rd_clients import RdClients
from sinks.kafka.records.rd_logs import Log
from sinks.kafka.records.rd_records import KafkaRecords
from streaming.errors import LockstepError


class KafkaCluster(JvmTopics):
    """A cluster, reached with its Java client properties, for one account. Opens no connection and no JVM before the
    first request. Thread-safe. `admin`: Java's client, which all ports share."""

    def __init__(
        self, alias: str, properties: Mapping[str, str], gateway: Gateway, count: CountRequest = count_nothing
    ) -> None:
        self.alias, self.properties = alias, dict(properties)
        self.admin = JavaAdmin(alias, properties, gateway, count)
        self._token = JavaToken(self.admin)
        # First of all, because it raises if these settings are wrong.
        self._clients = RdClients(alias, properties, self._token.now)
        super().__init__(self.admin)
        self.acls, self.users, self.groups = JvmAcls(self.admin), JvmUsers(self.admin), JvmGroups(self.admin)
        self._log = Log(alias, self._clients, self.admin.timeout)

    def records(self, isolation: str = "read_uncommitted") -> KafkaRecords:
        """Returns a reader of records. The caller closes it."""
        return KafkaRecords(self.alias, self._clients, self.groups, self, isolation)

    def create_log(self, topic: str, replication_factor: int | None, configs: Mapping[str, str]) -> None:
        if topic in self.names():
            return
        factor = min(MOST_REPLICAS, self.broker_count()) if replication_factor is None else replication_factor
        ask_again()
        fault = self.create_topics({topic: TopicSpec(1, factor, tuple(sorted(configs.items())))})[topic]
        if fault is not None and fault.code != "TOPIC_ALREADY_EXISTS":
            raise LockstepError(f"cluster {self.alias}: creating {topic}: {fault}")

    def append_log(self, topic: str, records: Sequence[Record]) -> list[int]:
        return self._log.append(topic, records)

    def read_log(self, topic: str, last: int | None = None) -> list[Record]:
        return self._log.read(topic, last) if self.find_topic(topic) is not None else []

    def read_log_from(self, topic: str, position: int) -> LogChunk:
        # Of a log that was read before, most of the time only its end is asked for.
        if position and (read := self._log.read_soon(topic, position)) is not None:
            return read
        return LogChunk([], whole=True) if self._lacks(topic, position) else self._log.read_from(topic, position)

    def read_log_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        return (
            iter([LogChunk([], whole=True)])
            if self._lacks(topic, position)
            else self._log.read_in_chunks(topic, position)
        )

    def _lacks(self, topic: str, position: int) -> bool:
        """Whether the topic does not exist. For a topic that was read before, several answers must say so."""
        if self.find_topic(topic) is not None:
            return False
        return position == 0 or topic in self.confirmed_absent([topic])

    def follow_log(self, topic: str, position: int = 0) -> Tail:
        return self._log.follow(topic, position)

    def close(self) -> None:
        self._log.close()
        self._token.close()
        self.admin.close()
