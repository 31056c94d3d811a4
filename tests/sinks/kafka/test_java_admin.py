"""No answer of a cluster, and no end of the JVM, ends or freezes the program that asks."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from app.local import java_gateway
from app.local.java_gateway import GatewayProcess, process_jvm
from sinks.faults import ClusterUnreachable, JavaGone
from sinks.kafka.jvm.java_admin import ANSWER_GRACE_S, LOOK_AFTER_MS, JavaAdmin, java_properties
from sinks.kafka.jvm.jvm_groups import JvmGroups
from sinks.kafka.jvm.jvm_topics import JvmTopics
from sinks.kafka.jvm.jvm_watches import JvmGroupWatch, JvmWatch
from sinks.kafka.reachability import REFUSED_FOR
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from tests.sinks.kafka.broker_stub import BrokerStub

TIMEOUT = 2.0
LATEST = 100 + 3 * (TIMEOUT + ANSWER_GRACE_S)
"""Seconds that a call may take on a busy machine."""

API_VERSIONS, METADATA = 18, 3
UNSUPPORTED_VERSION = 35
NOTHING = b""


def versions(error: int) -> bytes:
    """ApiVersions in version 0: this one, and Metadata up to version 4."""
    apis = ((API_VERSIONS, 0, 0), (METADATA, 0, 4))
    return struct.pack(">hi", error, len(apis)) + b"".join(struct.pack(">hhh", *one) for one in apis)


def no_brokers(version: int) -> bytes:
    """Metadata of a cluster that has neither brokers nor topics."""
    throttled = struct.pack(">i", 0) if version >= 3 else NOTHING
    cluster_id = struct.pack(">h", -1) if version >= 2 else NOTHING
    return throttled + struct.pack(">i", 0) + cluster_id + struct.pack(">ii", -1, 0)


class Brokerless:
    """Listens as a broker does. Its Metadata answers list no broker."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, struct.error), connection.makefile("rwb") as stream:
            while size := stream.read(4):
                request = stream.read(struct.unpack(">i", size)[0])
                api, version, correlation = struct.unpack(">hhi", request[:8])
                known = versions(UNSUPPORTED_VERSION if version else 0)
                answer = struct.pack(">i", correlation) + (known if api == API_VERSIONS else no_brokers(version))
                stream.write(struct.pack(">i", len(answer)) + answer)
                stream.flush()

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def brokerless() -> Iterator[str]:
    with closing(Brokerless()) as server:
        yield server.address


def admin_at(address: str, **more: str) -> JavaAdmin:
    properties = {"bootstrap.servers": address, "default.api.timeout.ms": str(int(TIMEOUT * 1000))}
    return JavaAdmin("b", properties | more, process_jvm)


CALLS: dict[str, Callable[[JavaAdmin], object]] = {
    "cluster id": lambda admin: JvmTopics(admin).cluster_id(),
    "configs": lambda admin: JvmTopics(admin).describe_topic_configs(["t"]),
    "groups": lambda admin: groups_of(admin).names(),
    "offsets of groups": lambda admin: groups_of(admin).committed(["g"]),
    "members": lambda admin: groups_of(admin).members(["g"]),
    "ends": lambda admin: groups_of(admin).ends([TopicPartition("t", 0)]),
}


def groups_of(admin: JavaAdmin) -> JvmGroups:
    return JvmGroups(admin)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_an_answer_that_names_no_broker_is_an_unreachable_cluster_or_an_empty_one(
    brokerless: str, call: Callable[[JavaAdmin], object]
) -> None:
    began = time.monotonic()
    with closing(admin_at(brokerless)) as admin:
        try:
            assert call(admin) == set()
        except ClusterUnreachable as error:
            assert str(error).startswith("cluster b: ")
        assert process_jvm().jvm.java.lang.System.currentTimeMillis() > 0
    assert time.monotonic() - began < LATEST


def test_a_cluster_that_takes_connections_and_says_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address, began = f"127.0.0.1:{server.getsockname()[1]}", time.monotonic()
        with (
            closing(admin_at(address)) as admin,
            pytest.raises(ClusterUnreachable, match=rf"^cluster b: {address} gave no answer to DescribeCluster within"),
        ):
            JvmTopics(admin).cluster_id()
    assert time.monotonic() - began < LATEST


ASKED: dict[str, Callable[[JavaAdmin], object]] = {
    "cluster id": lambda admin: JvmTopics(admin).cluster_id(),
    "watch on configs": lambda admin: JvmWatch(admin).changed([["t"]]),
    "watch on groups": lambda admin: JvmGroupWatch(admin).changed(["g"]),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_a_cluster_that_goes_down_while_it_is_asked_is_given_up_once_it_refuses_for_a_while(
    ask: Callable[[JavaAdmin], object],
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address, began = f"127.0.0.1:{server.getsockname()[1]}", time.monotonic()
        threading.Timer(1.0, server.close).start()
        properties = {"bootstrap.servers": address, "default.api.timeout.ms": "900000"}
        with (
            closing(JavaAdmin("b", properties, process_jvm)) as admin,
            pytest.raises(ClusterUnreachable, match=f"^cluster b: {address}: refuses connections"),
        ):
            ask(admin)
    assert time.monotonic() - began < 2 * LATEST


def test_java_asks_again_soon_unless_the_file_says_when() -> None:
    assert java_properties("a", {})["retry.backoff.ms"] == "20"
    assert java_properties("a", {"retry.backoff.ms": "700"})["retry.backoff.ms"] == "700"


def test_a_class_that_java_does_not_find_is_named_with_what_to_do(brokerless: str) -> None:
    handler = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": "com.example.MissingHandler",
    }
    with closing(admin_at(brokerless, **handler)) as admin, pytest.raises(LockstepError) as raised:
        JvmTopics(admin).cluster_id()
    assert "Java finds no class com.example.MissingHandler" in str(raised.value)
    assert "put the jar that has the class into the environment variable LOCKSTEP_JARS (under" in str(raised.value)


TOKEN_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def test_a_login_whose_token_endpoint_says_nothing_ends_in_time_and_keeps_nobody_from_closing(brokerless: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as endpoint:
        url = f"http://127.0.0.1:{endpoint.getsockname()[1]}/token"
        process_jvm().jvm.java.lang.System.setProperty(TOKEN_URLS, url)
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'clientId="lockstep" clientSecret="s";',
            "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.secured."
            "OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": url,
        }
        admin, began, told = admin_at(brokerless, **login), time.monotonic(), list[str]()

        def ask() -> None:
            try:
                JvmTopics(admin).cluster_id()
            except ClusterUnreachable as error:
                told.append(str(error))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        connection, _ = endpoint.accept()
        with connection:
            admin.close()
            assert time.monotonic() - began < LATEST
            asking.join(LATEST)
    assert told
    assert time.monotonic() - began < 2 * LATEST


def test_a_jvm_that_dies_in_the_middle_is_told_and_nothing_hangs(brokerless: str) -> None:
    with closing(GatewayProcess()) as started:
        properties = {"bootstrap.servers": brokerless, "default.api.timeout.ms": "900000"}
        admin, began = JavaAdmin("b", properties, started.gateway), time.monotonic()
        _ = admin.rows
        # Where the first process makes its class archive, a shell is around Java.
        threading.Timer(0.5, os.killpg, (started.process.pid, signal.SIGKILL)).start()
        with pytest.raises(JavaGone, match="the Java process that asks clusters has ended"):
            groups_of(admin).committed(["g"])
        for call in CALLS.values():
            with pytest.raises(JavaGone, match="the Java process that asks clusters has ended"):
                call(admin)
        admin.close()
    assert time.monotonic() - began < 2 * LATEST


def test_a_jvm_that_only_loaded_classes_is_ended_at_once_and_leaves_no_archive_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java_gateway, "own_home", lambda: tmp_path)
    started = GatewayProcess()
    started.load_classes()
    started.close()
    assert started.process.poll() is not None
    assert not list(tmp_path.glob("*/*"))


def test_after_a_write_without_an_answer_the_cluster_is_asked_again_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with closing(admin_at(address)) as admin:
            topics = JvmTopics(admin)
            with pytest.raises(ClusterUnreachable, match="no answer to IncrementalAlterConfigs"):
                topics.alter_topic_configs({"t": {"retention.ms": "1"}})
            with pytest.raises(ClusterUnreachable, match="no answer to DescribeConfigs"):
                topics.describe_topic_configs(["t"])
            with pytest.raises(ClusterUnreachable, match="no answer to DescribeCluster"):
                topics.cluster_id()
            with pytest.raises(ClusterUnreachable, match="no answer to DescribeCluster"):
                topics.describe_topic_configs(["t"])


def test_a_bootstrap_address_that_is_away_makes_no_cluster_silent_whose_other_brokers_answer() -> None:
    with closing(BrokerStub()) as other, closing(BrokerStub(listed=other)) as first:
        properties = {"bootstrap.servers": first.address, "default.api.timeout.ms": "120000"}
        with closing(JavaAdmin("b", properties, process_jvm)) as admin:
            topics = JvmTopics(admin)
            assert topics.cluster_id() == "stub"
            first.close()
            other.quick.clear()
            threading.Timer(LOOK_AFTER_MS / 1000 + 2 * REFUSED_FOR, other.quick.set).start()
            assert topics.cluster_id() == "stub"


def test_a_cluster_that_answered_once_and_refuses_now_is_asked_with_a_short_deadline() -> None:
    with closing(BrokerStub()) as stub:
        properties = {"bootstrap.servers": stub.address, "default.api.timeout.ms": "900000"}
        with closing(JavaAdmin("b", properties, process_jvm)) as admin:
            topics = JvmTopics(admin)
            assert topics.cluster_id() == "stub"
            stub.close()
            for _ in range(2):
                began = time.monotonic()
                with pytest.raises(ClusterUnreachable, match="refuses connections"):
                    topics.cluster_id()
                assert time.monotonic() - began < LATEST
            stub.start()
            assert topics.cluster_id() == "stub"
