"""Which principal a client is to its brokers, as far as its own settings tell.

| `security.protocol`   | principal                                                                              |
|-----------------------|----------------------------------------------------------------------------------------|
| PLAINTEXT             | `User:ANONYMOUS`                                                                       |
| SASL_*, PLAIN, SCRAM  | `User:` and the name of the login                                                      |
| SASL_*, others        | not known: for OAUTHBEARER the token says it                                           |
| SSL without key store | `User:ANONYMOUS`                                                                       |
| SSL with key store    | the subject of the certificate, if brokers have no `ssl.principal.mapping.rules`       |

A subject is read from PEM and PKCS12 alone: for others Java would have to be started. It is read only where it has no
attributes that Java writes in another way. Source: `DefaultKafkaPrincipalBuilder`, `X500Principal.getName`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sinks.kafka.security.jaas import parse_jaas
from sinks.kafka.security.tls import JAVA_MAGIC
from streaming.errors import LockstepError

ANONYMOUS = "User:ANONYMOUS"
NAMED_MECHANISMS = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})


@dataclass(frozen=True, slots=True)
class OwnPrincipal:
    """The principal of a client. `name`: None if unknown. `doubt`: why brokers may use another name."""

    name: str | None
    doubt: str | None = None


def own_principal(properties: Mapping[str, str]) -> OwnPrincipal:
    """Returns the principal of a client with these Java settings. Wrong settings are reported when it connects."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol.startswith("SASL_"):
        return _of_login(properties)
    if protocol != "SSL" or not any(properties.get(f"ssl.keystore.{part}") for part in ("location", "key")):
        return OwnPrincipal(ANONYMOUS)
    subject = _subject(properties)
    if subject is None:
        return OwnPrincipal(None, "Lockstep cannot read the subject of its certificate")
    return OwnPrincipal(subject, f"brokers with ssl.principal.mapping.rules know {subject} by another name")


def _of_login(properties: Mapping[str, str]) -> OwnPrincipal:
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in NAMED_MECHANISMS:
        return OwnPrincipal(None, f"with sasl.mechanism={mechanism} its settings do not show the principal")
    try:
        user = parse_jaas(properties.get("sasl.jaas.config", "")).options.get("username")
    except LockstepError:
        user = None
    return OwnPrincipal(f"User:{user}") if user else OwnPrincipal(None, "sasl.jaas.config names no user")


def _subject(properties: Mapping[str, str]) -> str | None:
    location = properties.get("ssl.keystore.location")
    if not any(name.startswith("ssl.keystore.") for name in properties):
        return None
    # Most files have no key store, and every command would import this.
    from cryptography import x509

    from sinks.kafka.security.tls import key_pair

    try:
        if location and Path(location).read_bytes()[:4] in JAVA_MAGIC:
            return None
        pair = key_pair(properties)
        subject = x509.load_pem_x509_certificates(pair.chain.encode())[0].subject if pair else None
    except (LockstepError, OSError, ValueError):
        return None
    if subject is None or any("." in attribute.rfc4514_attribute_name for attribute in subject):
        return None
    return f"User:{subject.rfc4514_string()}"
