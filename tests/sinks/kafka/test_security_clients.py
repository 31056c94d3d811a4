"""Java client properties in librdkafka's words: nothing that guards a connection is silently left out."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from sinks.faults import NoRecords
from sinks.kafka.records.client_config import client_config
from streaming.errors import LockstepError
from tests.certificates import signed

BOOTSTRAP = {"bootstrap.servers": "one:9092,two:9092"}
KAFKA = "org.apache.kafka.common.security"
PLAIN = f"{KAFKA}.plain.PlainLoginModule"
SCRAM = f"{KAFKA}.scram.ScramLoginModule"
OAUTH = f"{KAFKA}.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
CA = signed("ca", authority=True).pem


def translated(**properties: str) -> dict[str, str | int]:
    """What librdkafka is given, and takes, for these Java properties; underscores stand for dots."""
    config = client_config("b", BOOTSTRAP | {name.replace("_", "."): value for name, value in properties.items()})
    AdminClient(dict(config))
    return config


def login(mechanism: str, jaas: str, **more: str) -> dict[str, str | int]:
    """The same over SASL_PLAINTEXT."""
    return translated(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=jaas, **more)


def kerberos(jaas: str, service: str = "") -> dict[str, str]:
    """Java properties of a login with Kerberos, which not every confluent-kafka can do."""
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": jaas}
    return BOOTSTRAP | own | ({"sasl.kerberos.service.name": service} if service else {})


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
        ("PLAIN", "", "sasl.jaas.config: is empty"),
        ("PLAIN", f'{SCRAM} required username="me" password="s3cret";', "its login module is not PlainLoginModule"),
        ("SCRAM-SHA-512", f'{SCRAM} required username="s3cret";', "lacks the option password"),
        ("SCRAM-SHA-512", f'{SCRAM} required password="s3cret";', "lacks the option username"),
        ("SCRAM-SHA-512", f'{SCRAM} required username="t" password="s3cret" tokenauth="true";', "delegation token"),
    ],
)
def test_other_logins_are_refused_by_the_key_and_without_showing_a_password(
    mechanism: str, jaas: str, reason: str
) -> None:
    said = refused_login(mechanism, jaas)
    assert said.startswith("cluster b: sasl.")
    assert reason in said


def test_login_without_mechanism_is_kerberos_as_in_java() -> None:
    assert "sasl.mechanism=GSSAPI needs the login of a Krb5LoginModule" in refused(security_protocol="SASL_SSL")


@pytest.mark.parametrize(
    "more",
    [
        {"sasl_oauthbearer_token_endpoint_url": "https://login.example/token"},
        {"sasl_login_callback_handler_class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"},
        {"sasl_login_class": "x.Y", "sasl_oauthbearer_header_urlencode": "true"},
    ],
)
def test_what_oauthbearer_has_of_its_own_stays_with_java_which_is_asked_for_tokens(more: dict[str, str]) -> None:
    config = login("OAUTHBEARER", f'{OAUTH} required clientId="me" clientSecret="s3cret";', **more)
    assert {name: value for name, value in config.items() if name.startswith("sasl.")} == {
        "sasl.mechanism": "OAUTHBEARER"
    }


def test_keytab_of_kerberos_is_named_to_librdkafka() -> None:
    jaas = f'{KERBEROS} required useKeyTab=true keyTab="/etc/l.keytab" principal="lockstep/h@A.B" serviceName="k";'
    config = client_config("b", kerberos(jaas))
    assert {name: value for name, value in config.items() if name.startswith("sasl.")} == {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.keytab": "/etc/l.keytab",
        "sasl.kerberos.principal": "lockstep/h@A.B",
        "sasl.kerberos.service.name": "k",
    }


def test_tickets_that_are_in_a_cache_are_left_to_who_renews_them() -> None:
    config = client_config("b", kerberos(f"{KERBEROS} required useTicketCache=true;", service="kafka"))
    assert config["sasl.kerberos.min.time.before.relogin"] == "0"
    assert "sasl.kerberos.keytab" not in config


@pytest.mark.parametrize(
    ("jaas", "service", "reason"),
    [
        (f"{KERBEROS} required useTicketCache=true;", "", "sasl.kerberos.service.name is missing"),
        (f'{KERBEROS} required useKeyTab=true principal="l@A";', "kafka", "lacks the option keyTab"),
        (f'{KERBEROS} required useKeyTab=true keyTab="/k";', "kafka", "lacks the option principal"),
        (f'{KERBEROS} required useKeyTab=true keyTab="/k" principal="l@A; true";', "kafka", "principal"),
        (f'{KERBEROS} required useKeyTab=true keyTab="/k\\"; true" principal="l@A";', "kafka", "keyTab"),
        (f'{KERBEROS} required useKeyTab=true keyTab="/k" principal="host$@A";', "kafka", "principal"),
        (f'{KERBEROS} required useKeyTab=true keyTab="/k" principal="-t/other";', "kafka", "principal"),
        (f'{PLAIN} required username="me" password="s3cret";', "kafka", "its login module is not Krb5LoginModule"),
    ],
)
def test_what_a_login_with_kerberos_lacks_is_told(jaas: str, service: str, reason: str) -> None:
    with pytest.raises(LockstepError) as error:
        client_config("b", kerberos(jaas, service=service))
    assert str(error.value).startswith("cluster b: sasl.")
    assert reason in str(error.value)
    assert "s3cret" not in str(error.value)


def test_mechanism_that_librdkafka_has_not_is_no_mistake_and_says_what_cannot_be_had() -> None:
    with pytest.raises(NoRecords) as error:
        translated(security_protocol="SASL_SSL", sasl_mechanism="AWS_MSK_IAM", sasl_jaas_config="x required;")
    assert "IAMOAuthBearerLoginCallbackHandler" in str(error.value)
    with pytest.raises(NoRecords) as error:
        translated(security_protocol="SASL_SSL", sasl_mechanism="ACME", sasl_jaas_config="x required;")
    assert "sasl.mechanism=ACME" in str(error.value)


@pytest.mark.parametrize("name", ["ssl_cipher_suites", "ssl_engine_factory_class"])
def test_tls_setting_without_a_counterpart_is_refused_by_name(name: str) -> None:
    with pytest.raises(NoRecords, match=rf"^cluster b: {name.replace('_', '.')}"):
        translated(security_protocol="SSL", **{name: "x"})


@pytest.mark.parametrize(
    "name", ["sasl_login_class", "sasl_client_callback_handler_class", "sasl_login_callback_handler_class"]
)
def test_login_setting_without_a_counterpart_is_refused_by_name(name: str) -> None:
    jaas = f'{PLAIN} required username="me" password="s3cret";'
    with pytest.raises(NoRecords, match=rf"^cluster b: {name.replace('_', '.')}"):
        login("PLAIN", jaas, **{name: "x.Y"})


@pytest.mark.parametrize(("java", "ours"), [({}, "https"), ({"ssl_endpoint_identification_algorithm": ""}, "none")])
def test_host_names_are_checked_unless_the_algorithm_is_empty(java: dict[str, str], ours: str) -> None:
    assert translated(security_protocol="SSL", **java)["ssl.endpoint.identification.algorithm"] == ours
