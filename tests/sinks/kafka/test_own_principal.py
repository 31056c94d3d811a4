"""Which principal a client is to its brokers, as far as its settings tell."""

from __future__ import annotations

import pytest

from sinks.kafka.security.own_principal import own_principal
from tests.certificates import signed

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="mm2" password="hush";'
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="mm2" password="hush";'


@pytest.mark.parametrize(("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)])
@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_login_by_name_is_a_user_of_this_name(protocol: str, mechanism: str, jaas: str) -> None:
    found = own_principal({"security.protocol": protocol, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas})
    assert (found.name, found.doubt) == ("User:mm2", None)


@pytest.mark.parametrize("properties", [{}, {"security.protocol": "PLAINTEXT"}, {"security.protocol": "SSL"}])
def test_client_without_login_and_certificate_is_anonymous(properties: dict[str, str]) -> None:
    assert own_principal(properties).name == "User:ANONYMOUS"


def test_certificate_tells_its_subject_and_brokers_may_call_it_something_else() -> None:
    client = signed("lockstep")
    found = own_principal(
        {
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": client.key_pem,
            "ssl.keystore.certificate.chain": client.pem,
        }
    )
    assert found.name == "User:CN=lockstep"
    assert "ssl.principal.mapping.rules" in (found.doubt or "")


@pytest.mark.parametrize(
    "properties",
    [
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "hush hush"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
        {"security.protocol": "SSL", "ssl.keystore.location": "/not/there"},
    ],
)
def test_what_the_settings_do_not_tell_is_not_guessed_and_shows_no_secret(properties: dict[str, str]) -> None:
    found = own_principal(properties)
    assert found.name is None
    assert found.doubt and "hush" not in found.doubt
