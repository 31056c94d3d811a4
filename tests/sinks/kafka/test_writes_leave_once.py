"""A write leaves once, and never after it was given up: what another client wrote in between stays."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress

import pytest

from app.local.java_gateway import process_jvm
from app.local.waiting import wait_for
from sinks.faults import ClusterUnreachable
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.jvm_topics import JvmTopics
from sinks.kafka.ports.cluster import TopicSpec
from tests.sinks.kafka.broker_stub import CREATE_TOPICS, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS, BrokerStub

SOON = 60.0

WRITES: dict[int, Callable[[JvmTopics], object]] = {
    CREATE_TOPICS: lambda topics: topics.create_topics({"t": TopicSpec(1, 1)}),
    DELETE_TOPICS: lambda topics: topics.delete_topics(["t"]),
    INCREMENTAL_ALTER_CONFIGS: lambda topics: topics.alter_topic_configs({"t": {"retention.ms": "1"}}),
}


def admin_of(stub: BrokerStub, timeout: float) -> JavaAdmin:
    milliseconds = str(int(timeout * 1000))
    return JavaAdmin("b", {"bootstrap.servers": stub.address, "default.api.timeout.ms": milliseconds}, process_jvm)


def cut(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("api", WRITES)
def test_a_write_whose_connection_breaks_is_not_sent_a_second_time_and_its_outcome_is_unknown(api: int) -> None:
    with closing(BrokerStub(cut)) as stub, closing(admin_of(stub, 4.0)) as admin:
        with pytest.raises(ClusterUnreachable):
            WRITES[api](JvmTopics(admin))
        assert stub.writes == [api]


def test_a_write_that_was_given_up_while_its_broker_was_away_does_not_leave_when_it_is_back() -> None:
    with closing(BrokerStub()) as stub, closing(admin_of(stub, 60.0)) as admin:
        topics = JvmTopics(admin)
        assert topics.cluster_id() == "stub"
        stub.close()
        with pytest.raises(ClusterUnreachable, match="refuses connections"):
            topics.delete_topics(["t"])
        stub.start()
        wait_for(lambda: answers(topics), SOON, "the broker to answer again")
        with suppress(ClusterUnreachable):
            threading.Timer(3.0, stub.close).start()
            topics.alter_topic_configs({"t": {"retention.ms": "1"}})
        assert stub.writes == [INCREMENTAL_ALTER_CONFIGS]


def answers(topics: JvmTopics) -> bool:
    with suppress(ClusterUnreachable):
        return topics.cluster_id() == "stub"
    return False
