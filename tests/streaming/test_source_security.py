"""Settings of a secured cluster on their way to the Java clients: they arrive as they were written."""

from __future__ import annotations

from streaming.mm2.internal_topic_names import TopicRole
from streaming.mm2.records import RecordKind
from streaming.query_plan import ClusterSource
from streaming.source import source_options

SECURED = {
    "bootstrap.servers": "one:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": 'x.OAuthBearerLoginModule required clientId="me"\n clientSecret="s3cret; \\"";',
    "sasl.login.callback.handler.class": "x.OAuthBearerLoginCallbackHandler",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n",
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": "/own.p12",
    "ssl.keystore.password": "s3cret",
    "ssl.key.password": "s3cret",
    "ssl.endpoint.identification.algorithm": "",
    "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384",
}
SOURCE = ClusterSource("a", SECURED, {"heartbeats": TopicRole(RecordKind.HEARTBEAT)})


def test_every_setting_reaches_sparks_source_as_it_is() -> None:
    options = source_options(SOURCE)
    assert {name: options[f"kafka.{name}"] for name in SECURED} == SECURED


def test_no_setting_is_in_the_repr() -> None:
    assert "s3cret" not in repr(SOURCE)
