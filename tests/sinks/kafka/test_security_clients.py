"""Java client properties in librdkafka's words: nothing that guards a connection is silently left out."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from app.local.certificates import signed
from sinks.kafka.records.client_config import client_config
from streaming.errors import LockstepError

BOOTSTRAP = {"bootstrap.servers": "one:9092,two:9092"}
KAFKA = "org.apache.kafka.common.security"
PLAIN = f"{KAFKA}.plain.PlainLoginModule"
SCRAM = f"{KAFKA}.scram.ScramLoginModule"
OAUTH = f"{KAFKA}.oauthbearer.OAuthBearerLoginModule"
URL = "https://login.example/token"
CA = signed("ca", authority=True).pem


def translated(**properties: str) -> dict[str, str | int]:
    """What librdkafka is given, and takes, for these Java properties; underscores stand for dots."""
    config = client_config("b", BOOTSTRAP | {name.replace("_", "."): value for name, value in properties.items()})
    AdminClient(dict(config))
    return config


def login(mechanism: str, jaas: str, **more: str) -> dict[str, str | int]:
    """The same over SASL_PLAINTEXT."""
    return translated(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=jaas, **more)


def refused(**properties: str) -> str:
    """Why these are not accepted."""
    with pytest.raises(LockstepError) as error:
        translated(**properties)
    assert "s3cret" not in str(error.value)
    return str(error.value)


def refused_login(mechanism: str, jaas: str, **more: str) -> str:
    return refused(security_protocol="SASL_SSL", sasl_mechanism=mechanism, sasl_jaas_config=jaas, **more)


def test_names_that_both_have_are_passed_on() -> None:
    config = translated(client_id="lockstep", reconnect_backoff_ms="50")
    assert config["bootstrap.servers"] == "one:9092,two:9092"
    assert (config["client.id"], config["reconnect.backoff.ms"]) == ("lockstep", "50")


def test_names_that_tune_the_java_client_are_left_out() -> None:
    assert "max.poll.records" not in translated(max_poll_records="10", key_serializer="x")


def test_missing_bootstrap_servers_name_the_key_to_set() -> None:
    with pytest.raises(LockstepError, match=r"cluster b: b\.bootstrap\.servers is missing"):
        client_config("b", {})


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "sasl_ssl"])
def test_each_protocol_takes_what_it_uses_and_leaves_the_rest_as_java_does(protocol: str) -> None:
    config = translated(
        security_protocol=protocol,
        sasl_mechanism="PLAIN",
        sasl_jaas_config=f'{PLAIN} required username="me" password="s";',
        ssl_truststore_type="PEM",
        ssl_truststore_certificates=CA,
    )
    assert config["security.protocol"] == protocol.upper()
    assert ("ssl.ca.pem" in config) is protocol.upper().endswith("SSL")
    assert ("sasl.password" in config) is protocol.upper().startswith("SASL")


def test_an_unknown_protocol_is_refused_with_those_that_are_allowed() -> None:
    assert "allowed: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL" in refused(security_protocol="TLS")


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
)
def test_user_and_password_are_read_from_the_jaas_config(mechanism: str, module: str) -> None:
    config = login(mechanism, f'{module} required username="me" password="s\\"e=\\\\c; ret";')
    assert (config["sasl.mechanism"], config["sasl.username"]) == (mechanism, "me")
    assert config["sasl.password"] == 's"e=\\c; ret'
    assert "sasl.jaas.config" not in config


@pytest.mark.parametrize(
    ("mechanism", "jaas", "reason"),
    [
        ("GSSAPI", "", "sasl.mechanism=GSSAPI is not supported; allowed: PLAIN, SCRAM-SHA-256"),
        ("PLAIN", "", "sasl.jaas.config: is empty"),
        ("PLAIN", f'{SCRAM} required username="me" password="s3cret";', "its login module is not PlainLoginModule"),
        ("SCRAM-SHA-512", f'{SCRAM} required username="s3cret";', "password missing"),
        ("SCRAM-SHA-512", f'{SCRAM} required password="s3cret";', "username missing"),
        ("SCRAM-SHA-512", f'{SCRAM} required username="t" password="s3cret" tokenauth="true";', "delegation token"),
    ],
)
def test_other_logins_are_refused_by_the_key_and_without_showing_a_password(
    mechanism: str, jaas: str, reason: str
) -> None:
    said = refused_login(mechanism, jaas)
    assert said.startswith("cluster b: sasl.")
    assert reason in said


def test_a_login_without_mechanism_is_kerberos_in_java_and_refused_as_such() -> None:
    assert "sasl.mechanism=GSSAPI" in refused(security_protocol="SASL_SSL")


def test_client_credentials_of_oauthbearer_are_translated() -> None:
    jaas = f'{OAUTH} required clientId="me" clientSecret="s" scope="all" extension_logicalCluster="lkc-1";'
    handler = f"{KAFKA}.oauthbearer.OAuthBearerLoginCallbackHandler"
    config = login(
        "OAUTHBEARER", jaas, sasl_oauthbearer_token_endpoint_url=URL, sasl_login_callback_handler_class=handler
    )
    assert {name: value for name, value in config.items() if name.startswith("sasl.")} == {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": URL,
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "all",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
    }


def test_newer_keys_of_client_credentials_win_over_the_jaas_options() -> None:
    config = login(
        "OAUTHBEARER",
        f'{OAUTH} required clientId="old" clientSecret="old";',
        sasl_oauthbearer_token_endpoint_url=URL,
        sasl_oauthbearer_client_credentials_client_id="new",
        sasl_oauthbearer_client_credentials_client_secret="newer",
    )
    assert (config["sasl.oauthbearer.client.id"], config["sasl.oauthbearer.client.secret"]) == ("new", "newer")


@pytest.mark.parametrize(
    ("options", "url", "reason"),
    [
        ('clientId="me" clientSecret="s3cret"', "", "sasl.oauthbearer.token.endpoint.url is missing"),
        ('clientId="me" clientSecret="s3cret"', "file:///token", "neither https:// nor http://"),
        ('clientId="me"', URL, "clientSecret missing"),
        ('clientSecret="s3cret"', URL, "clientId missing"),
        ('unsecuredLoginStringClaim_sub="s3cret"', URL, "unsecured tokens"),
        ('clientId="me" clientSecret="s3cret" ssl.keystore.location="/k"', URL, "ssl.keystore.location"),
        ('clientId="me" clientSecret="s3cret" ssl.truststore.location="/none"', URL, "/none cannot be read"),
    ],
)
def test_what_oauthbearer_lacks_is_told(options: str, url: str, reason: str) -> None:
    said = refused_login("OAUTHBEARER", f"{OAUTH} required {options};", sasl_oauthbearer_token_endpoint_url=url)
    assert reason in said


@pytest.mark.parametrize("name", ["ssl_cipher_suites", "ssl_engine_factory_class"])
def test_tls_setting_without_a_counterpart_is_refused_by_name(name: str) -> None:
    assert refused(security_protocol="SSL", **{name: "x"}).startswith(f"cluster b: {name.replace('_', '.')}")


@pytest.mark.parametrize(
    "name", ["sasl_login_class", "sasl_client_callback_handler_class", "sasl_oauthbearer_header_urlencode"]
)
def test_login_setting_without_a_counterpart_is_refused_by_name(name: str) -> None:
    jaas = f'{PLAIN} required username="me" password="s3cret";'
    assert refused_login("PLAIN", jaas, **{name: "x.Y"}).startswith(f"cluster b: {name.replace('_', '.')}")


@pytest.mark.parametrize(("java", "ours"), [({}, "https"), ({"ssl_endpoint_identification_algorithm": ""}, "none")])
def test_host_names_are_checked_unless_the_algorithm_is_empty(java: dict[str, str], ours: str) -> None:
    assert translated(security_protocol="SSL", **java)["ssl.endpoint.identification.algorithm"] == ours
