"""Java client properties in librdkafka's words: nothing that guards a connection is silently left out."""

from __future__ import annotations

import pytest

from sinks.cluster.clients import client_config
from streaming.errors import LockstepError

BOOTSTRAP = {"bootstrap.servers": "one:9092,two:9092"}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def translated(**properties: str) -> dict[str, str | int | float | bool]:
    """What librdkafka is given for these Java properties; underscores stand for dots."""
    return dict(client_config("b", BOOTSTRAP | {name.replace("_", "."): value for name, value in properties.items()}))


def refused(**properties: str) -> str:
    """Why these are not accepted."""
    with pytest.raises(LockstepError) as error:
        translated(**properties)
    return str(error.value)


def test_names_that_both_have_are_passed_on() -> None:
    config = translated(security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", client_id="lockstep")
    assert config["bootstrap.servers"] == "one:9092,two:9092"
    assert config["security.protocol"] == "SASL_SSL"
    assert config["sasl.mechanism"] == "SCRAM-SHA-512"
    assert config["client.id"] == "lockstep"


def test_names_that_tune_the_java_client_are_left_out() -> None:
    assert "max.poll.records" not in translated(max_poll_records="10", key_serializer="x")


def test_missing_bootstrap_servers_name_the_key_to_set() -> None:
    with pytest.raises(LockstepError, match=r"cluster b: b\.bootstrap\.servers is missing"):
        client_config("b", {})


@pytest.mark.parametrize("module", [SCRAM, "org.apache.kafka.common.security.plain.PlainLoginModule"])
def test_user_and_password_are_read_from_the_jaas_config(module: str) -> None:
    config = translated(sasl_jaas_config=f'{module} required username="me" password="s\\"e=\\\\c; ret";')
    assert (config["sasl.username"], config["sasl.password"]) == ("me", 's"e=\\c; ret')
    assert "sasl.jaas.config" not in config


@pytest.mark.parametrize(
    "jaas",
    [
        "",
        f'{SCRAM} required username="me";',
        'com.sun.security.auth.module.Krb5LoginModule required username="me" password="secret";',
    ],
)
def test_other_logins_are_refused_without_showing_the_password(jaas: str) -> None:
    reason = refused(sasl_jaas_config=jaas)
    assert "sasl.jaas.config" in reason
    assert "secret" not in reason


def test_pem_stores_are_translated() -> None:
    config = translated(
        ssl_truststore_type="PEM", ssl_truststore_location="/ca.pem", ssl_keystore_key="K", ssl_keystore_type="pem"
    )
    assert config["ssl.ca.location"] == "/ca.pem"
    assert config["ssl.key.pem"] == "K"


@pytest.mark.parametrize(
    "name", ["ssl_truststore_location", "ssl_keystore_location", "ssl_cipher_suites", "sasl_kerberos_service_name"]
)
def test_security_setting_without_a_counterpart_is_refused_by_name(name: str) -> None:
    reason = refused(**{name: "x"})
    assert reason.startswith(f"cluster b: {name.replace('_', '.')}")


@pytest.mark.parametrize("name", ["ssl_truststore_type", "ssl_keystore_type"])
def test_java_stores_are_refused_with_the_remedy(name: str) -> None:
    assert "convert the store to PEM" in refused(**{name: "JKS"})


@pytest.mark.parametrize(("java", "ours"), [("", "none"), ("https", "https")])
def test_empty_host_name_check_is_none(java: str, ours: str) -> None:
    config = translated(ssl_endpoint_identification_algorithm=java)
    assert config["ssl.endpoint.identification.algorithm"] == ours
