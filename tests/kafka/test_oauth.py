"""OAUTHBEARER with client credentials, in Java's settings, before a real broker: librdkafka, the JVM and Spark."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pyspark.sql import DataFrame, SparkSession

from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.wiring import admin_of, open_cluster
from sinks.faults import RightsMissing
from sinks.kafka.jvm.jvm_configs import JvmWatch
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicConfigs, TopicSpec
from streaming.flow import Flow
from streaming.mm2.codec import encode_heartbeat
from streaming.mm2.internal_topics import TopicRole
from streaming.mm2.records import Heartbeat, RecordKind
from streaming.query import collect_hints, start, why_it_ended
from streaming.query_plan import ClusterSource, QueryPlan
from tests.quick_java import QUICK_KAFKA

SOON = 30.0
CLIENT, SECRET, SCOPE = "lockstep", "cl1ent-s3cret", "kafka"
LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLERS = ("oauthbearer.OAuthBearerLoginCallbackHandler", "oauthbearer.secured.OAuthBearerLoginCallbackHandler")
"""Kafka's name of it today, and an older one; the kafka-clients of Spark's connector has both."""

ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
KEY = rsa.generate_private_key(65537, 2048)
LISTENER = {
    "listener.name.sasl.sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    ),
    "listener.name.sasl.oauthbearer.sasl.jaas.config": f'{LOGIN} unsecuredLoginStringClaim_sub="broker";',
}


class TokenEndpoint(BaseHTTPRequestHandler):
    """Gives a token to the one client that it knows, and its public key to all."""

    granted: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        """The grant `client_credentials` of RFC 6749, section 4.4."""
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if form.get("grant_type") != ["client_credentials"] or self.headers["Authorization"] != f"Basic {known}":
            self.answer(HTTPStatus.UNAUTHORIZED, {"error": "invalid_client"})
            return
        self.granted.extend(form.get("scope", []))
        self.answer(HTTPStatus.OK, {"access_token": token(), "token_type": "Bearer", "expires_in": 3600})

    def do_GET(self) -> None:
        """The keys, for the broker."""
        self.answer(HTTPStatus.OK, key_set())

    def answer(self, status: HTTPStatus, document: dict[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing on stderr."""


def encoded(content: bytes) -> str:
    """base64url without padding, as JOSE has it (RFC 7515)."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def token() -> str:
    """A signed JWT, good for an hour. Java's client refuses one that nobody signed before it asks the broker."""
    now = int(time.time())
    claims = {"sub": CLIENT, "iat": now, "exp": now + 3600, "scope": SCOPE}
    text = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "one"}, claims))
    return f"{text}.{encoded(KEY.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def key_set() -> dict[str, object]:
    """What the broker verifies tokens with (RFC 7517)."""
    number = KEY.public_key().public_numbers()
    key = {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": encoded(number.n.to_bytes(256, "big"))}
    return {"keys": [key | {"e": encoded(number.e.to_bytes(3, "big"))}]}


@dataclass(frozen=True)
class Guarded:
    """A cluster whose users come with tokens, and where they get them."""

    cluster: LocalCluster
    url: str
    topics: list[str] = field(default_factory=list)

    def properties(self, secret: str = SECRET, handler: str = HANDLERS[0]) -> dict[str, str]:
        """A client's settings, as a user writes them."""
        return {
            "bootstrap.servers": self.cluster.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.login.callback.handler.class": f"org.apache.kafka.common.security.{handler}",
            "sasl.jaas.config": f'{LOGIN} clientId="{CLIENT}" clientSecret="{secret}" scope="{SCOPE}";',
        }

    def client(self, secret: str = SECRET) -> KafkaCluster:
        return open_cluster("o", self.properties(secret))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One broker and one token endpoint for all tests here."""
    with ThreadingHTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        folder, url = tmp_path_factory.mktemp("oauth"), f"http://127.0.0.1:{server.server_port}/token"
        overrides = LISTENER | {"sasl.oauthbearer.jwks.endpoint.url": url}
        options = (*QUICK_KAFKA, f"{ALLOWED}{url}")
        with LocalCluster(
            "o", folder, heap="256m", java_options=options, overrides=overrides, allow_everyone=True
        ) as cluster:
            yield Guarded(cluster, url)
        server.shutdown()


def make_topic(client: KafkaCluster, topic: str) -> TopicConfigs:
    """A topic that is there and visible; its configs."""
    assert client.create_topics({topic: TopicSpec(1, 1, (("retention.ms", "3600000"),))}) == {topic: None}
    return wait_for(lambda: client.describe_topic_configs([topic]).items.get(topic, {}), SOON, f"{topic} to be visible")


def test_librdkafka_lists_describes_appends_and_reads_with_a_token(guarded: Guarded) -> None:
    with closing(guarded.client()) as client:
        assert make_topic(client, "tokens")["retention.ms"].value == "3600000"
        wait_for(lambda: client.list_topics().get("tokens") == 1, SOON, "the topic to be listed")
        client.append_log("tokens", [(b"k", b"v")])
        assert client.read_log("tokens") == [(b"k", b"v")]
    assert set(TokenEndpoint.granted) == {SCOPE}


@pytest.mark.parametrize("handler", HANDLERS)
def test_the_jvms_admin_looks_with_a_token_by_either_name_of_the_handler(
    guarded: Guarded, spark: SparkSession, unique: str, handler: str
) -> None:
    with closing(guarded.client()) as client:
        make_topic(client, unique)
    properties = guarded.properties(handler=handler)
    with closing(JvmWatch(admin_of("o", properties))) as watch:
        assert watch.changed([[unique]]) == {unique}
    with closing(JvmLevels(admin_of("o", properties))) as levels:
        assert levels.brokers() == ["1"]


def test_sparks_source_reads_with_a_token(guarded: Guarded, spark: SparkSession, tmp_path: Path) -> None:
    with closing(guarded.client()) as client:
        make_topic(client, "heartbeats")
        client.append_log("heartbeats", [encode_heartbeat(Heartbeat("a", "o", 1))])
    role = TopicRole(RecordKind.HEARTBEAT, Flow("a", "o"))
    source = ClusterSource("o", guarded.properties(), {"heartbeats": role})
    rows: list[int] = []

    def sink(batch: DataFrame, _: int) -> None:
        rows.append(collect_hints(batch).rows)

    query = start(spark, QueryPlan("o", (source,), 1.0, tmp_path), sink, once=True)
    assert query.awaitTermination(4 * int(SOON))
    assert why_it_ended(query) is None
    assert sum(rows) == 1


def test_the_jvms_admin_names_the_cluster_of_a_wrong_client_secret_and_shows_none(
    guarded: Guarded, spark: SparkSession
) -> None:
    with pytest.raises(RightsMissing) as error:
        JvmLevels(admin_of("o", guarded.properties("wr0ng-s3cret"))).brokers()
    assert str(error.value).startswith("cluster o: Java's client cannot be made with these settings: KafkaException, ")
    assert "s3cret" not in str(error.value)


def test_a_wrong_client_secret_names_the_cluster_and_shows_no_secret(guarded: Guarded) -> None:
    with closing(guarded.client("wr0ng-s3cret")) as client, pytest.raises(RightsMissing) as error:
        client.ping()
    assert str(error.value).startswith("cluster o: ")
    assert "s3cret" not in str(error.value)
